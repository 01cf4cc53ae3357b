// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/staging.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/format/concept.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace oktopk {

/// Encoded entries that are sent on as they are: all ranks know their count, and their size stands before them where
/// the format leaves it open (2 words). Pieces are rounded up to 8 bytes, so that they follow each other in a message.
template <execution_space E, sparse_format Format>
class encoded_pieces {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;

  static constexpr std::int64_t header_bytes = Format::exact_size ? 0 : message_header_bytes;

  /// The most bytes that room for a piece grows by when the piece is cut in two.
  static constexpr std::int64_t room_per_cut = header_bytes + Format::bytes_per_cut + 8;

  explicit encoded_pieces(Format const& format) : format_(format) {}

  Format const& format() const { return format_; }

  /// The most bytes of a piece of so many entries.
  std::int64_t room(std::int64_t count, region where) const {
    return count == 0 ? 0 : header_bytes + detail::round_up_to_8(format_.max_encoded_bytes(count, where));
  }

  /// Writes a piece to a place in a buffer, as kernels see it and, once `exec` is waited for, as messages do; tells its
  /// bytes.
  std::int64_t encode(E const& exec, entries_of<Format, E> entries, region where, message_buffer<E> const& to,
                      std::int64_t offset) const {
    if (entries.size() == 0) {
      return 0;
    }
    std::int64_t const bytes = format_.encode(exec, entries, where, to.data() + offset + header_bytes);
    to.push(exec, offset + header_bytes, bytes);
    if constexpr (header_bytes > 0) {
      to.put(exec, offset, static_cast<std::uint64_t>(bytes));
    }
    to.clear(exec, offset + header_bytes + bytes, detail::round_up_to_8(bytes) - bytes);
    return header_bytes + detail::round_up_to_8(bytes);
  }

  /// The bytes of the encoded entries of the piece at a place, as messages see it, of which `available` bytes have
  /// arrived. An `error` where they cannot be as many as it says.
  std::int64_t encoded_bytes(E const& exec, std::int64_t count, region where, message_buffer<E> const& from,
                             std::int64_t offset, std::int64_t available) const {
    std::int64_t bytes = format_.max_encoded_bytes(count, where);
    if constexpr (header_bytes > 0) {
      auto const told = available < header_bytes ? ~std::uint64_t(0) : from.get(exec, offset);
      if (told > static_cast<std::uint64_t>(bytes) ||
          header_bytes + detail::round_up_to_8(static_cast<std::int64_t>(told)) > available) {
        throw error(fault::damaged_message, std::to_string(available) + " bytes arrived for " + std::to_string(count) +
                                                " entries, which are not what their header says");
      }
      bytes = static_cast<std::int64_t>(told);
    } else if (detail::round_up_to_8(bytes) > available) {
      throw error(fault::damaged_message, std::to_string(available) + " bytes arrived for " + std::to_string(count) +
                                              " entries, which take " + std::to_string(bytes));
    }
    return bytes;
  }

  /// Enqueues the decoding of a piece.
  void decode(E const& exec, message_buffer<E> const& from, std::int64_t offset, std::int64_t bytes, std::int64_t count,
              region where, index_type* indices, value_type* values) const {
    format_.decode(exec, static_cast<std::byte const*>(from.data() + offset + header_bytes), bytes, count, where,
                   indices, values);
  }

private:
  Format format_;
};

} // namespace oktopk
