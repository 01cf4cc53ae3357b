// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Allocation, copies and sets.

#include "../device/memory.hpp"
#include "../device/counters.hpp"
#include "../device/errors.hpp"
#include "../device/modules.hpp"
#include "../device/queues.hpp"
#include "last_error.hpp"

#include <cstdlib>

namespace cuda_emulator {

namespace {

u64 number_of(void const* pointer) {
  return reinterpret_cast<u64>(pointer);
}

cudaError_t on_host(void** pointer, u64 bytes, std::map<u64, u64>& list) {
  constexpr u64 apart = 256;
  *pointer = bytes <= ~u64(0) - apart ? std::aligned_alloc(apart, (bytes / apart + 1) * apart) : nullptr;
  if (*pointer == nullptr) {
    return remembered(cudaErrorMemoryAllocation);
  }
  list[number_of(*pointer)] = bytes;
  return cudaSuccess;
}

bool pageable(void const* pointer, u64 bytes) {
  return !device_memory::owns(pointer) && !device_memory::kernels_may_use(number_of(pointer), bytes);
}

void copy_now(void* to, void const* from, u64 bytes) {
  bool const to_device = device_memory::owns(to);
  bool const from_device = device_memory::owns(from);
  u8* const target = device_memory::range(to, bytes, "copy");
  u8 const* const source = device_memory::range(from, bytes, "copy");
  if (to_device && from_device) {
    ++counters.copies_on_device;
    counters.bytes_on_device += bytes;
    device_memory::copy_marks(number_of(to), number_of(from), bytes);
  } else if (to_device) {
    ++counters.copies_to_device;
    counters.bytes_to_device += bytes;
    device_memory::mark_written(number_of(to), bytes);
  } else if (from_device) {
    ++counters.copies_to_host;
    counters.bytes_to_host += bytes;
    if (!device_memory::was_written(number_of(from), bytes)) {
      stop("copy of %lu bytes from %p to the host, and of these some that nobody wrote", bytes, from);
    }
  }
  std::memmove(target, source, bytes);
}

void check_kind(void* to, void const* from, u64 bytes, cudaMemcpyKind kind) {
  auto const fits = [bytes](void const* pointer, bool of_device) {
    return of_device ? !pageable(pointer, bytes) : !device_memory::owns(pointer);
  };
  if (kind != cudaMemcpyDefault && (!fits(to, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) ||
                                    !fits(from, kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice))) {
    stop("copy from %p to %p, one of which is not where the kind %d of the copy says", from, to,
         static_cast<int>(kind));
  }
}

// As CUDA has it: from pageable memory the bytes are fetched before the call returns, to pageable memory the call
// returns when they are there.
void copy(void* to, void const* from, u64 bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  CUstream_st* const queue = stream_of(stream);
  if (bytes == 0) {
    return;
  }
  check_kind(to, from, bytes, kind);
  device_memory::range(to, bytes, "copy");
  device_memory::range(from, bytes, "copy");
  if (pageable(from, bytes) && device_memory::owns(to)) {
    std::vector<u8> staged(static_cast<u8 const*>(from), static_cast<u8 const*>(from) + bytes);
    enqueue(queue, [to, bytes, staged = std::move(staged)] { copy_now(to, staged.data(), bytes); });
    return;
  }
  enqueue(queue, [to, from, bytes] { copy_now(to, from, bytes); });
  if (pageable(to, bytes)) {
    ++counters.blocking_copies;
    finish(queue);
  }
}

// Of a __device__ or __constant__ variable; 0 where host code names none.
u64 address_of(void const* symbol) {
  auto const found = symbols().find(symbol);
  if (found == symbols().end()) {
    return 0;
  }
  read(*found->second.owner);
  auto const place = found->second.owner->variables.find(found->second.name);
  return place == found->second.owner->variables.end() ? 0 : place->second.address;
}

} // namespace

} // namespace cuda_emulator

using namespace cuda_emulator;

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  runtime_lock const lock(runtime_mutex());
  *pointer = bytes != 0 ? reinterpret_cast<void*>(device_memory::allocate(bytes)) : nullptr;
  return bytes != 0 && *pointer == nullptr ? remembered(cudaErrorMemoryAllocation) : cudaSuccess;
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t) {
  return cudaMalloc(pointer, bytes);
}

cudaError_t cudaFree(void* pointer) {
  runtime_lock const lock(runtime_mutex());
  if (pointer != nullptr) {
    finish_all();
    if (device_memory::managed.erase(number_of(pointer)) != 0) {
      std::free(pointer);
    } else {
      device_memory::release(number_of(pointer));
    }
  }
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  runtime_lock const lock(runtime_mutex());
  if (pointer != nullptr) {
    enqueue(stream_of(stream), [pointer] { device_memory::release(number_of(pointer)); });
  }
  return cudaSuccess;
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned) {
  runtime_lock const lock(runtime_mutex());
  return on_host(pointer, bytes, device_memory::managed);
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  runtime_lock const lock(runtime_mutex());
  return on_host(pointer, bytes, device_memory::pinned);
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return cudaHostAlloc(pointer, bytes, 0);
}

cudaError_t cudaFreeHost(void* pointer) {
  runtime_lock const lock(runtime_mutex());
  if (pointer == nullptr) {
    return cudaSuccess;
  }
  finish_all();
  if (device_memory::pinned.erase(number_of(pointer)) == 0) {
    stop("free of %p, which is no page-locked memory that CUDA has given", pointer);
  }
  std::free(pointer);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned) {
  runtime_lock const lock(runtime_mutex());
  device_memory::registered[number_of(pointer)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* pointer) {
  runtime_lock const lock(runtime_mutex());
  device_memory::registered.erase(number_of(pointer));
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, void const* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  runtime_lock const lock(runtime_mutex());
  copy(to, from, bytes, kind, stream);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, void const* from, size_t bytes, cudaMemcpyKind kind) {
  runtime_lock const lock(runtime_mutex());
  copy(to, from, bytes, kind, nullptr);
  counters.blocking_copies += pageable(to, bytes) && bytes != 0 ? 0 : 1; // else it is counted already
  finish(stream_of(nullptr));
  return cudaSuccess;
}

cudaError_t cudaMemcpyToSymbolAsync(void const* symbol, void const* from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  runtime_lock const lock(runtime_mutex());
  u64 const address = address_of(symbol);
  return address == 0 ? remembered(cudaErrorInvalidSymbol)
                      : cudaMemcpyAsync(reinterpret_cast<void*>(address + offset), from, bytes, kind, stream);
}

cudaError_t cudaMemcpyToSymbol(void const* symbol, void const* from, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  runtime_lock const lock(runtime_mutex());
  u64 const address = address_of(symbol);
  return address == 0 ? remembered(cudaErrorInvalidSymbol)
                      : cudaMemcpy(reinterpret_cast<void*>(address + offset), from, bytes, kind);
}

cudaError_t cudaMemcpyFromSymbol(void* to, void const* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  runtime_lock const lock(runtime_mutex());
  u64 const address = address_of(symbol);
  return address == 0 ? remembered(cudaErrorInvalidSymbol)
                      : cudaMemcpy(to, reinterpret_cast<void*>(address + offset), bytes, kind);
}

cudaError_t cudaGetSymbolAddress(void** pointer, void const* symbol) {
  runtime_lock const lock(runtime_mutex());
  *pointer = reinterpret_cast<void*>(address_of(symbol));
  return *pointer == nullptr ? remembered(cudaErrorInvalidSymbol) : cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  runtime_lock const lock(runtime_mutex());
  if (bytes != 0 && pageable(to, bytes)) {
    stop("memset of %lu bytes at %p, which is no memory of the device; is it the host's?", bytes, to);
  }
  enqueue(stream_of(stream), [to, value, bytes] {
    ++counters.memsets;
    counters.bytes_set += bytes;
    std::memset(device_memory::range(to, bytes, "memset"), value, bytes);
    device_memory::mark_written(number_of(to), bytes);
  });
  return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return cudaMemsetAsync(to, value, bytes, nullptr);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, void const* pointer) {
  runtime_lock const lock(runtime_mutex());
  bool const of_device = device_memory::owns(pointer);
  u64 const address = number_of(pointer);
  *attributes = {};
  attributes->devicePointer = const_cast<void*>(pointer);
  attributes->hostPointer = of_device ? nullptr : const_cast<void*>(pointer);
  attributes->type = of_device                                                    ? cudaMemoryTypeDevice
                     : device_memory::lies_in(device_memory::managed, address, 1) ? cudaMemoryTypeManaged
                     : device_memory::kernels_may_use(address, 1)                 ? cudaMemoryTypeHost
                                                                                  : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  *total = size_t(8) << 30;
  *available = size_t(4) << 30;
  return cudaSuccess;
}
