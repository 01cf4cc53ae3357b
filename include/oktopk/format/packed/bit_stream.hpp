// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

// Numbers of any width in bits, one after the other, the lowest bits first. A thread writes and reads 8 bytes at a
// time.
namespace oktopk::detail {

static_assert(std::endian::native == std::endian::little, "oktopk: packed messages are for little-endian processors");

/// The widest number that a bit stream takes at once.
inline constexpr int widest_put = 56;

/// Bytes around a stream that are written and read beside its own.
inline constexpr int stream_slack = 8;

KOKKOS_FORCEINLINE_FUNCTION constexpr std::uint64_t low_bits(int width) {
  return width >= 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << width) - 1;
}

/// Bits of the smallest width that holds x: 0 for 0.
KOKKOS_FORCEINLINE_FUNCTION constexpr int bit_width(std::uint64_t x) {
  int width = 0;
  for (int half = 32; half > 0; half /= 2) {
    if (x >> half != 0) {
      width += half;
      x >>= half;
    }
  }
  return width + (x != 0 ? 1 : 0);
}

template <class T>
KOKKOS_FORCEINLINE_FUNCTION T load_from(std::byte const* from) {
  T loaded;
  __builtin_memcpy(&loaded, from, sizeof loaded);
  return loaded;
}

template <class T>
KOKKOS_FORCEINLINE_FUNCTION void store_to(std::byte* to, T stored) {
  __builtin_memcpy(to, &stored, sizeof stored);
}

/// Writes a stream; up to `stream_slack` bytes behind it are overwritten.
class bit_writer {
public:
  KOKKOS_FORCEINLINE_FUNCTION explicit bit_writer(std::byte* to) : to_(to) {}

  /// Appends a number below 2^width, of `widest_put` bits at most.
  KOKKOS_FORCEINLINE_FUNCTION void put(std::uint64_t number, int width) {
    pending_ |= number << filled_;
    store_to(to_, pending_);
    filled_ += width;
    to_ += filled_ >> 3;
    pending_ >>= filled_ & ~7;
    filled_ &= 7;
  }

  /// The first byte behind the stream, whose last byte may be filled in part.
  KOKKOS_FORCEINLINE_FUNCTION std::byte* end() const { return to_ + (filled_ > 0 ? 1 : 0); }

private:
  std::byte* to_;
  std::uint64_t pending_ = 0;
  int filled_ = 0;
};

/// The number of `widest_put` bits at most that begins at a bit of a stream, with the bits that follow it; up to
/// `stream_slack` bytes behind the stream are read.
KOKKOS_FORCEINLINE_FUNCTION std::uint64_t bits_from(std::byte const* stream, std::int64_t bit) {
  return load_from<std::uint64_t>(stream + (bit >> 3)) >> (bit & 7);
}

/// Bytes of a stream of so many bits.
KOKKOS_FORCEINLINE_FUNCTION constexpr std::int64_t stream_bytes(std::int64_t bits) {
  return (bits + 7) / 8;
}

/// Appends `count` numbers below 2^width; gives the end of the stream.
template <class Word>
KOKKOS_FORCEINLINE_FUNCTION std::byte* put_all(std::byte* to, Word const* numbers, int count, int width) {
  bit_writer out(to);
  int i = 0;
  if (width <= widest_put / 4) { // four at a time, for each `put` waits for the one before
    for (; i + 4 <= count; i += 4) {
      out.put(std::uint64_t(numbers[i]) | std::uint64_t(numbers[i + 1]) << width |
                  (std::uint64_t(numbers[i + 2]) | std::uint64_t(numbers[i + 3]) << width) << (2 * width),
              4 * width);
    }
  } else if (width <= widest_put / 2) {
    for (; i + 2 <= count; i += 2) {
      out.put(std::uint64_t(numbers[i]) | std::uint64_t(numbers[i + 1]) << width, 2 * width);
    }
  }
  for (; i < count; ++i) {
    if constexpr (sizeof(Word) == 8) {
      int const low = width < 32 ? width : 32;
      out.put(numbers[i] & low_bits(low), low);
      out.put(numbers[i] >> low, width - low);
    } else {
      out.put(numbers[i], width);
    }
  }
  return out.end();
}

/// Reads number i of a stream of numbers of one width.
template <class Word>
KOKKOS_FORCEINLINE_FUNCTION Word number_at(std::byte const* stream, std::int64_t i, int width) {
  if constexpr (sizeof(Word) == 8) {
    if (width > widest_put) {
      std::int64_t const bit = i * width;
      return (bits_from(stream, bit) & low_bits(32)) | (bits_from(stream, bit + 32) & low_bits(width - 32)) << 32;
    }
  }
  return static_cast<Word>(bits_from(stream, i * width) & low_bits(width));
}

} // namespace oktopk::detail
