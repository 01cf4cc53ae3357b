// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/format/values/concept.hpp>
#include <oktopk/format/values/numbers.hpp>

#include <cstddef>
#include <cstdint>

namespace oktopk::detail {

/// A block of signs and magnitudes: what a magnitude has above the smallest one, in one width per block, with patched
/// outliers.
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
  // The width with the fewest bits, from the one that takes no patches down to where they become too many.
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
