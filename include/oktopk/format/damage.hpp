// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/sparse.hpp>

#include <cstdint>
#include <string>

// What decoders do with bytes that no encoder wrote.
namespace oktopk::detail {

/// The value of an entry that cannot be decoded: a NaN, which every algorithm reports.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION Value spoilt_value() {
  return __builtin_bit_cast(Value, static_cast<bits_of<Value>>(~bits_of<Value>(0) >> 1));
}

/// Throws `damaged_message` unless a message has the bytes that so many entries take, and the region a place for each.
inline void expect_bytes(std::int64_t bytes, std::int64_t expected, std::int64_t count, region where) {
  if (count < 0 || count > where.width()) {
    throw error(fault::damaged_message,
                "a message has " + std::to_string(count) + " entries of a region of " + std::to_string(where.width()));
  }
  if (bytes < expected) {
    throw error(fault::damaged_message, std::to_string(bytes) + " bytes arrived for " + std::to_string(count) +
                                            " entries, which take " + std::to_string(expected));
  }
}

} // namespace oktopk::detail
