// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/format/packed/bit_stream.hpp>

#include <cstddef>
#include <cstdint>

// 256 numbers of one width as 8 streams side by side (vertical layout; Lemire and Boytsov 2015, simdcomp): number i
// lies in stream i mod 8, and the words of the streams take turns. All 8 numbers of a row have the same shifts, so that
// the compiler's vectors hold them.
namespace oktopk::detail {

inline constexpr int row_lanes = 8;
inline constexpr int rows_of_block = 32;

#if !defined(__CUDA_ARCH__) && !defined(__HIP_DEVICE_COMPILE__)

using four_words [[gnu::vector_size(16)]] = std::uint32_t;

/// The 8 numbers of a row.
struct row_vector {
  four_words low;
  four_words high;
};

inline void load_row(void const* from, row_vector& row) {
  __builtin_memcpy(&row, from, sizeof row);
}
inline void store_row(void* to, row_vector const& row) {
  __builtin_memcpy(to, &row, sizeof row);
}

#endif

/// Writes 256 numbers below 2^width, 1 to 32 bits each: 32 x width bytes.
KOKKOS_FORCEINLINE_FUNCTION void pack_rows(std::uint32_t const* numbers, int width, std::byte* to) {
#if !defined(__CUDA_ARCH__) && !defined(__HIP_DEVICE_COMPILE__)
  row_vector pending{};
  int filled = 0;
  for (int r = 0; r < rows_of_block; ++r) {
    row_vector row;
    load_row(numbers + std::ptrdiff_t(r) * row_lanes, row);
    pending.low |= row.low << filled;
    pending.high |= row.high << filled;
    filled += width;
    if (filled >= 32) {
      store_row(to, pending);
      to += sizeof pending;
      filled -= 32;
      pending = row_vector{};
      if (filled > 0) {
        pending.low = row.low >> (width - filled);
        pending.high = row.high >> (width - filled);
      }
    }
  }
#else
  for (int lane = 0; lane < row_lanes; ++lane) {
    std::uint64_t pending = 0;
    int filled = 0;
    std::byte* at = to + std::ptrdiff_t(lane) * 4;
    for (int r = 0; r < rows_of_block; ++r) {
      pending |= std::uint64_t(numbers[r * row_lanes + lane]) << filled;
      filled += width;
      if (filled >= 32) {
        store_to(at, static_cast<std::uint32_t>(pending));
        at += row_lanes * 4;
        pending >>= 32;
        filled -= 32;
      }
    }
  }
#endif
}

/// Reads what `pack_rows` wrote.
KOKKOS_FORCEINLINE_FUNCTION void unpack_rows(std::byte const* from, int width, std::uint32_t* numbers) {
  auto const mask = static_cast<std::uint32_t>(low_bits(width));
#if !defined(__CUDA_ARCH__) && !defined(__HIP_DEVICE_COMPILE__)
  row_vector words;
  int left = 0; // bits of the words that are not read yet
  for (int r = 0; r < rows_of_block; ++r) {
    row_vector row{};
    int const missing = width - left;
    if (left > 0) {
      row.low = words.low >> (32 - left);
      row.high = words.high >> (32 - left);
    }
    if (missing > 0) {
      load_row(from, words);
      from += sizeof words;
      row.low |= words.low << left;
      row.high |= words.high << left;
      left = 32 - missing;
    } else {
      left = -missing;
    }
    row.low &= mask;
    row.high &= mask;
    store_row(numbers + std::ptrdiff_t(r) * row_lanes, row);
  }
#else
  for (int lane = 0; lane < row_lanes; ++lane) {
    std::uint64_t words = 0;
    int left = 0;
    std::byte const* at = from + std::ptrdiff_t(lane) * 4;
    for (int r = 0; r < rows_of_block; ++r) {
      if (left < width) {
        words |= std::uint64_t(load_from<std::uint32_t>(at)) << left;
        at += row_lanes * 4;
        left += 32;
      }
      numbers[r * row_lanes + lane] = static_cast<std::uint32_t>(words) & mask;
      words >>= width;
      left -= width;
    }
  }
#endif
}

/// Whether so many numbers lie in rows: those of a whole block, of which one may be missing, as among gaps.
template <class Word>
KOKKOS_FORCEINLINE_FUNCTION constexpr bool in_rows(int count) {
  return sizeof(Word) == 4 && count >= row_lanes * rows_of_block - 1;
}

/// Bytes of `count` numbers of one width, 256 at most.
template <class Word>
KOKKOS_FORCEINLINE_FUNCTION constexpr int packed_bytes(int count, int width) {
  return in_rows<Word>(count) ? rows_of_block * width : (count * width + 7) / 8;
}

/// Appends `count` numbers below 2^width; gives the end. `numbers` has 256 places, of which the last is 0 where there
/// is no number.
template <class Word>
KOKKOS_FORCEINLINE_FUNCTION std::byte* pack_numbers(std::byte* to, Word const* numbers, int count, int width) {
  if constexpr (sizeof(Word) == 4) {
    if (in_rows<Word>(count)) {
      if (width > 0) {
        pack_rows(numbers, width, to);
      }
      return to + packed_bytes<Word>(count, width);
    }
  }
  return put_all(to, numbers, count, width);
}

/// Reads what `pack_numbers` wrote; `numbers` has 256 places.
template <class Word>
KOKKOS_FORCEINLINE_FUNCTION void unpack_numbers(std::byte const* from, int count, int width, Word* numbers) {
  if constexpr (sizeof(Word) == 4) {
    if (in_rows<Word>(count) && width > 0) {
      unpack_rows(from, width, numbers);
      return;
    }
  }
  for (int i = 0; i < count; ++i) {
    numbers[i] = number_at<Word>(from, i, width);
  }
}

} // namespace oktopk::detail
