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

/// Bytes of so many indices of 12 bits.
constexpr std::int64_t bytes_of_indices12(std::int64_t count) {
  return count / 2 * 3 + count % 2 * 2;
}

/// Writes the places of entries in chunks of up to 4,096 values with 12 bits each, as Templar sends them
/// (`pack_12bit_indices` in src/tplr/compress.py of tplr-ai/templar).
///
/// Two places take three bytes: the first byte has the low 8 bits of the first, the second byte its high 4 bits below
/// the low 4 bits of the second, the third byte the high 8 bits of the second. Pairs run across the ends of chunks. A
/// place that is left over takes two bytes, and the high half of the last is 0; Templar itself only sends even numbers.
///
/// `indices` are all of the layout, as `chunked` selects them. Returns the bytes written, `bytes_of_indices12`. Throws
/// `error` (option_out_of_range) for a wrong number of entries, an index outside its chunk or not above the one before,
/// and where `out` is too small. On the host; linear time.
template <std::signed_integral Index>
std::int64_t write_indices12(chunk_layout const& layout, std::span<Index const> indices, std::span<std::byte> out) {
  detail::check_layout(layout, 4096, indices.size());
  std::int64_t const bytes = bytes_of_indices12(layout.entries());
  detail::check_room(out.size(), bytes);
  std::size_t at = 0;
  std::uint32_t first = 0;
  for (std::int64_t entry = 0; entry < layout.entries(); ++entry) {
    std::uint32_t const place = detail::place_in_chunk<Index>(layout, indices, entry);
    if (entry % 2 == 0) {
      first = place;
      continue;
    }
    out[at] = static_cast<std::byte>(first & 0xffU);
    out[at + 1] = static_cast<std::byte>((first >> 8) | ((place & 0xfU) << 4));
    out[at + 2] = static_cast<std::byte>(place >> 4);
    at += 3;
  }
  if (layout.entries() % 2 != 0) {
    out[at] = static_cast<std::byte>(first & 0xffU);
    out[at + 1] = static_cast<std::byte>(first >> 8);
  }
  return bytes;
}

/// Reads what `write_indices12` and Templar write.
///
/// In a message of Templar the entries of a chunk are in no order. `values` holds the values of the entries in the
/// order of the message; they and `indices` come out with ascending indices. Both have the number of entries of the
/// layout.
///
/// Throws `error` (bad_file) for a wrong number of bytes, an index beyond its chunk, an index that stands twice, and a
/// last half byte that is not 0; (option_out_of_range) for a wrong number of entries. What `indices` and `values` hold
/// then is open. On the host; sorts chunks that are not in order.
template <std::signed_integral Index, std::floating_point Value>
void read_indices12(chunk_layout const& layout, std::span<std::byte const> in, std::span<Index> indices,
                    std::span<Value> values) {
  detail::check_layout(layout, 4096, indices.size());
  detail::check_layout(layout, 4096, values.size());
  detail::check_index_type<Index>(layout);
  std::int64_t const count = layout.entries();
  detail::check_bytes(in.size(), bytes_of_indices12(count), "indices");
  auto const byte = [&](std::int64_t at) { return std::to_integer<std::uint32_t>(in[static_cast<std::size_t>(at)]); };
  for (std::int64_t entry = 0; entry < count; ++entry) {
    std::int64_t const at = entry / 2 * 3;
    std::uint32_t const place =
        entry % 2 == 0 ? byte(at) | ((byte(at + 1) & 0xfU) << 8) : (byte(at + 1) >> 4) | (byte(at + 2) << 4);
    indices[static_cast<std::size_t>(entry)] = detail::index_in_vector<Index>(layout, entry, place);
  }
  if (count % 2 != 0 && (byte(bytes_of_indices12(count) - 1) >> 4) != 0) {
    detail::refuse_message("the last half byte of a message is not 0");
  }
  detail::sort_chunks<Index, Value>(layout, indices, values);
}

} // namespace oktopk::interop
