// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/kernels.hpp>
#include <oktopk/core/kokkos_ext/memory.hpp>
#include <oktopk/core/sparse.hpp>
#include <oktopk/select/kernel/magnitude_mask.hpp>

#include <cstdint>
#include <limits>

// Histograms of one digit of the patterns of magnitudes: what the search for the k-th reads candidates for.
namespace oktopk::detail {

/// The patterns of magnitudes that a search looks at closely: 2^bits of them from `floor` on. What is below is passed
/// over, what is above counts as the largest of them. All of them unless told otherwise.
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

/// One digit of the places in a range: what is counted, and among which.
template <gradient_value Value>
struct digit {
  magnitude_range<Value> range;
  bits_of<Value> prefix = 0; ///< the digits above this one, of those that count
  int shift = 0;
  int width = 0;

  KOKKOS_INLINE_FUNCTION std::int64_t bins() const { return std::int64_t(1) << width; }

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

  KOKKOS_INLINE_FUNCTION bool first() const { return shift + width >= range.bits; }
  /// The lowest pattern that counts.
  KOKKOS_INLINE_FUNCTION bits_of<Value> lowest() const { return range.floor + (prefix << shift << width); }
  /// The first pattern above those that must be looked at: of the first digit all from there on are in its last bin, of
  /// a later one they do not count. Zero where all above count as the last place of a later digit, and where there is
  /// none: such a pattern would have the sign bit set, and masks compare patterns as signed numbers.
  KOKKOS_INLINE_FUNCTION bits_of<Value> beyond() const {
    bits_of<Value> const next = (prefix + 1) << shift << width;
    bits_of<Value> const above = range.floor + next;
    bool const open = !first() && next >> range.bits != 0;
    return open || above >> magnitude_bit_count<Value> != 0 ? 0 : above;
  }
};

/// Counts whole blocks of 64 of a stretch on a CPU, of a digit that few of the candidates decide: masks pass over the
/// others. Returns how many candidates these blocks have.
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

/// Counts a stretch on a CPU. Of the first digit almost all candidates count, of the later ones, and of a range within
/// an octave, almost none.
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

/// Fills `rows` histograms of one digit, which together are that of all values. On a CPU, each thread one of its own.
template <execution_space E, gradient_value Value>
void count_digit(E const& exec, array_ref<Value const, typename E::memory_space> values, digit<Value> which,
                 std::int64_t rows, std::int64_t* histograms) {
  auto const size = static_cast<std::int64_t>(values.extent(0));
  std::int64_t const bins = which.bins();
  Kokkos::parallel_for("oktopk::select::clear_histograms", index_range<E>(exec, 0, rows * bins),
                       [=](std::int64_t i) { histograms[i] = 0; });
  Kokkos::parallel_for("oktopk::select::count_digit", index_range<E>(exec, 0, rows), [=](std::int64_t row) {
    std::int64_t const begin = size / rows * row + (row < size % rows ? row : size % rows);
    std::int64_t const end = begin + size / rows + (row < size % rows ? 1 : 0);
    count_stretch(values.data() + begin, end - begin, which, histograms + row * bins);
  });
}

/// Sums the rows into the numbers that the host reads.
template <execution_space E>
void add_histograms(E const& exec, std::int64_t rows, std::int64_t bins, std::int64_t const* histograms,
                    std::int64_t* sums) {
  Kokkos::parallel_for("oktopk::select::add_histograms", index_range<E>(exec, 0, bins), [=](std::int64_t bin) {
    std::int64_t sum = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      sum += histograms[row * bins + bin];
    }
    sums[bin] = sum;
  });
}

} // namespace oktopk::detail
