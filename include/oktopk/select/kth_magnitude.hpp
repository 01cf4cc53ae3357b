// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/detail/kokkos_ext/bits.hpp>
#include <oktopk/detail/kokkos_ext/magnitude_mask.hpp>
#include <oktopk/select/concept.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>

namespace oktopk {

/// The k-th largest magnitude, and who among those equal to it belongs to the k.
template <gradient_value Value>
struct kth {
  detail::bits_of<Value> threshold = 0; ///< pattern of the k-th largest magnitude
  std::int64_t ties = 0;                ///< candidates with exactly that magnitude
  std::int64_t ties_wanted = 0;         ///< how many of them complete the k; the lowest indices
};

/// The patterns of magnitudes that a search looks at closely: 2^bits of them from `floor` on. What is below is passed
/// over, what is above counts as the largest of them. All of them unless told otherwise.
template <gradient_value Value>
struct magnitude_range {
  detail::bits_of<Value> floor = 0;
  int bits = detail::magnitude_bit_count<Value>;

  /// The place in the range of a pattern that is not below it.
  KOKKOS_INLINE_FUNCTION detail::bits_of<Value> place(detail::bits_of<Value> magnitude) const {
    detail::bits_of<Value> const last = (detail::bits_of<Value>(1) << bits) - 1;
    detail::bits_of<Value> const above = magnitude - floor;
    return above < last ? above : last;
  }
};

namespace detail {

/// One digit of the places in a range: what is counted, and among which.
template <gradient_value Value>
struct digit {
  magnitude_range<Value> range;
  bits_of<Value> prefix = 0; ///< the digits above this one, of those that count
  int shift = 0;
  int width = 0;

  std::int64_t bins() const { return std::int64_t(1) << width; }

  /// The bin of a magnitude; none where it is negative.
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

  bool first() const { return shift + width >= range.bits; }
  /// The lowest pattern that counts.
  KOKKOS_INLINE_FUNCTION bits_of<Value> lowest() const { return range.floor + (prefix << shift << width); }
  /// The first pattern above those that count; zero where all above count as the last place.
  KOKKOS_INLINE_FUNCTION bits_of<Value> beyond() const {
    bits_of<Value> const next = (prefix + 1) << shift << width;
    return next >> range.bits != 0 ? 0 : range.floor + next;
  }
};

/// Counts a stretch on a CPU. Of the first digit almost all candidates count, of the later ones almost none: there one
/// mask passes over 64 of them.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION void count_stretch(Value const* values, std::int64_t size, digit<Value> which, bool first,
                                          std::int64_t* histogram) {
  std::int64_t i = 0;
  if (!first) {
    bits_of<Value> const lowest = which.lowest();
    bits_of<Value> const beyond = which.beyond();
    for (; i + mask_width <= size; i += mask_width) {
      std::uint64_t left = magnitude_mask(values + i, lowest);
      if (beyond != 0) {
        left &= ~magnitude_mask(values + i, beyond);
      }
      for (; left != 0; left &= left - 1) {
        std::int64_t const bin = which.bin(magnitude_bits(values[i + lowest_bit(left)]));
        if (bin >= 0) {
          histogram[bin] += 1;
        }
      }
    }
  }
  for (; i < size; ++i) {
    std::int64_t const bin = which.bin(magnitude_bits(values[i]));
    if (bin >= 0) {
      histogram[bin] += 1;
    }
  }
}

/// Adds to `rows` histograms of one digit what it counts.
///
/// On a CPU each thread has a histogram of its own; on a device threads share some, by atomics on integers, whose sum
/// does not depend on the order.
template <execution_space E, gradient_value Value>
void count_digit(E const& exec, array_ref<Value const, typename E::memory_space> values, digit<Value> which,
                 std::int64_t rows, std::int64_t* histograms) {
  auto const size = static_cast<std::int64_t>(values.extent(0));
  std::int64_t const bins = which.bins();
  bool const first = which.first();
  Kokkos::parallel_for(
      "oktopk::select::clear_histograms", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec, 0, rows * bins),
      KOKKOS_LAMBDA(std::int64_t i) { histograms[i] = 0; });
  if constexpr (is_device<E>) {
    Kokkos::parallel_for(
        "oktopk::select::count_digit", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec, 0, size),
        KOKKOS_LAMBDA(std::int64_t i) {
          std::int64_t const bin = which.bin(magnitude_bits(values(i)));
          if (bin >= 0) {
            Kokkos::atomic_fetch_add(&histograms[(i / 32 % rows) * bins + bin], std::int64_t(1));
          }
        });
  } else {
    Kokkos::parallel_for(
        "oktopk::select::count_digit", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec, 0, rows),
        KOKKOS_LAMBDA(std::int64_t row) {
          std::int64_t const begin = size / rows * row + (row < size % rows ? row : size % rows);
          std::int64_t const end = begin + size / rows + (row < size % rows ? 1 : 0);
          count_stretch(values.data() + begin, end - begin, which, first, histograms + row * bins);
        });
  }
}

/// Sums the rows into the numbers that the host reads.
template <execution_space E>
void add_histograms(E const& exec, std::int64_t rows, std::int64_t bins, std::int64_t const* histograms,
                    std::int64_t* sums) {
  Kokkos::parallel_for(
      "oktopk::select::add_histograms", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec, 0, bins),
      KOKKOS_LAMBDA(std::int64_t bin) {
        std::int64_t sum = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
          sum += histograms[row * bins + bin];
        }
        sums[bin] = sum;
      });
}

} // namespace detail

/// What is known of the k-th magnitude after some digits: it is one of 2^shift patterns.
template <gradient_value Value>
struct kth_bracket {
  bool found = false;               ///< whether it is in the range at all
  detail::bits_of<Value> floor = 0; ///< the lowest of the patterns
  int shift = 0;                    ///< the logarithm of how many there are
  std::int64_t above = 0;           ///< candidates of this rank with a larger pattern
  std::int64_t inside = 0;          ///< candidates of this rank with one of the patterns
  std::int64_t inside_total = 0;    ///< of all ranks in the scope
  std::int64_t wanted = 0;          ///< how many of `inside_total` belong to the k largest

  KOKKOS_INLINE_FUNCTION bool holds(detail::bits_of<Value> magnitude) const {
    return magnitude >= floor && ((magnitude - floor) >> shift) == 0;
  }
};

/// Brackets the k-th largest magnitude of all candidates in the scope, until no more than `enough` of them are inside.
///
/// By radix on the bit pattern of |x|: digit by digit from the top, a histogram of the candidates that share the digits
/// found so far decides the next one. No sort, no copy of the values, any magnitudes (denormal, infinite, NaN) ordered
/// as their patterns are. Reads the candidates once a digit: 3 times (float) with the local scope's 12 bits. Sends one
/// histogram a digit through `scope.sum`. With fewer than k candidates all are wanted. k must be positive.
///
/// A narrower range, the same on all ranks of the scope, takes fewer digits; where the k-th magnitude is not in it (or
/// is the last pattern of it) it is not found, on any rank.
template <execution_space E, gradient_index Index, gradient_value Value, selection_scope Scope>
kth_bracket<Value> bracket_kth(E const& exec, candidates<Index, Value, typename E::memory_space> from, std::int64_t k,
                               Scope& scope, selection_workspace<Index, Value, E>& workspace,
                               magnitude_range<Value> range, std::int64_t enough) {
  bool const whole = range.bits == detail::magnitude_bit_count<Value>;
  int const digit_bits = scope.kth_digit_bits(k, range.bits);
  std::int64_t const most_bins = std::int64_t(1) << digit_bits;
  std::int64_t const rows = detail::is_device<E> ? 64 : std::max<std::int64_t>(1, exec.concurrency());
  workspace.histograms.reserve(exec, rows * most_bins);
  workspace.numbers.reserve(exec, 2 * most_bins);

  kth_bracket<Value> result;
  detail::digit<Value> which{range, 0, 0, 0};
  std::int64_t wanted = k;
  bool at_the_end = !whole;
  for (int left = range.bits; left > 0 && (left == range.bits || at_the_end || result.inside_total > enough);
       left = which.shift) {
    which.width = std::min(digit_bits, left);
    which.shift = left - which.width;
    std::int64_t const bins = which.bins();
    detail::count_digit(exec, from.values, which, rows, workspace.histograms.data());
    detail::add_histograms(exec, rows, bins, workspace.histograms.data(), workspace.numbers.device().data());
    workspace.numbers.to_host(exec, bins, "oktopk::select::bracket_kth");
    std::int64_t* const mine = workspace.numbers.host();
    std::int64_t* const all = mine + most_bins;
    std::copy(mine, mine + bins, all);
    scope.sum(std::span<std::int64_t>(all, static_cast<std::size_t>(bins)));
    if (left == range.bits) {
      std::int64_t const reaching = std::accumulate(all, all + bins, std::int64_t(0));
      if (!whole && reaching < k) {
        return {};
      }
      wanted = std::min(wanted, reaching);
    }
    std::int64_t bin = bins - 1;
    while (bin > 0 && all[bin] < wanted) {
      wanted -= all[bin];
      result.above += mine[bin];
      bin -= 1;
    }
    which.prefix =
        static_cast<detail::bits_of<Value>>((which.prefix << which.width) | static_cast<detail::bits_of<Value>>(bin));
    result.inside = mine[bin];
    result.inside_total = all[bin];
    // The last place of a range stands for all that is above, too.
    at_the_end = at_the_end && bin == bins - 1;
  }
  if (at_the_end) {
    return {};
  }
  result.found = true;
  result.floor = static_cast<detail::bits_of<Value>>(which.prefix << which.shift) + range.floor;
  result.shift = which.shift;
  result.wanted = std::min(wanted, result.inside_total);
  return result;
}

/// The exact k-th largest magnitude of one rank's candidates; see `bracket_kth`. It must be in the range.
template <execution_space E, gradient_index Index, gradient_value Value>
kth<Value> kth_magnitude(E const& exec, candidates<Index, Value, typename E::memory_space> from, std::int64_t k,
                         selection_workspace<Index, Value, E>& workspace, magnitude_range<Value> range = {}) {
  local_scope alone;
  auto const bracket = bracket_kth(exec, from, k, alone, workspace, range, 0);
  return {bracket.floor, bracket.inside, bracket.wanted};
}

} // namespace oktopk
