// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/format/values/concept.hpp>

#include <bit>
#include <cstdint>

// Numbers of any width in bits, one after the other, the lowest bits first. A thread writes and reads 8 bytes at a
// time.
namespace oktopk::detail {

static_assert(std::endian::native == std::endian::little, "oktopk: packed messages are for little-endian processors");

/// The widest number that a bit stream takes at once.
inline constexpr int widest_put = 56;

/// Bytes behind a stream that may also be written and read.
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

/// Appends `count` numbers below 2^width; gives the end of the stream.
template <class Word>
KOKKOS_FORCEINLINE_FUNCTION std::byte* put_all(std::byte* to, Word const* numbers, int count, int width) {
  bit_writer out(to);
  int i = 0;
  if (width <= widest_put / 4) { // four at a time, because each `put` depends on the one before
    for (; i + 4 <= count; i += 4) {
      out.put(std::uint64_t(numbers[i]) | std::uint64_t(numbers[i + 1]) << width |
                  (std::uint64_t(numbers[i + 2]) | std::uint64_t(numbers[i + 3]) << width) << (2 * width),
              4 * width);
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

// 256 numbers of one width as 8 streams side by side (vertical layout; Lemire and Boytsov 2015, simdcomp): number i
// lies in stream i mod 8, and the words of the streams take turns. All 8 numbers of a row have the same shifts, so that
// the compiler's vectors hold them.

inline constexpr int row_lanes = 8;
inline constexpr int rows_of_block = 32;

/// The numbers of a row that one thread has at a time: all 8 of them on the host, one on a device.
#if !defined(__CUDA_ARCH__) && !defined(__HIP_DEVICE_COMPILE__)
struct row_vector {
  using words [[gnu::vector_size(16)]] = std::uint32_t; // twice: without AVX2, longer vectors lie in memory
  words low;
  words high;

  KOKKOS_FORCEINLINE_FUNCTION void operator|=(row_vector const& other) {
    low |= other.low;
    high |= other.high;
  }
  KOKKOS_FORCEINLINE_FUNCTION void operator&=(std::uint32_t mask) {
    low &= mask;
    high &= mask;
  }
  KOKKOS_FORCEINLINE_FUNCTION row_vector operator<<(int bits) const { return {low << bits, high << bits}; }
  KOKKOS_FORCEINLINE_FUNCTION row_vector operator>>(int bits) const { return {low >> bits, high >> bits}; }
};
#else
using row_vector = std::uint32_t;
#endif
inline constexpr int lanes_at_once = sizeof(row_vector) / sizeof(std::uint32_t);

/// Writes 256 numbers below 2^width, 1 to 32 bits each: 32 x width bytes.
KOKKOS_FORCEINLINE_FUNCTION void pack_rows(std::uint32_t const* numbers, int width, std::byte* to) {
  for (int lane = 0; lane < row_lanes; lane += lanes_at_once) {
    row_vector pending{};
    int filled = 0;
    std::byte* at = to + std::ptrdiff_t(lane) * 4;
    for (int r = 0; r < rows_of_block; ++r) {
      row_vector row;
      __builtin_memcpy(&row, numbers + std::ptrdiff_t(r) * row_lanes + lane, sizeof row);
      pending |= row << filled;
      filled += width;
      if (filled >= 32) {
        __builtin_memcpy(at, &pending, sizeof pending);
        at += std::ptrdiff_t(row_lanes) * 4;
        filled -= 32;
        pending = filled > 0 ? row >> (width - filled) : row_vector{};
      }
    }
  }
}

/// Reads what `pack_rows` wrote.
KOKKOS_FORCEINLINE_FUNCTION void unpack_rows(std::byte const* from, int width, std::uint32_t* numbers) {
  auto const mask = static_cast<std::uint32_t>(low_bits(width));
  for (int lane = 0; lane < row_lanes; lane += lanes_at_once) {
    row_vector words{};
    int left = 0; // bits of the words that are not read yet
    std::byte const* at = from + std::ptrdiff_t(lane) * 4;
    for (int r = 0; r < rows_of_block; ++r) {
      row_vector row = left > 0 ? words >> (32 - left) : row_vector{};
      int const missing = width - left;
      if (missing > 0) {
        __builtin_memcpy(&words, at, sizeof words);
        at += std::ptrdiff_t(row_lanes) * 4;
        row |= words << left;
      }
      left = missing > 0 ? 32 - missing : -missing;
      row &= mask;
      __builtin_memcpy(numbers + std::ptrdiff_t(r) * row_lanes + lane, &row, sizeof row);
    }
  }
}

/// True if `count` numbers lie in rows: those of a whole block, or one fewer, as for gaps.
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

/// A block of signs and magnitudes: each magnitude as its difference to the smallest one, in one width per block, with
/// patched outliers.
///
/// Magnitudes are unsigned numbers of `Bits` bits: patterns of floating-point numbers without their signs, or levels of
/// a quantizer. Selected entries lie above a threshold and most of them within a few times of it, so that few bits of
/// their exponents remain. On the wire: the base (the upper 16 bits of the smallest), width, number of patches; then
/// sign and difference of each value; then the places of the outliers and the upper parts of their differences.
template <int Bits>
struct magnitude_block {
  using word = std::conditional_t<Bits <= 31, std::uint32_t, std::uint64_t>;
  using base_type = std::conditional_t<Bits <= 8, std::uint8_t, std::uint16_t>;
  using patch_type = std::conditional_t<Bits <= 31, std::uint8_t, std::uint16_t>;

  static constexpr int magnitude_bits = Bits;
  static constexpr int base_shift = Bits > 16 ? Bits - 16 : 0;
  static constexpr int header_bytes = static_cast<int>(sizeof(base_type)) + 2;
  static constexpr int patch_bytes = 1 + static_cast<int>(sizeof(patch_type));

  /// The most bytes of a block: those of the full width without patches, which is always tried.
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int most_bytes(int count) {
    return header_bytes + packed_bytes<word>(count, Bits + 1);
  }

  /// Encodes `codes`, each 2 x magnitude + sign, which are overwritten, in an array of 256; gives the end.
  KOKKOS_FORCEINLINE_FUNCTION static std::byte* encode(word* codes, int count, std::byte* out) {
    word smallest = ~word(0);
    word largest = 0;
    for (int i = 0; i < count; ++i) {
      smallest = codes[i] < smallest ? codes[i] : smallest;
      largest = codes[i] > largest ? codes[i] : largest;
    }
    word const base = smallest >> 1 >> base_shift << base_shift;
    for (int i = 0; i < count; ++i) {
      codes[i] -= base << 1;
    }
    if (count == block_values - 1) {
      codes[count] = 0;
    }
    int const width = best_width(codes, count, bit_width((largest - (base << 1)) >> 1));
    store_to(out, static_cast<base_type>(base >> base_shift));
    out[sizeof(base_type)] = static_cast<std::byte>(width);
    std::byte* const patch_count = out + sizeof(base_type) + 1;
    out += header_bytes;
    int patches = 0;
    std::uint8_t places[block_values];
    patch_type uppers[block_values];
    if ((largest - (base << 1)) >> 1 > low_bits(width)) {
      auto const kept = static_cast<word>(low_bits(width + 1));
      for (int i = 0; i < count; ++i) {
        places[patches] = static_cast<std::uint8_t>(i);
        uppers[patches] = static_cast<patch_type>(codes[i] >> 1 >> width);
        patches += codes[i] > kept ? 1 : 0;
        codes[i] &= kept;
      }
    }
    *patch_count = static_cast<std::byte>(patches);
    out = pack_numbers(out, codes, count, width + 1);
    for (int i = 0; i < patches; ++i) {
      out[i] = static_cast<std::byte>(places[i]);
      store_to(out + patches + std::ptrdiff_t(i) * static_cast<int>(sizeof(patch_type)), uppers[i]);
    }
    return out + std::ptrdiff_t(patches) * patch_bytes;
  }

  /// Hands each code to `give(i, code)`, in order; gives the end of the block, or null.
  template <class Give>
  KOKKOS_FORCEINLINE_FUNCTION static std::byte const* decode(std::byte const* in, std::byte const* end, int count,
                                                             Give const& give) {
    if (end - in < header_bytes) {
      return nullptr;
    }
    word const base = word(load_from<base_type>(in)) << base_shift << 1;
    auto const width = static_cast<int>(in[sizeof(base_type)]);
    auto const patches = static_cast<int>(in[sizeof(base_type) + 1]);
    in += header_bytes;
    std::byte const* const places = in + packed_bytes<word>(count, width + 1);
    if (width > Bits || end - places < std::ptrdiff_t(patches) * patch_bytes) {
      return nullptr;
    }
    word codes[block_values];
    unpack_numbers(in, count, width + 1, codes);
    for (int patch = 0; patch < patches; ++patch) {
      auto const i = static_cast<int>(places[patch]);
      if (i >= count) {
        return nullptr;
      }
      auto const upper =
          load_from<patch_type>(places + patches + std::ptrdiff_t(patch) * static_cast<int>(sizeof(patch_type)));
      codes[i] += word(upper) << 1 << width;
    }
    for (int i = 0; i < count; ++i) {
      give(i, base + codes[i]);
    }
    return places + std::ptrdiff_t(patches) * patch_bytes;
  }

private:
  // The width with the fewest bits. Tries widths from the one without patches down, until the patches are too many.
  KOKKOS_FORCEINLINE_FUNCTION static int best_width(word const* codes, int count, int full) {
    int const narrowest =
        full > 8 * static_cast<int>(sizeof(patch_type)) ? full - 8 * static_cast<int>(sizeof(patch_type)) : 0;
    int best = full;
    int least = count * full;
    for (int width = full - 1; width >= narrowest; --width) {
      auto const kept = static_cast<word>(low_bits(width + 1));
      int patches = 0;
      for (int i = 0; i < count; ++i) {
        patches += codes[i] > kept ? 1 : 0;
      }
      int const bits = count * width + 8 * patch_bytes * patches;
      if (patches > 255 || bits > least + 2 * count) {
        break;
      }
      if (bits < least) {
        best = width;
        least = bits;
      }
    }
    return best;
  }
};

} // namespace oktopk::detail
