// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/integers.hpp>
#include <oktopk/select/kernel/source.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

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

/// The widest digit of a device: its histogram fits into the memory that a team shares.
inline constexpr int widest_shared_digit = 12;

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
    count_digit_on_device(exec, values, which, workspace);
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

} // namespace oktopk::detail
