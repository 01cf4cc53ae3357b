// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The one device, errors, and the few functions of the driver that Kokkos calls.

#include "../device/counters.hpp"
#include "../device/queues.hpp"
#include "../device/settings.hpp"

#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <utility>

using namespace cuda_emulator;

void oktopk_cuda_emulator_read_counts(oktopk_cuda_emulator_counts* counts) {
  in_runtime([&] { *counts = counters; });
}

cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}

char const* cudaGetErrorString(cudaError_t error) {
  thread_local char text[40];
  std::snprintf(text, sizeof text, "emulated error %d", static_cast<int>(error));
  return text;
}

char const* cudaGetErrorName(cudaError_t error) {
  return cudaGetErrorString(error);
}

cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  char const* const shown = std::getenv("CUDA_VISIBLE_DEVICES");
  bool const is_hidden =
      shown != nullptr && (*shown == '\0' || *shown == '-'); // as CUDA has it; other numbers are its own
  *count = is_hidden ? 0 : 1;
  return is_hidden ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  cudaDeviceProp p = {};
  std::strcpy(p.name, "emulated");
  p.major = 7;
  p.minor = 5;
  p.multiProcessorCount = settings::multiprocessors;
  p.warpSize = 32;
  p.maxThreadsPerBlock = p.maxThreadsDim[0] = p.maxThreadsDim[1] = p.maxThreadsPerMultiProcessor = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 2147483647;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.maxBlocksPerMultiProcessor = 16;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.totalGlobalMem = size_t(8) << 30;
  p.sharedMemPerBlock = 49152;
  p.sharedMemPerMultiprocessor = p.sharedMemPerBlockOptin = p.totalConstMem = 65536;
  p.l2CacheSize = 4 << 20;
  p.memPitch = 2147483647;
  p.memoryBusWidth = 256;
  p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = 1;
  *properties = p;
  return cudaSuccess;
}

// Kokkos asks for what it may use besides, as pools of memory: there is none of it.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit) {
  *value = 1024;
  return cudaSuccess;
}

extern "C" {

CUresult cuStreamGetCtx(CUstream, CUcontext* context) {
  *context = reinterpret_cast<CUcontext>(1); // NOLINT(performance-no-int-to-ptr): never followed
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  return cuStreamGetCtx(nullptr, context);
}

CUresult cuCtxGetDevice(CUdevice* device) {
  *device = 0;
  return CUDA_SUCCESS;
}

} // extern "C"
