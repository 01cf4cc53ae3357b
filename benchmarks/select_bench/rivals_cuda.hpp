// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "vectors.hpp"

#include <cstdint>

#ifdef KOKKOS_ENABLE_CUDA
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/sort.h>
#endif

// What the vendor's library offers on a GPU.
namespace select_bench {

#ifdef KOKKOS_ENABLE_CUDA

inline void take_magnitudes(space const& exec, const_device_vector from, device_vector to) {
  Kokkos::parallel_for(
      "select_bench::magnitudes",
      Kokkos::RangePolicy<space, Kokkos::IndexType<std::int64_t>>(exec, 0, static_cast<std::int64_t>(to.extent(0))),
      KOKKOS_LAMBDA(std::int64_t i) { to(i) = Kokkos::fabs(from(i)); });
}

inline void sort_descending(Kokkos::Cuda const& exec, device_vector values) {
  thrust::sort(thrust::cuda::par.on(exec.cuda_stream()), values.data(), values.data() + values.extent(0),
               thrust::greater<float>());
  exec.fence();
}

#endif

} // namespace select_bench
