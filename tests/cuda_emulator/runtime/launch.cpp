// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Kernels: their launches and what the host may ask about them.

#include "../device/errors.hpp"
#include "../device/modules.hpp"
#include "../device/queues.hpp"
#include "../execution/warp.hpp"

#include <algorithm>
#include <cstdio>

namespace cuda_emulator {

namespace {

struct configuration {
  dim3 grid;
  dim3 threads;
  size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};
// The configuration of a launch, from its triple brackets until the kernel's host function fetches it. An argument of a
// kernel may launch another kernel, so there may be several.
thread_local std::vector<configuration> pending;

constexpr u32 largest_shared = 65536;

u32 static_shared(function& kernel) {
  u32 bytes = 0;
  for (range const& each : shared_memory_of(kernel)) {
    bytes += each.end - each.begin;
  }
  return bytes;
}

u32 most_dynamic(function& kernel) {
  constexpr u32 usual = 48 << 10; // together with what the kernel declares
  return kernel.asked_dynamic != 0 ? kernel.asked_dynamic : usual - std::min(usual, static_shared(kernel));
}

bool possible(configuration const& c, function& kernel) {
  auto const within = [](unsigned value, unsigned most) { return value >= 1 && value <= most; };
  return within(c.grid.x, 2147483647) && within(c.grid.y, 65535) && within(c.grid.z, 65535) &&
         within(c.threads.x, 1024) && within(c.threads.y, 1024) && within(c.threads.z, 64) &&
         u64(c.threads.x) * c.threads.y * c.threads.z <= kernel.most_threads &&
         c.shared_bytes <= most_dynamic(kernel) && c.shared_bytes + static_shared(kernel) <= largest_shared;
}

function* kernel_at(void const* host_function) {
  auto const found = kernels.find(host_function);
  if (found == kernels.end()) {
    return nullptr;
  }
  read(*found->second.owner);
  auto const place = found->second.owner->functions.find(found->second.name);
  if (place == found->second.owner->functions.end()) {
    stop("no PTX of the kernel %s", found->second.name.c_str());
  }
  return place->second.get();
}

cudaError_t launch(function* found, configuration const& c, void** arguments) {
  if (found == nullptr) {
    return cudaErrorInvalidDeviceFunction;
  }
  function& kernel = *found;
  if (!possible(c, kernel)) {
    std::fprintf(stderr, "*** CUDA emulator: invalid configuration: <<<(%u, %u, %u), (%u, %u, %u), %zu, %p>>> %s\n",
                 c.grid.x, c.grid.y, c.grid.z, c.threads.x, c.threads.y, c.threads.z, c.shared_bytes,
                 static_cast<void*>(c.stream), readable(kernel.name).c_str());
    return cudaErrorInvalidConfiguration;
  }
  launch_shape const shape = {
      {c.grid.x, c.grid.y, c.grid.z}, {c.threads.x, c.threads.y, c.threads.z}, static_cast<u32>(c.shared_bytes)};
  std::vector<u8> parameters(kernel.parameter_bytes);
  for (std::size_t k = 0; k < kernel.parameters.size(); ++k) {
    std::memcpy(parameters.data() + kernel.parameters[k].address, arguments[k], kernel.parameters[k].size);
  }
  enqueue(stream_of(c.stream),
          [&kernel, shape, parameters = std::move(parameters)]() mutable { run_kernel(kernel, shape, parameters); });
  return cudaSuccess;
}

} // namespace

} // namespace cuda_emulator

using namespace cuda_emulator;

extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 threads, size_t shared_bytes, CUstream_st* stream) {
  pending.push_back({grid, threads, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* threads, size_t* shared_bytes, void* stream) {
  configuration const latest = pending.back();
  pending.pop_back();
  *grid = latest.grid;
  *threads = latest.threads;
  *shared_bytes = latest.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = latest.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, void const* host_function) {
  return in_runtime([&] {
    *kernel = reinterpret_cast<cudaKernel_t>(kernel_at(host_function));
    return *kernel == nullptr ? cudaErrorInvalidDeviceFunction : cudaSuccess;
  });
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 threads, void** arguments, size_t shared_bytes,
                               cudaStream_t stream) {
  return in_runtime([&] {
    return launch(reinterpret_cast<function*>(kernel), {grid, threads, shared_bytes, stream}, arguments);
  });
}

} // extern "C"

cudaError_t cudaLaunchKernel(void const* host_function, dim3 grid, dim3 threads, void** arguments, size_t shared_bytes,
                             cudaStream_t stream) {
  return in_runtime([&] { return launch(kernel_at(host_function), {grid, threads, shared_bytes, stream}, arguments); });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t run, void* data) {
  return in_runtime([&] { enqueue(stream_of(stream), [run, data] { run(data); }); });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void const* host_function) {
  return in_runtime([&] {
    function* const kernel = kernel_at(host_function);
    if (kernel == nullptr) {
      return cudaErrorInvalidDeviceFunction;
    }
    *attributes = {};
    attributes->sharedSizeBytes = static_shared(*kernel);
    attributes->maxThreadsPerBlock = static_cast<int>(kernel->most_threads);
    attributes->numRegs = 40;
    attributes->ptxVersion = attributes->binaryVersion = 75;
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(most_dynamic(*kernel));
    attributes->preferredShmemCarveout = -1;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(void const* host_function, cudaFuncAttribute attribute, int value) {
  return in_runtime([&] {
    function* const kernel = kernel_at(host_function);
    if (kernel == nullptr) {
      return cudaErrorInvalidDeviceFunction;
    }
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
      if (value < 0 || static_cast<u32>(value) + static_shared(*kernel) > largest_shared) {
        return cudaErrorInvalidValue;
      }
      kernel->asked_dynamic = static_cast<u32>(value);
    }
    return cudaSuccess;
  });
}
