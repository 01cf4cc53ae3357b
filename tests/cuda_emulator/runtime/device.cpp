// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The one device, errors, and the few functions of the driver that Kokkos calls.

#include "../device/settings.hpp"
#include "last_error.hpp"

#include <cstdio>
#include <cstring>
#include <cuda.h>

namespace cuda_emulator {

namespace {

thread_local cudaError_t last_error = cudaSuccess;

} // namespace

cudaError_t remembered(cudaError_t error) {
  last_error = error;
  return error;
}

} // namespace cuda_emulator

using namespace cuda_emulator;

cudaError_t cudaGetLastError() {
  cudaError_t const error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() {
  return last_error;
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
  return device == 0 ? cudaSuccess : remembered(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  cudaDeviceProp p = {};
  std::strcpy(p.name, "emulated");
  p.major = 7;
  p.minor = 5;
  p.multiProcessorCount = static_cast<int>(settings::given().multiprocessors);
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
  p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = p.managedMemory = 1;
  *properties = p;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  switch (attribute) {
  case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
  case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
  case cudaDevAttrWarpSize: *value = p.warpSize; break;
  case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
  case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
  case cudaDevAttrMaxSharedMemoryPerBlock: *value = static_cast<int>(p.sharedMemPerBlock); break;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = static_cast<int>(p.sharedMemPerBlockOptin); break;
  case cudaDevAttrMaxThreadsPerMultiProcessor: *value = p.maxThreadsPerMultiProcessor; break;
  case cudaDevAttrMaxRegistersPerBlock: *value = p.regsPerBlock; break;
  case cudaDevAttrClockRate: *value = 1000000; break;
  case cudaDevAttrUnifiedAddressing: *value = 1; break;
  default: *value = 0;
  }
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  return cudaRuntimeGetVersion(version);
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
