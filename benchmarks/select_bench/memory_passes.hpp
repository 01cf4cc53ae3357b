// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "vectors.hpp"

#include <algorithm>
#include <cstdint>

// What selection is measured against: passes over the same arrays that do nothing else.
namespace select_bench {

namespace detail {

inline constexpr std::int64_t stretch = 4096;

// The compiler believes `restrict` of parameters only.
KOKKOS_INLINE_FUNCTION void add(float const* __restrict residual, float const* __restrict gradient, float rate,
                                float* __restrict out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = residual[i] + rate * gradient[i];
  }
}

KOKKOS_INLINE_FUNCTION std::uint32_t sum_of_bits(float const* from, std::int64_t count) {
  std::uint32_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    sum += __builtin_bit_cast(std::uint32_t, from[i]);
  }
  return sum;
}

} // namespace detail

/// Reads an array; gives a sum of its bits, which it would not read otherwise. In stretches that vectorise on a CPU,
/// value by value on a device.
inline std::uint32_t read_pass(space const& exec, const_device_vector from) {
  auto const size = static_cast<std::int64_t>(from.extent(0));
  std::int64_t const width = on_device ? 1 : detail::stretch;
  float const* const values = from.data();
  std::uint32_t sum = 0;
  Kokkos::parallel_reduce(
      "select_bench::read",
      Kokkos::RangePolicy<space, Kokkos::IndexType<std::int64_t>>(exec, 0, (size + width - 1) / width),
      KOKKOS_LAMBDA(std::int64_t i, std::uint32_t & partial) {
        std::int64_t const begin = i * width;
        partial += detail::sum_of_bits(values + begin, begin + width < size ? width : size - begin);
      },
      sum);
  return sum;
}

/// Reads two arrays and writes a third: accumulator = residual + rate x gradient, and nothing else.
inline void read_read_write_pass(space const& exec, const_device_vector residual, const_device_vector gradient,
                                 float rate, device_vector accumulator) {
  auto const size = static_cast<std::int64_t>(accumulator.extent(0));
  std::int64_t const width = on_device ? 1 : detail::stretch;
  float const* const r = residual.data();
  float const* const g = gradient.data();
  float* const a = accumulator.data();
  Kokkos::parallel_for(
      "select_bench::read_read_write",
      Kokkos::RangePolicy<space, Kokkos::IndexType<std::int64_t>>(exec, 0, (size + width - 1) / width),
      KOKKOS_LAMBDA(std::int64_t i) {
        std::int64_t const begin = i * width;
        detail::add(r + begin, g + begin, rate, a + begin, begin + width < size ? width : size - begin);
      });
  exec.fence();
}

} // namespace select_bench
