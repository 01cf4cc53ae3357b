// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/select/kernel/device/digits.hpp>
#include <oktopk/select/kernel/device/gather.hpp>
#include <oktopk/select/kernel/device/write.hpp>
#include <oktopk/select/workspace.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

// Selections of one rank on a device, of which the host hears when they are done. Nothing in between is for the host:
// kernels tell each other by a `selection_record`.
namespace oktopk::detail {

/// The result of a selection on a device.
template <gradient_value Value>
struct device_selection {
  std::int64_t count = 0;       ///< candidates that reach the guess
  bool found = false;           ///< whether the k-th magnitude is near the guess, and few enough candidates reach it
  bits_of<Value> threshold = 0; ///< where found
  std::int64_t kept = 0;        ///< entries that were written, were there room for all
  std::int64_t not_finite = -1; ///< the least index of an entry that is not finite, if there is one
};

template <gradient_value Value, execution_space E>
device_selection<Value> told_of(selection_record const& told) {
  device_selection<Value> result;
  result.count = told.count;
  result.kept = told.kept;
  result.not_finite = told.not_finite == 0 ? -1 : every_entry - told.not_finite;
  return result;
}

/// Loads the whole source and writes the k largest of it, ties to the lower index, if at least k and at most `most`
/// candidates reach the guess and the k-th is no more than about twice as large. Reads the source once, and what
/// reaches the guess about four times; one launch for each of these, and one wait. k must be positive, and `most` below
/// 2^32.
template <class Warp, execution_space E, selection_source Source>
device_selection<typename Source::value_type>
select_near_guess(E const& exec, Source const& source, std::int64_t k, typename Source::value_type guess,
                  std::int64_t most,
                  selection_workspace<typename Source::index_type, typename Source::value_type, E>& workspace) {
  using index_type = typename Source::index_type;
  using value_type = typename Source::value_type;
  auto& device = workspace.on_device;
  std::int64_t const tiles = tiles_of<Warp, value_type>(source.size());
  workspace.reserve(exec, k);
  workspace.chunk_indices.reserve(exec, most);
  workspace.chunk_values.reserve(exec, most);
  device.reserve(exec, tiles);
  device.reserve_few_sums(exec, std::int64_t(1) << widest_shared_digit);
  selection_record* const record = device.record.data();

  magnitude_range<value_type> const range{magnitude_bits(guess), std::numeric_limits<value_type>::digits};
  digit<value_type> which{range, 0, range.bits - widest_shared_digit, widest_shared_digit};
  gather_on_device<Warp>(exec, source, magnitude_filter<value_type>{range.floor},
                         gathered_candidates<index_type, value_type>{workspace.chunk_indices.data(),
                                                                     workspace.chunk_values.data(), most,
                                                                     device.pieces.data(), record},
                         first_digit<value_type>{which, k, device.few_sums.data()});
  while (which.shift > 0) {
    which.width = std::min(which.shift, widest_shared_digit);
    which.shift -= which.width;
    for_teams<Warp>("oktopk::select::count_digit", exec, counting_teams(k + k / 4, which.width),
                    shared_bytes_of_digit<Warp>(which.width),
                    next_digit_kernel<Warp, E, value_type>{workspace.chunk_values.data(), most, which,
                                                           device.few_sums.data(), record});
  }
  candidates<index_type, value_type, typename E::memory_space> const gathered(
      sparse_ref<index_type, value_type, typename E::memory_space>(workspace.chunk_indices.data(),
                                                                   workspace.chunk_values.data(), most));
  listed_pieces const pieces{device.pieces.data(), tiles};
  found_threshold<value_type> const threshold{range.floor, k, most};
  count_kept<Warp>(exec, pieces, gathered.values.data(), threshold, device.numbers.data(), record);
  write_kept<Warp>(exec, pieces, gathered, threshold, device.numbers.data(), workspace.indices.data(),
                   workspace.values.data(), k, record, device.told.device().data());
  device.told.to_host(exec, 1, "oktopk::select::near_guess");

  selection_record const& told = *device.told.host();
  auto result = told_of<value_type, E>(told);
  result.found = threshold.is_known(told);
  result.threshold = threshold(told).threshold;
  return result;
}

/// The pieces that `select_above_threshold` cuts so many candidates into.
template <class Warp>
even_pieces pieces_above_threshold(std::int64_t candidates) {
  constexpr std::int64_t rows = 4; // of a piece
  return {candidates, rows * Warp::lanes};
}

/// Writes the candidates above a threshold, and the first `ties` with it, to a workspace that has room for `room`.
template <class Warp, execution_space E, gradient_index Index, gradient_value Value>
device_selection<Value> select_above_threshold(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                                               bits_of<Value> threshold, std::int64_t ties, std::int64_t room,
                                               selection_workspace<Index, Value, E>& workspace) {
  workspace.reserve(exec, room);
  if (from.size() == 0) {
    return {};
  }
  even_pieces const pieces = pieces_above_threshold<Warp>(from.size());
  auto& device = workspace.on_device;
  device.reserve(exec, pieces.count());
  selection_record* const record = device.record.data();
  known_threshold<Value> const known{{threshold, ties}};
  count_kept<Warp>(exec, pieces, from.values.data(), known, device.numbers.data(), record);
  write_kept<Warp>(exec, pieces, from, known, device.numbers.data(), workspace.indices.data(), workspace.values.data(),
                   room, record, device.told.device().data());
  device.told.to_host(exec, 1, "oktopk::select::above_threshold");
  return told_of<Value, E>(*device.told.host());
}

} // namespace oktopk::detail
