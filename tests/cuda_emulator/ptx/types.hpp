// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace cuda_emulator {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using f32 = float;
using f64 = double;
__extension__ using i128 = __int128;
__extension__ using u128 = unsigned __int128;

// Types without a sign (.b32) are read as unsigned ones.
enum class ptx_type : u8 { none, u8, s8, u16, s16, u32, s32, u64, s64, f32, f64, predicate };

enum class memory_space : u8 { generic, global, constant, shared, local, parameter };

ptx_type type_named(std::string_view name);
memory_space space_named(std::string_view name); // generic where it is none

constexpr u32 size_of(ptx_type type) {
  constexpr u8 sizes[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1};
  return sizes[static_cast<u8>(type)];
}

template <typename T>
constexpr ptx_type type_of =
    std::is_integral_v<T> ? ptx_type(1 + 2 * std::countr_zero(sizeof(T)) + (std::is_signed_v<T> ? 1 : 0))
                          : ptx_type(7 + std::countr_zero(sizeof(T)));

// A register of one lane has 64 bits: integers are extended as their type says, others lie in the low bits.
template <typename T>
T from_register(u64 bits) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(bits);
  } else {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
}

template <typename T>
u64 to_register(T value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<u64>(value);
  } else {
    u64 bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  }
}

} // namespace cuda_emulator
