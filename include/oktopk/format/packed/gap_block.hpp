// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/format/packed.hpp>
#include <oktopk/format/values/numbers.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace oktopk::detail {

/// The most entries of a block.
inline constexpr int block_entries = 256;

/// Ascending indices of a block as a Rice code of their gaps (Rice and Plaunt 1971), with a width of its own per block
/// and patched outliers (as in PForDelta, Zukowski et al. 2006).
///
/// A gap less one is cut into its `width` lowest bits and a quotient. The low bits of all gaps lie one after the other;
/// then the outliers, whose quotients are longer than a patch: their places, then their quotients; then each quotient q
/// as q zeros and a one (0 for an outlier) up to the end of the block. The two parts of a gap apart make for loops
/// without branches. The first index of a block lies in the table of the message.
template <gradient_index Index>
struct gap_block {
  using gap_type = std::conditional_t<sizeof(Index) == 4, std::uint32_t, std::uint64_t>;

  static constexpr int header_bytes = 2; ///< width, number of patches
  static constexpr int patch_bytes = 1 + static_cast<int>(sizeof(gap_type));
  static constexpr int widest = sizeof(Index) == 4 ? 31 : 48;

  /// The most bytes that the indices of a block take: what they take with the widest width is never exceeded.
  static constexpr int most_bytes =
      header_bytes + block_entries * (widest + 1 + (sizeof(Index) == 4 ? 0 : 8 * patch_bytes)) / 8 + 6;

  /// The most bits that the gaps of `count` indices in a region of `span` places take, wherever they lie and however
  /// they are cut into blocks: evenly spread they take the most, and then one width is the best for all.
  static constexpr std::int64_t bits_at_most(std::int64_t count, std::int64_t span) {
    std::int64_t const free = span > count ? span - count : 0;
    std::int64_t least = count + free;
    for (int width = 1; width <= widest; ++width) {
      std::int64_t const bits = count * (width + 1) + (free >> width);
      least = bits < least ? bits : least;
    }
    return least;
  }

  /// Encodes; gives the end.
  KOKKOS_FORCEINLINE_FUNCTION static std::byte* encode(Index const* indices, int count, std::byte* out) {
    if (count < 2) {
      return out;
    }
    gap_type gaps[block_entries];
    int const gap_count = count - 1;
    for (int i = 0; i < gap_count; ++i) {
      gaps[i] = static_cast<gap_type>(indices[i + 1]) - static_cast<gap_type>(indices[i]) - 1;
    }
    auto const sum = static_cast<std::uint64_t>(indices[gap_count]) - static_cast<std::uint64_t>(indices[0]) -
                     static_cast<std::uint64_t>(gap_count);
    int const width = best_width(gaps, gap_count, sum);
    out[0] = static_cast<std::byte>(width);
    std::byte* const patch_count = out + 1;
    gap_type lows[block_entries];
    lows[block_entries - 1] = 0;
    auto const mask = static_cast<gap_type>(low_bits(width));
    for (int i = 0; i < gap_count; ++i) {
      lows[i] = gaps[i] & mask;
      gaps[i] >>= width; // the quotients
    }
    out = pack_numbers(out + header_bytes, lows, gap_count, width);
    int patches = 0;
    for (int i = 0; i < gap_count; ++i) {
      patches += gaps[i] > 8 * patch_bytes ? 1 : 0;
    }
    *patch_count = static_cast<std::byte>(patches);
    if (patches > 0) {
      std::byte* place = out;
      std::byte* quotient = out + patches;
      for (int i = 0; i < gap_count; ++i) {
        if (gaps[i] > 8 * patch_bytes) {
          *place++ = static_cast<std::byte>(i);
          store_to(quotient, gaps[i]);
          quotient += sizeof(gap_type);
          gaps[i] = 0;
        }
      }
      out = quotient;
    }
    bit_writer unary(out);
    int i = 0;
    for (; i + 4 <= gap_count; i += 4) { // four at a time where they are short, as most are
      gap_type const sum_of_four = gaps[i] + gaps[i + 1] + gaps[i + 2] + gaps[i + 3];
      if (sum_of_four + 4 <= widest_put) {
        auto const second = static_cast<int>(gaps[i]) + 1;
        auto const third = second + static_cast<int>(gaps[i + 1]) + 1;
        auto const fourth = third + static_cast<int>(gaps[i + 2]) + 1;
        auto const end = fourth + static_cast<int>(gaps[i + 3]) + 1;
        std::uint64_t const one = 1;
        unary.put(one << (second - 1) | one << (third - 1) | one << (fourth - 1) | one << (end - 1), end);
      } else {
        for (int each = i; each < i + 4; ++each) {
          put_quotient(unary, static_cast<int>(gaps[each]));
        }
      }
    }
    for (; i < gap_count; ++i) {
      put_quotient(unary, static_cast<int>(gaps[i]));
    }
    return unary.end();
  }

  /// Decodes `count` indices, the first of which is `first`; `in` has `stream_slack` bytes behind its end. Whether the
  /// bytes were a block whose indices ascend below `limit`; nothing else is read or written in any case.
  KOKKOS_FORCEINLINE_FUNCTION static bool decode(std::byte const* in, std::byte const* end, std::int64_t first,
                                                 std::int64_t limit, int count, Index* indices) {
    indices[0] = static_cast<Index>(first);
    if (count < 2) {
      return true;
    }
    if (end - in < header_bytes) {
      return false;
    }
    int const gap_count = count - 1;
    auto const width = static_cast<int>(in[0]);
    auto const patches = static_cast<int>(in[1]);
    std::byte const* const places = in + header_bytes + packed_bytes<gap_type>(gap_count, width);
    std::byte const* const unary = places + std::ptrdiff_t(patches) * patch_bytes;
    if (width > widest || unary > end) {
      return false;
    }
    std::uint16_t ones[block_entries + 8]; // of which the i-th stands behind the zeros of i quotients and i ones
    if (find_ones(unary, end, gap_count, ones) < gap_count) {
      return false;
    }
    gap_type lows[block_entries];
    unpack_numbers(in + header_bytes, gap_count, width, lows);
    auto index = static_cast<std::uint64_t>(first); // 64 bits, in which damaged gaps do not wrap around
    for (int i = 0; i < gap_count; ++i) {
      index += lows[i] + std::uint64_t(1);
      indices[i + 1] = static_cast<Index>(index + (static_cast<std::uint64_t>(ones[i] - i) << width));
    }
    if (patches == 0) {
      return index + (static_cast<std::uint64_t>(ones[gap_count - 1] - gap_count + 1) << width) <
             static_cast<std::uint64_t>(limit);
    }
    for (int patch = 0; patch < patches; ++patch) {
      auto const quotient =
          load_from<gap_type>(places + patches + std::ptrdiff_t(patch) * static_cast<int>(sizeof(gap_type)));
      for (int i = static_cast<int>(places[patch]); i < gap_count; ++i) {
        indices[i + 1] = static_cast<Index>(static_cast<gap_type>(indices[i + 1]) + (quotient << width));
      }
    }
    bool sound = static_cast<std::int64_t>(indices[gap_count]) < limit;
    for (int i = 0; i < gap_count; ++i) {
      sound = sound && indices[i] < indices[i + 1];
    }
    return sound;
  }

private:
  // Beside the low bits; quotients that are longer than a patch are patched.
  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t quotient_bits(gap_type const* gaps, int count, int width) {
    std::uint32_t bits = 0;
    for (int i = 0; i < count; ++i) {
      gap_type const quotient = gaps[i] >> width;
      bits += static_cast<std::uint32_t>(quotient < 8 * patch_bytes ? quotient : 8 * patch_bytes);
    }
    return bits;
  }

  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t bits_with(gap_type const* gaps, int count, int width) {
    return std::int64_t(count) * width + quotient_bits(gaps, count, width);
  }

  // Without outliers the best is log2 of the mean, rounded down, or one more or less: the first two that are tried have
  // it among them, so `bits_at_most` holds. Outliers raise the mean, so the way down is searched until it rises.
  KOKKOS_FORCEINLINE_FUNCTION static int best_width(gap_type const* gaps, int count, std::uint64_t sum) {
    std::uint64_t const mean = sum / static_cast<std::uint64_t>(count);
    int best = bit_width(mean / 16 * 11 + mean % 16 * 11 / 16); // ln 2 of the mean
    best = best > widest ? widest : best;
    std::int64_t least = bits_with(gaps, count, best);
    int width = best;
    while (width > 0) {
      width -= 1;
      std::int64_t const bits = bits_with(gaps, count, width);
      if (bits >= least) {
        break;
      }
      best = width;
      least = bits;
    }
    return best;
  }

  KOKKOS_FORCEINLINE_FUNCTION static void put_quotient(bit_writer& out, int quotient) {
    if constexpr (8 * patch_bytes >= widest_put) {
      for (; quotient >= widest_put; quotient -= widest_put) {
        out.put(0, widest_put);
      }
    }
    out.put(std::uint64_t(1) << quotient, quotient + 1);
  }
};

} // namespace oktopk::detail
