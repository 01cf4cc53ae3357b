// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory_passes.hpp"

namespace select_bench {

namespace detail {

// Stretches vectorise on a CPU; on a device a thread has four values, which it reads at once.
inline constexpr std::int64_t stretch = on_device ? 4 : 4096;

struct alignas(16) quad {
  float values[4];
};

/// Four values of an array that begins where a quad may, which the compiler knows.
KOKKOS_INLINE_FUNCTION quad quad_at(float const* from) {
  return *reinterpret_cast<quad const*>(from);
}

// The compiler believes `restrict` of parameters only.
KOKKOS_INLINE_FUNCTION void add(float const* __restrict residual, float const* __restrict gradient,
                                float* __restrict out, std::int64_t count) {
  if (on_device && count == 4) {
    quad const r = quad_at(residual);
    quad const g = quad_at(gradient);
    quad a;
    for (int i = 0; i < 4; ++i) {
      a.values[i] = r.values[i] + rate * g.values[i];
    }
    *reinterpret_cast<quad*>(out) = a;
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = residual[i] + rate * gradient[i];
  }
}

KOKKOS_INLINE_FUNCTION std::uint32_t sum_of_bits(float const* from, std::int64_t count) {
  std::uint32_t sum = 0;
  if (on_device && count == 4) {
    quad const q = quad_at(from);
    for (int i = 0; i < 4; ++i) {
      sum += __builtin_bit_cast(std::uint32_t, q.values[i]);
    }
    return sum;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    sum += __builtin_bit_cast(std::uint32_t, from[i]);
  }
  return sum;
}

} // namespace detail

std::uint32_t read_pass(space const& exec, const_device_vector const& from) {
  auto const size = static_cast<std::int64_t>(from.extent(0));
  std::int64_t const width = detail::stretch;
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

void read_read_write_pass(space const& exec, const_device_vector const& residual, const_device_vector const& gradient,
                          device_vector const& accumulator) {
  auto const size = static_cast<std::int64_t>(accumulator.extent(0));
  std::int64_t const width = detail::stretch;
  float const* const r = residual.data();
  float const* const g = gradient.data();
  float* const a = accumulator.data();
  Kokkos::parallel_for(
      "select_bench::read_read_write",
      Kokkos::RangePolicy<space, Kokkos::IndexType<std::int64_t>>(exec, 0, (size + width - 1) / width),
      KOKKOS_LAMBDA(std::int64_t i) {
        std::int64_t const begin = i * width;
        detail::add(r + begin, g + begin, a + begin, begin + width < size ? width : size - begin);
      });
  exec.fence();
}

} // namespace select_bench
