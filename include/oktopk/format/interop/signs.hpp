// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/format/interop/chunk_layout.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace oktopk::interop {

/// Bytes of an index in chunks of so many values, as Psyche sends them: 1 up to 256 values, 2 up to 65,536, else 4.
constexpr std::int64_t bytes_of_place(std::int64_t chunk) {
  return chunk <= 256 ? 1 : chunk <= 65536 ? 2 : 4;
}

/// Bytes of the indices of a layout.
inline std::int64_t bytes_of_places(chunk_layout const& layout) {
  return layout.entries() * bytes_of_place(layout.chunk);
}

/// Bytes of so many signs.
constexpr std::int64_t bytes_of_signs(std::int64_t count) {
  return count / 8 + (count % 8 != 0 ? 1 : 0);
}

/// Writes the places of entries in their chunks and the signs of their values, as Psyche sends them.
///
/// Places are unsigned integers of `bytes_of_place`, the low byte first: 16 bits in chunks of 4,096 (`compress_idx` in
/// shared/modeling/src/distro.rs of PsycheFoundation/psyche). A sign is one bit, 1 where the value is negative
/// (`quantize_nozeros_tensor_to_boolean_sign`, same file); eight of them lie in a byte from its lowest bit on, and what
/// is left of the last byte is 0 (`SerializableTensorData::OneBit` in shared/network/src/serializable_tensor.rs). These
/// are the data of the two tensors of a `SerializedDistroResult`; `write_psyche_result` writes the rest.
///
/// `indices` and `values` are all of the layout, as `chunked` selects them; `places` has room for `bytes_of_places` and
/// `signs` for `bytes_of_signs`. Throws `error` (option_out_of_range) for a wrong number of entries, an index outside
/// its chunk or not above the one before, where there is no room, and for a value that has no sign: 0 or NaN. On the
/// host; linear time.
template <std::signed_integral Index, std::floating_point Value>
void write_signs(chunk_layout const& layout, std::span<Index const> indices, std::span<Value const> values,
                 std::span<std::byte> places, std::span<std::byte> signs) {
  constexpr std::int64_t largest = std::int64_t(1) << 32;
  detail::check_layout(layout, largest, indices.size());
  detail::check_layout(layout, largest, values.size());
  detail::check_room(places.size(), bytes_of_places(layout));
  detail::check_room(signs.size(), bytes_of_signs(layout.entries()));
  std::size_t at = 0;
  std::uint32_t byte = 0;
  for (std::int64_t entry = 0; entry < layout.entries(); ++entry) {
    std::uint32_t const place = detail::place_in_chunk<Index>(layout, indices, entry);
    for (std::int64_t i = 0; i < bytes_of_place(layout.chunk); ++i) {
      places[at++] = static_cast<std::byte>((place >> (8 * i)) & 0xffU);
    }
    Value const value = values[static_cast<std::size_t>(entry)];
    if (!(value > 0) && !(value < 0)) {
      detail::refuse("the value of entry " + std::to_string(entry) + " has no sign");
    }
    byte |= (value < 0 ? 1U : 0U) << (entry % 8);
    if (entry % 8 == 7 || entry + 1 == layout.entries()) {
      signs[static_cast<std::size_t>(entry / 8)] = static_cast<std::byte>(byte);
      byte = 0;
    }
  }
}

/// Reads what `write_signs` and Psyche write: each value is `magnitude` or its negative.
///
/// In a message of Psyche the entries of a chunk are in no order; here they come out with ascending indices. `indices`
/// and `values` have the number of entries of the layout.
///
/// Throws `error` (bad_file) for a wrong number of bytes, an index beyond its chunk, an index that stands twice, and
/// bits after the last sign that are not 0; (option_out_of_range) for a wrong number of entries. What `indices` and
/// `values` hold then is open. On the host; sorts chunks that are not in order.
template <std::signed_integral Index, std::floating_point Value>
void read_signs(chunk_layout const& layout, std::span<std::byte const> places, std::span<std::byte const> signs,
                Value magnitude, std::span<Index> indices, std::span<Value> values) {
  constexpr std::int64_t largest = std::int64_t(1) << 32;
  detail::check_layout(layout, largest, indices.size());
  detail::check_layout(layout, largest, values.size());
  detail::check_index_type<Index>(layout);
  detail::check_bytes(places.size(), bytes_of_places(layout), "indices");
  detail::check_bytes(signs.size(), bytes_of_signs(layout.entries()), "signs");
  std::size_t at = 0;
  for (std::int64_t entry = 0; entry < layout.entries(); ++entry) {
    std::uint32_t place = 0;
    for (std::int64_t i = 0; i < bytes_of_place(layout.chunk); ++i) {
      place |= std::to_integer<std::uint32_t>(places[at++]) << (8 * i);
    }
    auto const byte = std::to_integer<std::uint32_t>(signs[static_cast<std::size_t>(entry / 8)]);
    indices[static_cast<std::size_t>(entry)] = detail::index_in_vector<Index>(layout, entry, place);
    values[static_cast<std::size_t>(entry)] = ((byte >> (entry % 8)) & 1U) != 0 ? -magnitude : magnitude;
  }
  if (std::int64_t const left = layout.entries() % 8;
      left != 0 && (std::to_integer<std::uint32_t>(signs.back()) >> left) != 0) {
    detail::refuse_message("a bit after the last sign of a message is not 0");
  }
  detail::sort_chunks<Index, Value>(layout, indices, values);
}

} // namespace oktopk::interop
