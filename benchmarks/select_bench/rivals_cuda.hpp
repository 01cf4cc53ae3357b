// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "inputs.hpp"

#ifdef KOKKOS_ENABLE_CUDA
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/sort.h>
#if __has_include(<cub/device/device_topk.cuh>) && __has_include(<cuda/execution>)
#define SELECT_BENCH_WITH_CUB_TOPK
#include <cub/device/device_topk.cuh>
#include <cuda/execution>
#include <cuda/stream_ref>
#endif

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

// What the vendor's library offers on a GPU.
namespace select_bench {

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

#ifdef SELECT_BENCH_WITH_CUB_TOPK

struct magnitude_of {
  KOKKOS_FUNCTION float operator()(float x) const { return Kokkos::fabs(x); }
};

/// `cub::DeviceTopK`, with all that it needs from one repetition to the next.
///
/// Its selection is in no order, and which of equal magnitudes it takes is left open, as it is fastest.
class cub_top_k {
public:
  cub_top_k(space const& exec, const_device_vector from, std::int64_t k)
      : exec_(exec), from_(from), k_(k), magnitudes_("select_bench::magnitudes", static_cast<std::size_t>(k)),
        indices_("select_bench::indices", static_cast<std::size_t>(k)) {
    std::size_t bytes = 0;
    call(nullptr, bytes);
    scratch_ = decltype(scratch_)("select_bench::room", bytes);
  }

  void run() {
    std::size_t bytes = scratch_.extent(0);
    call(scratch_.data(), bytes);
    exec_.fence();
  }

private:
  void call(void* scratch, std::size_t& bytes) {
    namespace execution = ::cuda::execution;
    auto const quickest = ::cuda::std::execution::env{
        ::cuda::stream_ref{exec_.cuda_stream()},
        execution::require(execution::determinism::not_guaranteed, execution::output_ordering::unsorted)};
    cudaError_t const status =
        cub::DeviceTopK::MaxPairs(scratch, bytes, thrust::make_transform_iterator(from_.data(), magnitude_of()),
                                  magnitudes_.data(), thrust::make_counting_iterator(std::int32_t(0)), indices_.data(),
                                  static_cast<std::int64_t>(from_.extent(0)), k_, quickest);
    if (status != cudaSuccess) {
      throw std::runtime_error(std::string("cub::DeviceTopK: ") + cudaGetErrorString(status));
    }
  }

  space exec_;
  const_device_vector from_;
  std::int64_t k_;
  device_vector magnitudes_;
  Kokkos::View<std::int32_t*, space::memory_space> indices_;
  Kokkos::View<unsigned char*, space::memory_space> scratch_;
};

#endif

} // namespace select_bench
#endif
