// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Readers and writers of messages of other programs: plain functions on the host, no part of an algorithm.
namespace oktopk::interop {

/// The order of the entries in a message by chunks: so many of the first chunk, as many of the second, and so on, as
/// the selector `chunked` with the same `chunk` and `per_chunk` selects them.
///
/// A shorter chunk at the end has as many entries, or one for each of its values where these are fewer.
struct chunk_layout {
  std::int64_t length = 0;    ///< of the vector, at least 0
  std::int64_t chunk = 4096;  ///< values in a chunk, at least 1
  std::int64_t per_chunk = 0; ///< entries of a chunk, 1 to `chunk`

  std::int64_t whole_chunks() const { return length / chunk; }
  std::int64_t entries() const {
    return whole_chunks() * per_chunk + std::min(per_chunk, length - whole_chunks() * chunk);
  }

  /// Of an entry by its place in the message: the index where its chunk begins, and the number of values there.
  std::int64_t begin_of(std::int64_t entry) const { return entry / per_chunk * chunk; }
  std::int64_t size_of(std::int64_t entry) const { return std::min(chunk, length - begin_of(entry)); }
};

namespace detail {

/// An error of what a caller hands over.
[[noreturn]] inline void refuse(std::string const& sentence) {
  throw error(fault::option_out_of_range, sentence);
}

/// An error of what another program has sent.
[[noreturn]] inline void refuse_message(std::string const& sentence) {
  throw error(fault::bad_file, sentence);
}

/// Throws unless the layout is possible, with chunks of at most `largest` values, and `count` its number of entries.
inline void check_layout(chunk_layout const& layout, std::int64_t largest, std::size_t count) {
  if (layout.length < 0) {
    refuse("the length of a vector is " + std::to_string(layout.length));
  }
  if (layout.chunk < 1 || layout.chunk > largest) {
    refuse("chunks of " + std::to_string(layout.chunk) + " values, not 1 to " + std::to_string(largest));
  }
  if (layout.per_chunk < 1 || layout.per_chunk > layout.chunk) {
    refuse(std::to_string(layout.per_chunk) + " entries of each chunk, not 1 to " + std::to_string(layout.chunk));
  }
  if (count != static_cast<std::size_t>(layout.entries())) {
    refuse(std::to_string(count) + " entries, where the chunks have " + std::to_string(layout.entries()));
  }
}

/// Throws unless a message has `expected` bytes.
inline void check_bytes(std::size_t bytes, std::int64_t expected, std::string const& what) {
  if (bytes != static_cast<std::size_t>(expected)) {
    refuse_message("a message has " + std::to_string(bytes) + " bytes of " + what + ", where " +
                   std::to_string(expected) + " are right");
  }
}

/// Throws unless there is room for `needed` bytes.
inline void check_room(std::size_t room, std::int64_t needed) {
  if (room < static_cast<std::size_t>(needed)) {
    refuse("a message of " + std::to_string(needed) + " bytes does not fit in " + std::to_string(room));
  }
}

/// The place of an entry in its chunk. Throws unless it is in its chunk and above the entry before.
template <std::signed_integral Index>
std::uint32_t place_in_chunk(chunk_layout const& layout, std::span<Index const> indices, std::int64_t entry) {
  auto const index = static_cast<std::int64_t>(indices[static_cast<std::size_t>(entry)]);
  std::int64_t const begin = layout.begin_of(entry);
  if (index < begin || index >= begin + layout.size_of(entry)) {
    refuse("entry " + std::to_string(entry) + " has index " + std::to_string(index) + ", and its chunk " +
           std::to_string(begin) + " to " + std::to_string(begin + layout.size_of(entry) - 1));
  }
  if (entry % layout.per_chunk != 0 &&
      index <= static_cast<std::int64_t>(indices[static_cast<std::size_t>(entry) - 1])) {
    refuse("entry " + std::to_string(entry) + " has index " + std::to_string(index) +
           ", which is not above that of the entry before");
  }
  return static_cast<std::uint32_t>(index - begin);
}

/// The index of an entry that has this place in its chunk. Throws where the chunk has no such place.
template <std::signed_integral Index>
Index index_in_vector(chunk_layout const& layout, std::int64_t entry, std::uint32_t place) {
  if (place >= static_cast<std::uint64_t>(layout.size_of(entry))) {
    refuse_message("entry " + std::to_string(entry) + " of a message has place " + std::to_string(place) +
                   " of a chunk of " + std::to_string(layout.size_of(entry)) + " values");
  }
  return static_cast<Index>(layout.begin_of(entry) + static_cast<std::int64_t>(place));
}

/// Throws where the type of indices does not reach the end of the vector.
template <std::signed_integral Index>
void check_index_type(chunk_layout const& layout) {
  if (!std::in_range<Index>(layout.length)) {
    refuse("a vector of " + std::to_string(layout.length) + " values needs a wider type of indices");
  }
}

/// Puts the entries of each chunk in ascending order, for other programs leave the order open. Throws where an index
/// stands twice.
template <std::signed_integral Index, std::floating_point Value>
void sort_chunks(chunk_layout const& layout, std::span<Index> indices, std::span<Value> values) {
  std::vector<std::pair<Index, Value>> sorted;
  for (std::size_t begin = 0; begin < indices.size(); begin += static_cast<std::size_t>(layout.per_chunk)) {
    std::size_t const count = std::min(static_cast<std::size_t>(layout.per_chunk), indices.size() - begin);
    auto const own = indices.subspan(begin, count);
    auto const with = values.subspan(begin, count);
    if (!std::is_sorted(own.begin(), own.end())) {
      sorted.clear();
      for (std::size_t i = 0; i < count; ++i) {
        sorted.emplace_back(own[i], with[i]);
      }
      std::sort(sorted.begin(), sorted.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
      for (std::size_t i = 0; i < count; ++i) {
        own[i] = sorted[i].first;
        with[i] = sorted[i].second;
      }
    }
    if (auto const twice = std::adjacent_find(own.begin(), own.end()); twice != own.end()) {
      refuse_message("index " + std::to_string(*twice) + " stands twice in a message");
    }
  }
}

} // namespace detail

} // namespace oktopk::interop
