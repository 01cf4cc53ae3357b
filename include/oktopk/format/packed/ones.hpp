// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/format/packed/bit_stream.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace oktopk::detail {

/// The positions of the ones of a byte, ascending, and their number.
struct ones_of_byte {
  std::array<std::uint16_t, 8> positions{};
};

inline constexpr auto ones_of_bytes = [] {
  std::array<ones_of_byte, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::size_t count = 0;
    for (unsigned bit = 0; bit < 8; ++bit) {
      if ((byte >> bit & 1U) != 0) {
        table[byte].positions[count++] = static_cast<std::uint16_t>(bit);
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
  // A byte at a time, all of its positions at once: nothing to predict.
  using eight [[gnu::vector_size(16)]] = std::uint16_t;
  auto base = static_cast<std::uint16_t>(0);
  for (; from < end && found < most; ++from) {
    auto const byte = static_cast<std::size_t>(*from);
    eight places;
    __builtin_memcpy(&places, ones_of_bytes[byte].positions.data(), sizeof places);
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

} // namespace oktopk::detail
