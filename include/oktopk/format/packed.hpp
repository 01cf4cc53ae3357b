// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/format/values/floats.hpp>
#include <oktopk/format/values/numbers.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace oktopk::detail {

/// The positions of the ones of each byte, ascending.
inline constexpr auto ones_of_bytes = [] {
  std::array<std::array<std::uint16_t, 8>, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::size_t count = 0;
    for (unsigned bit = 0; bit < 8; ++bit) {
      if ((byte >> bit & 1U) != 0) {
        table[byte][count++] = static_cast<std::uint16_t>(bit);
      }
    }
  }
  return table;
}();

/// Writes the positions of the first `most` ones of the bytes [from, end), ascending; gives their number. `positions`
/// has room for 8 more, which may be written, and the bytes are 8192 at most.
KOKKOS_FORCEINLINE_FUNCTION int find_ones(std::byte const* from, std::byte const* end, int most,
                                          std::uint16_t* positions) {
  int found = 0;
#if !defined(__CUDA_ARCH__) && !defined(__HIP_DEVICE_COMPILE__)
  // One byte at a time, all of its positions at once: no branch to predict.
  using eight [[gnu::vector_size(16)]] = std::uint16_t;
  auto base = static_cast<std::uint16_t>(0);
  for (; from < end && found < most; ++from) {
    auto const byte = static_cast<std::size_t>(*from);
    eight places;
    __builtin_memcpy(&places, ones_of_bytes[byte].data(), sizeof places);
    places = places + base;
    __builtin_memcpy(positions + found, &places, sizeof places);
    found += __builtin_popcount(static_cast<unsigned>(byte));
    base = static_cast<std::uint16_t>(base + 8);
  }
#else
  for (std::byte const* at = from; at < end && found < most; ++at) {
    for (auto ones = static_cast<std::uint64_t>(*at); ones != 0; ones &= ones - 1) {
      positions[found++] = static_cast<std::uint16_t>((at - from) * 8 + lowest_bit(ones));
    }
  }
#endif
  return found < most ? found : most;
}

/// Ascending indices of a block as a Rice code of their gaps (Rice and Plaunt 1971), with a width of its own per block
/// and patched outliers (as in PForDelta, Zukowski et al. 2006).
///
/// A gap less one is cut into its `width` lowest bits and a quotient. The low bits of all gaps lie one after the other;
/// then the outliers, whose quotients are longer than a patch: their places, then their quotients; then each quotient q
/// as q zeros and a one (0 for an outlier) up to the end of the block. The two parts of a gap lie apart, so the loops
/// have no branches. The first index of a block lies in the table of the message.
template <gradient_index Index>
struct gap_block {
  using gap_type = std::conditional_t<sizeof(Index) == 4, std::uint32_t, std::uint64_t>;

  static constexpr int header_bytes = 2; ///< width, number of patches
  static constexpr int patch_bytes = 1 + static_cast<int>(sizeof(gap_type));
  static constexpr int widest = sizeof(Index) == 4 ? 31 : 48;

  /// The most bytes that the indices of a block take: what they take with the widest width is never exceeded.
  static constexpr int most_bytes =
      header_bytes + block_values * (widest + 1 + (sizeof(Index) == 4 ? 0 : 8 * patch_bytes)) / 8 + 6;

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
    gap_type gaps[block_values];
    int const gap_count = count - 1;
    for (int i = 0; i < gap_count; ++i) {
      gaps[i] = static_cast<gap_type>(indices[i + 1]) - static_cast<gap_type>(indices[i]) - 1;
    }
    auto const sum = static_cast<std::uint64_t>(indices[gap_count]) - static_cast<std::uint64_t>(indices[0]) -
                     static_cast<std::uint64_t>(gap_count);
    int const width = best_width(gaps, gap_count, sum);
    out[0] = static_cast<std::byte>(width);
    std::byte* const patch_count = out + 1;
    gap_type lows[block_values];
    lows[block_values - 1] = 0;
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
    for (int i = 0; i < gap_count;) {
      if (i + 4 <= gap_count && gaps[i] + gaps[i + 1] + gaps[i + 2] + gaps[i + 3] + 4 <= widest_put) {
        std::uint64_t ones = 0; // four at a time where they are short, as most are
        int end = 0;
        for (int const four = i + 4; i < four; ++i) {
          end += static_cast<int>(gaps[i]) + 1;
          ones |= std::uint64_t(1) << (end - 1);
        }
        unary.put(ones, end);
      } else {
        put_quotient(unary, static_cast<int>(gaps[i++]));
      }
    }
    return unary.end();
  }

  /// Decodes `count` indices, the first of which is `first`; `in` has `stream_slack` bytes behind its end. True if the
  /// bytes were a block whose indices ascend and lie below `limit`. In any case nothing else is read or written.
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
    std::uint16_t ones[block_values + 8]; // of which the i-th stands behind the zeros of i quotients and i ones
    if (find_ones(unary, end, gap_count, ones) < gap_count) {
      return false;
    }
    gap_type lows[block_values];
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
  // The bits of the low parts and the quotients; a quotient that is longer than a patch counts as a patch.
  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t bits_with(gap_type const* gaps, int count, int width) {
    std::uint32_t bits = 0;
    for (int i = 0; i < count; ++i) {
      gap_type const quotient = gaps[i] >> width;
      bits += static_cast<std::uint32_t>(quotient < 8 * patch_bytes ? quotient : 8 * patch_bytes);
    }
    return std::int64_t(count) * width + bits;
  }

  // Without outliers the best width is log2 of the mean, rounded down, or one more or less. It is one of the first two
  // that are tried, so `bits_at_most` holds. Outliers raise the mean, so smaller widths are tried until the bits
  // increase.
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

/// The places of the table and the blocks in a packed message: the first index of each block, relative to the region,
/// then the size of each in bytes, then the blocks, each aligned to 4 bytes.
struct packed_layout {
  std::int64_t blocks;
  int index_bytes;
  std::int64_t table; ///< its bytes

  packed_layout(std::int64_t count, region where)
      : blocks((count + block_values - 1) / block_values),
        index_bytes(where.width() <= std::int64_t(1) << 16 ? 2 : (where.width() <= std::int64_t(1) << 32 ? 4 : 8)),
        table((blocks * (index_bytes + 2) + 3) / 4 * 4) {}

  KOKKOS_INLINE_FUNCTION void put(std::byte* out, std::int64_t block, std::uint64_t first, std::int64_t size) const {
    __builtin_memcpy(out + block * index_bytes, &first, static_cast<std::size_t>(index_bytes));
    store_to(out + blocks * index_bytes + 2 * block, static_cast<std::uint16_t>(size));
    for (std::int64_t i = blocks * (index_bytes + 2); block == blocks - 1 && i < table; ++i) {
      out[i] = std::byte(0); // the padding of the table
    }
  }

  KOKKOS_INLINE_FUNCTION std::uint64_t first_index(std::byte const* in, std::int64_t block) const {
    std::uint64_t first = 0;
    __builtin_memcpy(&first, in + block * index_bytes, static_cast<std::size_t>(index_bytes));
    return first;
  }

  KOKKOS_INLINE_FUNCTION std::int64_t size(std::byte const* in, std::int64_t block) const {
    return load_from<std::uint16_t>(in + blocks * index_bytes + 2 * block);
  }
};

template <class Format, class Entries>
struct packed_encoding {
  Format format;
  packed_layout layout;
  region where;
  Entries entries;
  std::int64_t count;
  std::byte* out;
  bool has_avx2;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block, std::int64_t& position, bool final) const {
    alignas(8) std::byte scratch[Format::block_capacity];
    std::int64_t const first = block * block_values;
    auto const many = static_cast<int>(count - first < block_values ? count - first : block_values);
    auto const* const indices = entries.indices.data() + first;
    auto const* const values = entries.values.data() + first;
    std::int64_t const size = has_avx2 ? format.encode_with_avx2(indices, values, many, scratch)
                                       : format.encode_block(indices, values, many, scratch);
    if (final) {
      layout.put(out, block, static_cast<std::uint64_t>(static_cast<std::int64_t>(*indices) - where.begin), size);
      __builtin_memcpy(out + layout.table + position, scratch, static_cast<std::size_t>(size));
    }
    position += size;
  }
};

template <class Format>
struct packed_decoding {
  Format format;
  packed_layout layout;
  region where;
  std::byte const* in;
  std::int64_t bytes;
  std::int64_t count;
  typename Format::index_type* indices;
  typename Format::value_type* values;
  bool has_avx2;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block, std::int64_t& position, bool final) const {
    std::int64_t const size = layout.size(in, block);
    if (final) {
      std::int64_t const first = block * block_values;
      auto const many = static_cast<int>(count - first < block_values ? count - first : block_values);
      std::byte const* const from = in + layout.table + position;
      std::uint64_t const first_index = layout.first_index(in, block);
      bool const sound =
          layout.table + position + size <= bytes &&
          (has_avx2 ? format.decode_with_avx2(from, size, where, first_index, many, indices + first, values + first)
                    : format.decode_block(from, size, where, first_index, many, indices + first, values + first));
      for (std::int64_t i = first; !sound && i < first + many; ++i) {
        indices[i] = static_cast<typename Format::index_type>(where.begin);
        values[i] = spoilt_value<typename Format::value_type>();
      }
    }
    position += size;
  }
};

} // namespace oktopk::detail

namespace oktopk {

/// Entries in blocks of 256: gaps of indices as a Rice code of each block, and values by a codec.
///
/// With `exact_values` about half of the bytes of COO, and entries with the same bits; with other codecs as little as a
/// sixth. A message is a table of the blocks' first indices and sizes, then the blocks: each is coded by itself, so
/// that kernels encode and decode them in parallel. Indices take no more than log2 C(n, k) + 0.6 k bits if they are
/// spread at random, and less if they lie close together. Bytes that no encoder wrote are an `error` if one thread of
/// the host decodes them; kernels turn them into entries that are not finite, which the algorithms report.
template <gradient_value Value = float, gradient_index Index = std::int32_t, value_codec Values = exact_values>
class packed : public format_base {
  using gap_block = detail::gap_block<Index>;

public:
  using index_type = Index;
  using value_type = Value;

  static constexpr bool lossless = Values::lossless;
  static constexpr bool exact_size = false;

  /// The most additional bytes of a message when it is cut in two.
  static constexpr std::int64_t bytes_per_cut = 48;

  packed() = default;
  explicit packed(Values const& values) : values_(values) {}

  std::string name() const {
    return "packed<" + values_.name() + ", float" + std::to_string(8 * sizeof(Value)) + ", int" +
           std::to_string(8 * sizeof(Index)) + ">";
  }

  Values const& values() const { return values_; }
  std::string rounding() const { return detail::is_lossy(*this) ? values_.name() : std::string(); }

  /// True if values are rounded, for a codec that tells at run time.
  bool is_lossy() const { return values_.is_lossy(); }

  /// The entropy of the gaps and at most 3 % more, which a Rice code takes, the bits of the values, and the fixed part
  /// of a message: a table and the header of a block.
  double expected_bytes(double count, double width, double) const {
    double const density = std::min(count / width, 0.5);
    double const gap = -std::log2(density) - (1 - density) / density * std::log2(1 - density);
    return count * (1.03 * gap + detail::expected_bits<Value>(values_)) / 8 + 12;
  }

  std::int64_t max_encoded_bytes(std::int64_t count, region where) const {
    if (count <= 0) {
      return 0;
    }
    detail::packed_layout const layout(count, where);
    std::int64_t const full = count / detail::block_values;
    std::int64_t const rest = count % detail::block_values;
    std::int64_t values = full * values_.template most_bytes<Value>(static_cast<int>(detail::block_values));
    values += rest > 0 ? values_.template most_bytes<Value>(static_cast<int>(rest)) : 0;
    std::int64_t const gaps = gap_block::bits_at_most(count, where.width()) / 8;
    // The low bits of a block have room for one more gap, its quotients end with a partly filled byte, and a block is
    // aligned to 4.
    return layout.table + values + gaps + layout.blocks * (gap_block::header_bytes + 5 + 2 + 3);
  }

  template <execution_space E>
  std::int64_t encode(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries, region where,
                      std::byte* out) const {
    std::int64_t const count = entries.size();
    if (count == 0) {
      return 0;
    }
    detail::packed_layout const layout(count, where);
    detail::packed_encoding<packed, decltype(entries)> const kernel{
        *this, layout, where, entries, count, out, detail::processor_has_avx2()};
    return layout.table + detail::scan_with_total("oktopk::packed::encode", exec, layout.blocks, kernel);
  }

  template <execution_space E>
  void decode(E const& exec, std::byte const* in, std::int64_t bytes, std::int64_t count, region where, Index* indices,
              Value* values) const {
    if (count == 0) {
      return;
    }
    detail::packed_layout const layout(count, where);
    detail::expect_bytes(bytes, layout.table, count, where);
    detail::packed_decoding<packed> const kernel{
        *this, layout, where, in, bytes, count, indices, values, detail::processor_has_avx2()};
    Kokkos::parallel_scan("oktopk::packed::decode", detail::index_range<E>(exec, 0, layout.blocks), kernel);
  }

  /// Room for any block and for what is written or read behind it. Public, as the next ones, for the kernels.
  static constexpr std::size_t block_capacity = gap_block::most_bytes +
                                                detail::block_values * static_cast<int>(sizeof(Value)) +
                                                detail::most_value_overhead + 4 + detail::stream_slack;

  /// Encodes a block into `scratch`; gives its bytes.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t encode_block(Index const* indices, Value const* values, int count,
                                                        std::byte* scratch) const {
    std::byte* end = values_.encode(values, count, scratch);
    end = gap_block::encode(indices, count, end);
    while ((end - scratch) % 4 != 0) {
      *end++ = std::byte(0);
    }
    return end - scratch;
  }

  /// Decodes a block; true if the bytes are a block with ascending indices in the region.
  KOKKOS_FORCEINLINE_FUNCTION bool decode_block(std::byte const* in, std::int64_t size, region where,
                                                std::uint64_t first_index, int count, Index* indices,
                                                Value* values) const {
    if (size > static_cast<std::int64_t>(block_capacity) - detail::stream_slack ||
        first_index >= static_cast<std::uint64_t>(where.end - where.begin)) {
      return false;
    }
    // A copy, since up to 8 bytes behind the block are read.
    alignas(8) std::byte scratch[block_capacity];
    __builtin_memcpy(scratch, in, static_cast<std::size_t>(size));
    std::byte const* const end = scratch + size;
    std::byte const* const gaps = values_.decode(static_cast<std::byte const*>(scratch), end, count, values);
    return gaps != nullptr && gap_block::decode(gaps, end, where.begin + static_cast<std::int64_t>(first_index),
                                                where.end, count, indices);
  }

  OKTOPK_FOR_AVX2 std::int64_t encode_with_avx2(Index const* indices, Value const* values, int count,
                                                std::byte* scratch) const {
    return encode_block(indices, values, count, scratch);
  }

  OKTOPK_FOR_AVX2 bool decode_with_avx2(std::byte const* in, std::int64_t size, region where, std::uint64_t first_index,
                                        int count, Index* indices, Value* values) const {
    return decode_block(in, size, where, first_index, count, indices, values);
  }

private:
  Values values_{};
};

} // namespace oktopk
