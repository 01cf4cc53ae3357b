// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

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
using f16 = _Float16;
using f32 = float;
using f64 = double;
__extension__ using i128 = __int128;
__extension__ using u128 = unsigned __int128;

// Types without a sign (.b32) are read as unsigned ones.
enum class ptx_type : u8 { none, u8, s8, u16, s16, u32, s32, u64, s64, f16, f32, f64, f16x2, bf16, predicate };

enum class memory_space : u8 { generic, global, constant, shared, local, parameter };

ptx_type type_named(std::string_view name);
u32 size_of(ptx_type type);

template <typename T>
constexpr ptx_type type_of = std::is_same_v<T, u8>    ? ptx_type::u8
                             : std::is_same_v<T, i8>  ? ptx_type::s8
                             : std::is_same_v<T, u16> ? ptx_type::u16
                             : std::is_same_v<T, i16> ? ptx_type::s16
                             : std::is_same_v<T, u32> ? ptx_type::u32
                             : std::is_same_v<T, i32> ? ptx_type::s32
                             : std::is_same_v<T, u64> ? ptx_type::u64
                             : std::is_same_v<T, i64> ? ptx_type::s64
                             : std::is_same_v<T, f16> ? ptx_type::f16
                             : std::is_same_v<T, f32> ? ptx_type::f32
                             : std::is_same_v<T, f64> ? ptx_type::f64
                                                      : ptx_type::none;

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
