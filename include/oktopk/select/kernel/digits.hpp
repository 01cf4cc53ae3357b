// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/integers.hpp>
#include <oktopk/core/kokkos_ext/warp.hpp>
#include <oktopk/select/kernel/source.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

// Histograms of one digit of the patterns of magnitudes, for the search for the k-th magnitude.
namespace oktopk::detail {

/// The patterns of magnitudes that a search tells apart: 2^bits of them from `floor` on. Patterns below are skipped,
/// patterns above count as the largest of the range. The default is all patterns.
template <gradient_value Value>
struct magnitude_range {
  bits_of<Value> floor = 0;
  int bits = magnitude_bit_count<Value>;

  /// The place in the range of a pattern that is not below it.
  KOKKOS_INLINE_FUNCTION bits_of<Value> place(bits_of<Value> magnitude) const {
    bits_of<Value> const last = (bits_of<Value>(1) << bits) - 1;
    bits_of<Value> const above = magnitude - floor;
    return above < last ? above : last;
  }
};

/// One digit of the places in a range, and the candidates for which it is counted.
template <gradient_value Value>
struct digit {
  magnitude_range<Value> range;
  bits_of<Value> prefix = 0; ///< the digits above this one, of those that count
  int shift = 0;
  int width = 0;

  KOKKOS_INLINE_FUNCTION std::int64_t bins() const { return std::int64_t(1) << width; }

  /// The bin of a magnitude; negative if the magnitude does not count.
  KOKKOS_INLINE_FUNCTION std::int64_t bin(bits_of<Value> magnitude) const {
    if (magnitude < range.floor) {
      return -1;
    }
    bits_of<Value> const place = range.place(magnitude);
    // In two steps, since a shift by all bits of the pattern is not defined.
    if ((place >> shift >> (width - 1) >> 1) != prefix) {
      return -1;
    }
    return static_cast<std::int64_t>((place >> shift) & ((bits_of<Value>(1) << width) - 1));
  }

  KOKKOS_INLINE_FUNCTION bool first() const { return shift + width >= range.bits; }
  /// The lowest pattern that counts.
  KOKKOS_INLINE_FUNCTION bits_of<Value> lowest() const { return range.floor + (prefix << shift << width); }
  /// The first pattern above those that must be examined. For the first digit all patterns from there on are in its
  /// last bin; for a later digit they do not count. Zero if all patterns above count as the last place of a later
  /// digit, or if there is none: such a pattern would have the sign bit set, and masks compare patterns as signed
  /// numbers.
  KOKKOS_INLINE_FUNCTION bits_of<Value> beyond() const {
    bits_of<Value> const next = (prefix + 1) << shift << width;
    bits_of<Value> const above = range.floor + next;
    bool const open = !first() && next >> range.bits != 0;
    return open || above >> magnitude_bit_count<Value> != 0 ? 0 : above;
  }
};

/// The k-th largest magnitude, and how many of the candidates with it belong to the k largest.
template <gradient_value Value>
struct kth {
  bits_of<Value> threshold = 0; ///< pattern of the k-th largest magnitude
  std::int64_t ties = 0;        ///< candidates with exactly that magnitude
  std::int64_t ties_wanted = 0; ///< how many of them complete the k; those of the lowest indices

  /// The same number, or `every_entry` where all ties are wanted and need not be counted.
  std::int64_t ties_to_write() const { return ties_wanted == ties ? every_entry : ties_wanted; }
};

/// The knowledge of the k-th magnitude after some digits: it is one of 2^shift patterns.
template <gradient_value Value>
struct kth_bracket {
  bool found = false;            ///< it is in the range
  bits_of<Value> floor = 0;      ///< the lowest of the patterns
  int shift = 0;                 ///< the binary logarithm of their number
  std::int64_t above = 0;        ///< candidates of this rank with a larger pattern
  std::int64_t inside = 0;       ///< candidates of this rank with one of the patterns
  std::int64_t inside_total = 0; ///< the same of all ranks in the group
  std::int64_t wanted = 0;       ///< how many of `inside_total` belong to the k largest

  KOKKOS_INLINE_FUNCTION bool holds(bits_of<Value> magnitude) const {
    return magnitude >= floor && ((magnitude - floor) >> shift) == 0;
  }
};

/// Counts a digit in the whole blocks of 64 of a stretch on a CPU, if few of the candidates count: masks skip the
/// others. Returns the number of candidates in these blocks.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION std::int64_t count_few(Value const* values, std::int64_t size, digit<Value> which,
                                              std::int64_t* histogram) {
  bits_of<Value> const lowest = which.lowest();
  bits_of<Value> const beyond = which.beyond();
  constexpr int at_once = 32;
  std::uint64_t reaching[at_once];
  std::uint64_t passing[at_once] = {}; // those that are too large
  std::int64_t i = 0;
  while (i + mask_width <= size) {
    std::int64_t const whole = (size - i) / mask_width;
    int const blocks = whole < at_once ? static_cast<int>(whole) : at_once;
    magnitude_masks(values + i, blocks, lowest, reaching);
    if (beyond != 0) {
      magnitude_masks(values + i, blocks, beyond, passing);
    }
    std::int64_t above = 0;
    for (int block = 0; block < blocks; ++block, i += mask_width) {
      above += popcount(passing[block]);
      for (std::uint64_t left = reaching[block] & ~passing[block]; left != 0; left &= left - 1) {
        std::int64_t const bin = which.bin(magnitude_bits(values[i + lowest_bit(left)]));
        if (bin >= 0) {
          histogram[bin] += 1;
        }
      }
    }
    histogram[which.bins() - 1] += which.first() ? above : 0;
  }
  return i;
}

/// Counts a stretch on a CPU. For a first digit almost all candidates count; for later digits and for an octave almost
/// none.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION void count_stretch(Value const* values, std::int64_t size, digit<Value> which,
                                          std::int64_t* histogram) {
  bool const few = !which.first() || which.range.bits < std::numeric_limits<Value>::digits - 1;
  for (std::int64_t i = few ? count_few(values, size, which, histogram) : 0; i < size; ++i) {
    std::int64_t const bin = which.bin(magnitude_bits(values[i]));
    if (bin >= 0) {
      histogram[bin] += 1;
    }
  }
}

template <execution_space E>
std::int64_t histogram_rows(E const& exec) {
  return std::max<std::int64_t>(1, exec.concurrency());
}

// On a device each team counts a histogram in shared memory, then all add up; the last team leaves the sums zero again.

/// The widest digit: its histogram fits into the memory that a team shares.
inline constexpr int widest_shared_digit = 12;

/// Adds the number of a team's candidates in each bin to `sums`. Lanes of the last bin, which has most of them, add
/// together.
template <class Warp, gradient_value Value, class Count, class Team>
KOKKOS_INLINE_FUNCTION void count_by_team(Team const& team, Value const* values, std::int64_t size, digit<Value> which,
                                          Count* sums) {
  Warp const warp = warp_in<Warp>(team);
  std::int64_t const bins = std::int64_t(1) << which.width;
  auto* const own = shared_in<std::uint32_t>(team, bins);
  for (std::int64_t bin = team.team_rank(); bin < bins; bin += team.team_size()) {
    own[bin] = 0;
  }
  team.team_barrier();
  std::int64_t const stride = static_cast<std::int64_t>(team.league_size()) * warps_in_team<Warp> * Warp::lanes;
  constexpr int rows = 4; // loads that a lane has under way at a time
  for (std::int64_t first = warp_number_in_league<Warp>(team) * Warp::lanes; first < size; first += rows * stride) {
    typename Warp::template per_lane<std::int64_t> bin[std::size_t(rows)];
    for (int row = 0; row < rows; ++row) {
      std::int64_t const begin = first + row * stride;
      warp.each([&](int lane) {
        bin[row][lane] = begin + lane < size ? which.bin(magnitude_bits(values[begin + lane])) : -1;
      });
    }
    for (int row = 0; row < rows; ++row) {
      auto const last = warp.ballot([&](int lane) { return bin[row][lane] == bins - 1; });
      warp.once([&] {
        if (last != 0) {
          Kokkos::atomic_fetch_add(&own[bins - 1], static_cast<std::uint32_t>(popcount(last)));
        }
      });
      warp.each([&](int lane) {
        if (bin[row][lane] >= 0 && bin[row][lane] < bins - 1) {
          Kokkos::atomic_fetch_add(&own[bin[row][lane]], std::uint32_t(1));
        }
      });
    }
  }
  team.team_barrier();
  for (std::int64_t bin = team.team_rank(); bin < bins; bin += team.team_size()) {
    if (own[bin] != 0) {
      Kokkos::atomic_fetch_add(&sums[bin], static_cast<Count>(own[bin]));
    }
  }
}

/// Finds the bin with the `wanted`-th candidate, counted from the top bin, notes it in the record, and clears the bins.
/// Called by all threads of one team. If there are fewer candidates, nothing is noted.
template <class Warp, class Team>
KOKKOS_INLINE_FUNCTION void find_bin(Team const& team, std::uint32_t* sums, int width, selection_record& record) {
  auto* const scratch = shared_in<std::int64_t>(team, numbers_to_scan<Warp>);
  std::int64_t const bins = std::int64_t(1) << width;
  std::int64_t const share = (bins + team.team_size() - 1) / team.team_size();
  std::int64_t const first = team.team_rank() * share; // from the top
  std::int64_t const end = first + share < bins ? first + share : bins;
  std::int64_t own = 0;
  for (std::int64_t at = first; at < end; ++at) {
    own += sums[bins - 1 - at];
  }
  std::int64_t total = 0;
  std::int64_t const wanted = record.wanted;
  std::int64_t above =
      sum_before<Warp, Team, std::int64_t>(team, own, scratch, total); // all have read the record after it
  if (above < wanted && wanted <= above + own) {
    std::int64_t at = first;
    for (; above + sums[bins - 1 - at] < wanted; ++at) {
      above += sums[bins - 1 - at];
    }
    std::int64_t const bin = bins - 1 - at;
    record.wanted = wanted - above;
    record.prefix = (record.prefix << width) | bin;
    record.below_last |= bin != bins - 1 ? 1 : 0;
  }
  for (std::int64_t at = first; at < end; ++at) {
    sums[bins - 1 - at] = 0;
  }
}

/// Counts a digit. Either the host knows the digit and reads the histogram from `out`; or it is a later digit of
/// candidates that were gathered: then the record has the digits before it, and gets the bin.
template <class Warp, bool Gathered, execution_space E, gradient_value Value>
struct digit_kernel {
  using count_type = std::conditional_t<Gathered, std::uint32_t, std::int64_t>;

  Value const* values;
  std::int64_t size; ///< or the room for those that were gathered
  digit<Value> which;
  count_type* sums;
  selection_record* record;
  std::int64_t* out = nullptr;

  KOKKOS_INLINE_FUNCTION void operator()(team_of<E> const& team) const {
    digit<Value> known = which;
    std::int64_t count = size;
    if constexpr (Gathered) {
      known.prefix = static_cast<bits_of<Value>>(record->prefix);
      count = record->count <= size ? record->count : 0;
    }
    count_by_team<Warp>(team, values, count, known, sums);
    if (is_last_team(team, &record->arrived)) {
      if constexpr (Gathered) {
        find_bin<Warp>(team, sums, known.width, *record);
      } else {
        for (std::int64_t bin = team.team_rank(); bin < which.bins(); bin += team.team_size()) {
          out[bin] = sums[bin];
          sums[bin] = 0;
        }
      }
    }
  }
};

/// Enqueues the kernel for `candidates` candidates.
template <class Warp, bool Gathered, execution_space E, gradient_value Value>
void count_digit_by_teams(E const& exec, std::int64_t candidates,
                          digit_kernel<Warp, Gathered, E, Value> const& kernel) {
  std::int64_t const bins = kernel.which.bins();
  // Four candidates a thread at least; at most as many teams as a large GPU runs at a time.
  std::int64_t const teams = std::clamp<std::int64_t>(candidates / 1024, 1, 1024);
  for_teams<Warp>("oktopk::select::count_digit", exec, teams,
                  bins * std::int64_t(sizeof(std::uint32_t)) + bytes_to_scan<Warp>, // to find the bin, too
                  kernel);
}

/// The most bits of a digit that `count_digit` takes.
template <execution_space E>
inline constexpr int widest_digit = is_device<E> ? widest_shared_digit : std::numeric_limits<int>::max();

/// Makes room for `count_digit` with `bins` bins, and for as many further numbers of the host.
template <execution_space E, gradient_index Index, gradient_value Value>
void reserve_digit(E const& exec, std::int64_t bins, selection_workspace<Index, Value, E>& workspace) {
  if constexpr (is_device<E>) {
    workspace.on_device.sums.reserve(exec, bins);
    workspace.on_device.record.reserve(exec, 1);
  } else {
    workspace.histograms.reserve(exec, histogram_rows(exec) * bins);
  }
  workspace.numbers.reserve(exec, 2 * bins);
}

/// Enqueues the histogram of a digit, which is written to the first of `workspace.numbers`.
template <execution_space E, gradient_index Index, gradient_value Value>
void count_digit(E const& exec, array_ref<Value const, typename E::memory_space> values, digit<Value> which,
                 selection_workspace<Index, Value, E>& workspace) {
  std::int64_t* const out = workspace.numbers.device().data();
  auto const size = static_cast<std::int64_t>(values.extent(0));
  if constexpr (is_device<E>) {
    count_digit_by_teams(exec, size,
                         digit_kernel<warp_of<E>, false, E, Value>{values.data(), size, which,
                                                                   workspace.on_device.sums.data(),
                                                                   workspace.on_device.record.data(), out});
  } else { // each thread fills a histogram of its own; a second kernel adds them up
    std::int64_t* const histograms = workspace.histograms.data();
    std::int64_t const bins = which.bins();
    std::int64_t const rows = histogram_rows(exec);
    fill_array("oktopk::select::clear_histograms", exec, histograms, rows * bins, std::int64_t(0));
    Kokkos::parallel_for("oktopk::select::count_digit", index_range<E>(exec, 0, rows), [=](std::int64_t row) {
      std::int64_t const begin = even_boundary(size, rows, row);
      count_stretch(values.data() + begin, even_boundary(size, rows, row + 1) - begin, which, histograms + row * bins);
    });
    Kokkos::parallel_for("oktopk::select::add_histograms", index_range<E>(exec, 0, bins), [=](std::int64_t bin) {
      std::int64_t sum = 0;
      for (std::int64_t row = 0; row < rows; ++row) {
        sum += histograms[row * bins + bin];
      }
      out[bin] = sum;
    });
  }
}

/// The second task of the gathering pass: the histogram of the range's first digit, and the bin of the `wanted`-th
/// candidate.
template <gradient_value Value>
struct first_digit {
  digit<Value> which;
  std::int64_t wanted;
  std::uint32_t* sums;

  KOKKOS_INLINE_FUNCTION void see(bits_of<Value> magnitude) const {
    std::int64_t const bin = which.bin(magnitude);
    if (bin >= 0) {
      Kokkos::atomic_fetch_add(&sums[bin], std::uint32_t(1));
    }
  }

  template <class Warp, class Team>
  KOKKOS_INLINE_FUNCTION void finish(Team const& team, selection_record& record) const {
    if (team.team_rank() == 0) {
      record.wanted = wanted;
    }
    team.team_barrier();
    find_bin<Warp>(team, sums, which.width, record);
  }
};

} // namespace oktopk::detail
