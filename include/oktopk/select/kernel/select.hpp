// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/select/kernel/compact.hpp>
#include <oktopk/select/kernel/digits.hpp>
#include <oktopk/select/kernel/gather.hpp>
#include <oktopk/select/kernel/workspace.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

// Selections of one rank: above a threshold, and from a guess of it. On a device the host hears of them when they are
// done; kernels tell each other what is known in between by a `selection_record`.
namespace oktopk::detail {

/// The result of a selection that was written to a workspace.
template <gradient_value Value>
struct written_selection {
  std::int64_t count = 0;       ///< candidates that reach the guess
  bool found = false;           ///< the k-th magnitude is near the guess, and few enough candidates reach it
  bits_of<Value> threshold = 0; ///< the k-th magnitude, where found
  std::int64_t kept = 0;        ///< entries that were written
  bool checked = false;         ///< the entries were looked at for what is not finite, as kernels of a device do
  std::int64_t not_finite = -1; ///< the least index of such an entry, if there is one
};

// `kept` counts the entries that did not fit, too.
template <gradient_value Value>
written_selection<Value> written_by(selection_record const& record) {
  std::int64_t const not_finite = record.not_finite == 0 ? -1 : every_entry - record.not_finite;
  return {record.count, false, 0, record.kept, true, not_finite};
}

/// Loads the whole source and writes the k largest of it, ties to the lower index, if at least k and at most `most`
/// candidates reach the guess and the k-th is no more than about twice as large. Reads the source once, and what
/// reaches the guess about four times; a launch for each, and one wait. k must be positive, and `most` below 2^32.
template <class Warp, execution_space E, selection_source Source>
written_selection<value_of<Source>> select_near_guess(E const& exec, Source const& source, std::int64_t k,
                                                      value_of<Source> guess, std::int64_t most,
                                                      workspace_for<Source, E>& workspace) {
  using value_type = typename Source::value_type;
  auto& device = workspace.on_device;
  std::int64_t const tiles = tiles_of<Warp, value_type>(source.size());
  workspace.reserve(exec, k);
  device.reserve(exec, tiles);
  device.sums_u32.reserve(exec, std::int64_t(1) << widest_shared_digit);

  magnitude_range<value_type> const range{magnitude_bits(guess), std::numeric_limits<value_type>::digits};
  digit<value_type> which{range, 0, range.bits - widest_shared_digit, widest_shared_digit};
  auto const gathered = gather_on_device<Warp>(exec, source, range.floor, most, workspace,
                                               first_digit<value_type>{which, k, device.sums_u32.data()});
  while (which.shift > 0) {
    which.width = std::min(which.shift, widest_shared_digit);
    which.shift -= which.width;
    count_digit_by_teams(exec, k + k / 4,
                         digit_kernel<Warp, true, E, value_type>{gathered.values.data(), most, which,
                                                                 device.sums_u32.data(), device.record.data()});
  }
  candidate_pieces const pieces{tiles, device.pieces.data()};
  kept_magnitudes<value_type> const kept{range.floor, k, most, true};
  count_kept<Warp>(exec, pieces, gathered.values.data(), kept, workspace);
  auto const& record = write_kept<Warp>("oktopk::select::near_guess", exec, pieces, gathered, kept, k, workspace);
  auto result = written_by<value_type>(record);
  result.found = kept.is_known(record);
  result.threshold = kept.threshold(record);
  return result;
}

/// The pieces for `select_above_threshold`: few rows for a warp, so that warps are many where candidates are few.
template <class Warp>
candidate_pieces pieces_above_threshold(std::int64_t candidates) {
  constexpr std::int64_t width = std::int64_t(4) * Warp::lanes;
  return {(candidates + width - 1) / width, nullptr, candidates, width};
}

/// Writes the candidates above a threshold, and the first `ties` with it, to a workspace that has room for `capacity`.
template <class Warp, execution_space E, gradient_index Index, gradient_value Value>
written_selection<Value> select_above_threshold(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                                                bits_of<Value> threshold, std::int64_t ties, std::int64_t capacity,
                                                selection_workspace<Index, Value, E>& workspace) {
  workspace.reserve(exec, capacity);
  if (from.size() == 0) {
    return {};
  }
  candidate_pieces const pieces = pieces_above_threshold<Warp>(from.size());
  workspace.on_device.reserve(exec, pieces.count);
  kept_magnitudes<Value> const kept{threshold, ties};
  count_kept<Warp>(exec, pieces, from.values.data(), kept, workspace);
  return written_by<Value>(
      write_kept<Warp>("oktopk::select::above_threshold", exec, pieces, from, kept, capacity, workspace));
}

/// On a CPU: the position of the tie that is the `quota`-th, from 1, among the candidates of that magnitude. There must
/// be that many. Looks no further than the tie is. Waits for `exec`.
template <execution_space E, gradient_index Index, gradient_value Value>
std::int64_t position_of_tie(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                             bits_of<Value> magnitude, std::int64_t quota,
                             selection_workspace<Index, Value, E>& workspace) {
  workspace.numbers.reserve(exec, 1);
  std::int64_t* const found = workspace.numbers.device().data();
  std::int64_t const size = from.size();
  Kokkos::parallel_for("oktopk::select::find_tie", index_range<E>(exec, 0, 1), [=](std::int64_t) {
    std::int64_t ties = 0;
    for (std::int64_t i = 0; i < size && ties < quota; ++i) {
      if (magnitude_bits(from.values.data()[i]) == magnitude) {
        ties += 1;
        *found = i;
      }
    }
  });
  workspace.numbers.to_host(exec, 1, "oktopk::select::position_of_tie");
  return *workspace.numbers.host();
}

/// Writes the candidates above a threshold, and the first `ties` of those with it (or all: `every_entry`), to the
/// workspace: never more than `most`. Where more pass (the threshold was too low), keeps the first. Waits for `exec`.
template <execution_space E, gradient_index Index, gradient_value Value>
written_selection<Value> write_above_threshold(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                                               bits_of<Value> threshold, std::int64_t ties, std::int64_t most,
                                               selection_workspace<Index, Value, E>& workspace) {
  std::int64_t const capacity = std::min(most, from.size());
  written_selection<Value> written;
  if constexpr (is_device<E>) {
    written = select_above_threshold<warp_of<E>>(exec, from, threshold, ties, capacity, workspace);
    written.checked = true;
  } else {
    magnitude_filter<Value> passes{threshold};
    if (ties < every_entry) {
      passes.last_tie = ties == 0 ? -1 : position_of_tie(exec, from, threshold, ties, workspace);
    }
    workspace.reserve(exec, capacity);
    written.kept = compact_on_host(exec, from, passes, workspace, false);
    if (written.kept > workspace.indices.capacity()) { // what several threads wrote was not joined
      compact_chunks(exec, from, passes, 1, capacity, workspace.indices.data(), workspace.values.data(),
                     workspace.chunk_counts.data(), false);
    }
  }
  written.kept = std::min(written.kept, capacity);
  return written;
}

/// Makes room for `write_above_threshold` of so many candidates, except for its entries.
template <execution_space E, gradient_index Index, gradient_value Value>
void reserve_above_threshold(E const& exec, std::int64_t candidates,
                             [[maybe_unused]] selection_workspace<Index, Value, E>& workspace) {
  if constexpr (is_device<E>) {
    workspace.on_device.reserve(exec, pieces_above_threshold<warp_of<E>>(candidates).count);
  }
}

} // namespace oktopk::detail
