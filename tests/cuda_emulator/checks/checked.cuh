// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What the programs that check the emulator share.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = unsigned long long;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = long long;
using u128 = unsigned __int128;
using i128 = __int128;

#ifdef __CUDA_ARCH__
#define EITHER(DEVICE, HOST) DEVICE
#else
#define EITHER(DEVICE, HOST) HOST
#endif

inline int faults = 0;

template <typename T>
struct device_array {
  explicit device_array(std::size_t count) : size(count) { cudaMalloc(&data, size * sizeof(T)); }
  explicit device_array(std::vector<T> const& values) : device_array(values.size()) {
    cudaMemcpy(data, values.data(), size * sizeof(T), cudaMemcpyHostToDevice);
  }
  device_array(device_array const&) = delete;
  device_array& operator=(device_array const&) = delete;
  ~device_array() { cudaFree(data); }

  std::vector<T> on_host() const {
    std::vector<T> values(size);
    cudaMemcpy(values.data(), data, size * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
  }

  T* data = nullptr;
  std::size_t size;
};

inline void expect(bool holds, char const* what) {
  if (!holds) {
    std::printf("%s\n", what);
    ++faults;
  }
}

// References for instructions that the host has no operator for.
template <typename T>
u32 ones(T bits) {
  u32 count = 0;
  for (; bits != 0; bits &= bits - 1) {
    ++count;
  }
  return count;
}

template <typename T>
u32 length(T bits) {
  u32 count = 0;
  for (; bits != 0; bits >>= 1) {
    ++count;
  }
  return count;
}

inline u64 mirrored(u64 bits) {
  u64 result = 0;
  for (int k = 0; k < 64; ++k) {
    result |= (bits >> k & 1) << (63 - k);
  }
  return result;
}

inline u32 permuted(u32 a, u32 b, u32 selector) {
  unsigned char bytes[8];
  unsigned char chosen[4];
  std::memcpy(bytes, &a, 4);
  std::memcpy(bytes + 4, &b, 4);
  for (int k = 0; k < 4; ++k) {
    unsigned char const byte = bytes[selector >> (4 * k) & 7];
    chosen[k] = (selector >> (4 * k) & 8) == 0 ? byte : byte > 127 ? 255 : 0;
  }
  u32 result;
  std::memcpy(&result, chosen, 4);
  return result;
}

// Bit by bit, as the manual describes it: beyond the number and beyond the field stands the field's sign.
inline u32 field(u32 bits, u32 place, u32 count, bool is_signed) {
  place &= 255;
  count &= 255;
  u32 const highest = place + count - 1 < 31 ? place + count - 1 : 31;
  bool const sign = is_signed && count != 0 && (bits >> highest & 1) != 0;
  u32 result = 0;
  for (u32 k = 0; k < 32; ++k) {
    bool const bit = k < count && place + k <= 31 ? (bits >> (place + k) & 1) != 0 : sign;
    result |= u32(bit) << k;
  }
  return result;
}

inline u32 inserted(u32 from, u32 into, u32 place, u32 count) {
  for (u32 k = 0; k < count && place + k < 32; ++k) {
    u32 const bit = 1U << (place + k);
    into = (from >> k & 1) != 0 ? into | bit : into & ~bit;
  }
  return into;
}

template <typename T>
T smaller(T a, T b) {
  bool const first = b != b || a < b || (a == b && a == 0 && 1 / a < 0);
  return first ? a : b;
}

inline double clamped(double number, double least, double most) {
  return number != number ? 0 : number < least ? least : number > most ? most : number;
}

inline float toward_zero(double number) {
  if (number != number) {
    return static_cast<float>(number);
  }
  float result = static_cast<float>(number);
  u32 bits;
  std::memcpy(&bits, &result, 4);
  bits -= std::fabs(static_cast<double>(result)) > std::fabs(number) ? 1 : 0;
  std::memcpy(&result, &bits, 4);
  return result;
}

inline float by_half(float number) {
  return static_cast<float>(static_cast<_Float16>(number));
}
