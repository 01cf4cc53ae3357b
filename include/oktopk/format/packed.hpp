// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/memory.hpp>
#include <oktopk/core/kokkos_ext/processor.hpp>
#include <oktopk/core/kokkos_ext/range.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/format/damage.hpp>
#include <oktopk/format/packed/gap_block.hpp>
#include <oktopk/format/values/exact.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace oktopk {

namespace detail {

/// Where the table and the blocks of a packed message lie: the first index of each block, relative to the region, then
/// the size of each in bytes, then the blocks, each aligned to 4 bytes.
struct packed_layout {
  std::int64_t blocks;
  std::int64_t table; ///< its bytes
  int index_bytes;

  packed_layout(std::int64_t count, region where)
      : blocks((count + block_entries - 1) / block_entries), table(0), index_bytes(bytes_of_index(where)) {
    table = (blocks * (index_bytes + 2) + 3) / 4 * 4;
  }

  KOKKOS_INLINE_FUNCTION void put(std::byte* out, std::int64_t block, std::uint64_t first, std::int64_t size) const {
    switch (index_bytes) {
    case 2: store_to(out + 2 * block, static_cast<std::uint16_t>(first)); break;
    case 4: store_to(out + 4 * block, static_cast<std::uint32_t>(first)); break;
    default: store_to(out + 8 * block, first);
    }
    store_to(out + blocks * index_bytes + 2 * block, static_cast<std::uint16_t>(size));
    if (block == blocks - 1) { // what the table is rounded up by
      for (std::int64_t i = blocks * (index_bytes + 2); i < table; ++i) {
        out[i] = std::byte(0);
      }
    }
  }

  KOKKOS_INLINE_FUNCTION std::uint64_t first_index(std::byte const* in, std::int64_t block) const {
    switch (index_bytes) {
    case 2: return load_from<std::uint16_t>(in + 2 * block);
    case 4: return load_from<std::uint32_t>(in + 4 * block);
    default: return load_from<std::uint64_t>(in + 8 * block);
    }
  }

  KOKKOS_INLINE_FUNCTION std::int64_t size(std::byte const* in, std::int64_t block) const {
    return load_from<std::uint16_t>(in + blocks * index_bytes + 2 * block);
  }

private:
  static int bytes_of_index(region where) {
    if (where.width() <= std::int64_t(1) << 16) {
      return 2;
    }
    return where.width() <= std::int64_t(1) << 32 ? 4 : 8;
  }
};

template <class Format, class Values>
struct packed_encoding {
  Values codec;
  packed_layout layout;
  region where;
  std::int64_t count;
  typename Format::index_type const* indices;
  typename Format::value_type const* values;
  std::byte* out;
  bool has_avx2;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block, std::int64_t& position, bool final) const {
    alignas(8) std::byte room[Format::block_room];
    std::int64_t const first = block * block_entries;
    auto const many = static_cast<int>(count - first < block_entries ? count - first : block_entries);
    std::int64_t const size = has_avx2 ? Format::encode_with_avx2(codec, indices + first, values + first, many, room)
                                       : Format::encode_block(codec, indices + first, values + first, many, room);
    if (final) {
      layout.put(out, block, static_cast<std::uint64_t>(static_cast<std::int64_t>(indices[first]) - where.begin), size);
      __builtin_memcpy(out + layout.table + position, room, static_cast<std::size_t>(size));
    }
    position += size;
  }
};

template <class Format, class Values>
struct packed_decoding {
  Values codec;
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
      std::int64_t const first = block * block_entries;
      auto const many = static_cast<int>(count - first < block_entries ? count - first : block_entries);
      std::byte const* const from = in + layout.table + position;
      std::uint64_t const first_index = layout.first_index(in, block);
      bool const sound =
          layout.table + position + size <= bytes &&
          (has_avx2
               ? Format::decode_with_avx2(codec, from, size, where, first_index, many, indices + first, values + first)
               : Format::decode_block(codec, from, size, where, first_index, many, indices + first, values + first));
      if (!sound) {
        Format::spoil(where, many, indices + first, values + first);
      }
    }
    position += size;
  }
};

} // namespace detail

/// Entries in blocks of 256: gaps of indices as a Rice code of each block, and values by a codec.
///
/// With `exact_values` about half of what COO takes, to the bit the same entries; with others as little as a sixth. A
/// message is a table of the blocks' first indices and sizes, then the blocks: each is coded by itself, so that kernels
/// encode and decode them in parallel. Indices take no more than log2 C(n, k) + 0.6 k bits where they are spread at
/// random, and less where they crowd. Bytes that are no message are an `error` on one thread of the host; elsewhere
/// they become entries that are not finite, which the algorithms report.
template <gradient_value Value = float, gradient_index Index = std::int32_t, value_codec Values = exact_values>
class packed {
  using gap_block = detail::gap_block<Index>;
  static constexpr std::int64_t block_entries = detail::block_entries;
  static_assert(detail::block_entries == detail::block_values);

public:
  using index_type = Index;
  using value_type = Value;

  static constexpr bool lossless = Values::lossless;
  static constexpr bool exact_size = false;

  /// The most bytes that a message takes more when it is cut in two.
  static constexpr std::int64_t bytes_per_cut = 48;

  packed() = default;
  explicit packed(Values const& values) : values_(values) {}

  std::string name() const {
    return "packed<" + values_.name() + ", float" + std::to_string(8 * sizeof(Value)) + ", int" +
           std::to_string(8 * sizeof(Index)) + ">";
  }

  Values const& values() const { return values_; }

  /// Whether values are rounded.
  bool loses() const {
    if constexpr (requires { values_.loses(); }) {
      return values_.loses();
    } else {
      return !lossless;
    }
  }

  std::int64_t max_encoded_bytes(std::int64_t count, region where) const {
    if (count <= 0) {
      return 0;
    }
    detail::packed_layout const layout(count, where);
    std::int64_t const full = count / block_entries;
    std::int64_t const rest = count % block_entries;
    std::int64_t values = full * values_.template most_bytes<Value>(static_cast<int>(block_entries));
    values += rest > 0 ? values_.template most_bytes<Value>(static_cast<int>(rest)) : 0;
    std::int64_t const gaps = gap_block::bits_at_most(count, where.width()) / 8;
    // The low bits of a block have room for a gap more, its quotients end with a byte that is filled in part, and a
    // block is aligned to 4.
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
    detail::packed_encoding<packed, Values> const kernel{values_,
                                                         layout,
                                                         where,
                                                         count,
                                                         entries.indices.data(),
                                                         entries.values.data(),
                                                         out,
                                                         detail::processor_has_avx2()};
    std::int64_t bytes = 0;
    Kokkos::parallel_scan("oktopk::packed::encode", detail::index_range<E>(exec, 0, layout.blocks), kernel, bytes);
    return layout.table + bytes;
  }

  template <execution_space E>
  void decode(E const& exec, std::byte const* in, std::int64_t bytes, std::int64_t count, region where, Index* indices,
              Value* values) const {
    if (count == 0) {
      return;
    }
    detail::packed_layout const layout(count, where);
    detail::expect_bytes(bytes, layout.table, count, where);
    detail::packed_decoding<packed, Values> const kernel{
        values_, layout, where, in, bytes, count, indices, values, detail::processor_has_avx2()};
    Kokkos::parallel_scan("oktopk::packed::decode", detail::index_range<E>(exec, 0, layout.blocks), kernel);
  }

  /// Room for any block and for what is written or read behind it. Public, as the next ones, for the kernels.
  static constexpr std::size_t block_room = gap_block::most_bytes +
                                            detail::block_entries * static_cast<int>(sizeof(Value)) +
                                            detail::most_value_overhead + 4 + detail::stream_slack;

  /// Encodes a block into `room`; gives its bytes.
  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t encode_block(Values const& codec, Index const* indices,
                                                               Value const* values, int count, std::byte* room) {
    std::byte* end = codec.encode(values, count, room);
    end = gap_block::encode(indices, count, end);
    while ((end - room) % 4 != 0) {
      *end++ = std::byte(0);
    }
    return end - room;
  }

  /// Decodes a block; whether it was one, with ascending indices in the region.
  KOKKOS_FORCEINLINE_FUNCTION static bool decode_block(Values const& codec, std::byte const* in, std::int64_t size,
                                                       region where, std::uint64_t first_index, int count,
                                                       Index* indices, Value* values) {
    if (size > static_cast<std::int64_t>(block_room) - detail::stream_slack ||
        first_index >= static_cast<std::uint64_t>(where.end - where.begin)) {
      return false;
    }
    // A copy, since up to 8 bytes behind the block are read.
    alignas(8) std::byte room[block_room];
    __builtin_memcpy(room, in, static_cast<std::size_t>(size));
    std::byte const* const end = room + size;
    std::byte const* const gaps = codec.decode(static_cast<std::byte const*>(room), end, count, values);
    return gaps != nullptr && gap_block::decode(gaps, end, where.begin + static_cast<std::int64_t>(first_index),
                                                where.end, count, indices);
  }

#if defined(OKTOPK_FOR_AVX2)
  OKTOPK_FOR_AVX2 static std::int64_t encode_with_avx2(Values const& codec, Index const* indices, Value const* values,
                                                       int count, std::byte* room) {
    return encode_block(codec, indices, values, count, room);
  }

  OKTOPK_FOR_AVX2 static bool decode_with_avx2(Values const& codec, std::byte const* in, std::int64_t size,
                                               region where, std::uint64_t first_index, int count, Index* indices,
                                               Value* values) {
    return decode_block(codec, in, size, where, first_index, count, indices, values);
  }
#else
  KOKKOS_INLINE_FUNCTION static std::int64_t encode_with_avx2(Values const& codec, Index const* indices,
                                                              Value const* values, int count, std::byte* room) {
    return encode_block(codec, indices, values, count, room);
  }

  KOKKOS_INLINE_FUNCTION static bool decode_with_avx2(Values const& codec, std::byte const* in, std::int64_t size,
                                                      region where, std::uint64_t first_index, int count,
                                                      Index* indices, Value* values) {
    return decode_block(codec, in, size, where, first_index, count, indices, values);
  }
#endif

  /// Entries for a block that is none.
  KOKKOS_INLINE_FUNCTION static void spoil(region where, int count, Index* indices, Value* values) {
    for (int i = 0; i < count; ++i) {
      indices[i] = static_cast<Index>(where.begin);
      values[i] = detail::spoilt_value<Value>();
    }
  }

private:
  Values values_{};
};

} // namespace oktopk
