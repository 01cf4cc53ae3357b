// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Allocation, copies and sets.

#include "../device/memory.hpp"
#include "../device/counters.hpp"
#include "../device/errors.hpp"
#include "../device/modules.hpp"
#include "../device/queues.hpp"

#include <cstdlib>

namespace cuda_emulator {

namespace {

u64 number_of(void const* pointer) {
  return reinterpret_cast<u64>(pointer);
}

bool pageable(void const* pointer, u64 bytes) {
  return !device_memory::owns(pointer) && !device_memory::kernels_may_use(number_of(pointer), bytes);
}

void copy_now(void* to, void const* from, u64 bytes) {
  u8* const target = device_memory::range(to, bytes, "copy");
  u8 const* const source = device_memory::range(from, bytes, "copy");
  if (device_memory::owns(to) || device_memory::owns(from)) {
    ++counters.copies;
    counters.bytes_copied += bytes;
  }
  if (device_memory::owns(to) && device_memory::owns(from)) {
    device_memory::copy_marks(number_of(to), number_of(from), bytes);
  } else if (!device_memory::was_written(number_of(from), bytes)) {
    stop("copy of %lu bytes from %p to the host, and of these some that nobody wrote", bytes, from);
  } else {
    device_memory::mark_written(number_of(to), bytes);
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
    ++counters.host_waits;
    finish(queue);
  }
}

// Somewhere in a __device__ or __constant__ variable.
void* place_in(void const* symbol, size_t offset) {
  auto const found = symbols.find(symbol);
  if (found == symbols.end()) {
    stop("a copy to %p, which is no variable of the device", symbol);
  }
  read(*found->second.owner);
  return reinterpret_cast<void*>(found->second.owner->variables.at(found->second.name).address + offset);
}

} // namespace

} // namespace cuda_emulator

using namespace cuda_emulator;

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return in_runtime([&] {
    *pointer = bytes != 0 ? reinterpret_cast<void*>(device_memory::allocate(bytes)) : nullptr;
    return bytes != 0 && *pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
  });
}

cudaError_t cudaFree(void* pointer) {
  return in_runtime([&] {
    if (pointer != nullptr) {
      finish_all();
      device_memory::release(number_of(pointer));
    }
  });
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  return in_runtime([&] {
    constexpr u64 apart = 256;
    *pointer = bytes <= ~u64(0) - apart ? std::aligned_alloc(apart, (bytes / apart + 1) * apart) : nullptr;
    if (*pointer == nullptr) {
      return cudaErrorMemoryAllocation;
    }
    device_memory::pinned[number_of(*pointer)] = bytes;
    return cudaSuccess;
  });
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return cudaHostAlloc(pointer, bytes, 0);
}

cudaError_t cudaFreeHost(void* pointer) {
  return in_runtime([&] {
    if (pointer == nullptr) {
      return;
    }
    finish_all();
    if (device_memory::pinned.erase(number_of(pointer)) == 0) {
      stop("free of %p, which is no page-locked memory that CUDA has given", pointer);
    }
    std::free(pointer);
  });
}

cudaError_t cudaMemcpyAsync(void* to, void const* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return in_runtime([&] { copy(to, from, bytes, kind, stream); });
}

cudaError_t cudaMemcpy(void* to, void const* from, size_t bytes, cudaMemcpyKind kind) {
  return in_runtime([&] {
    copy(to, from, bytes, kind, nullptr);
    counters.host_waits += pageable(to, bytes) && bytes != 0 ? 0 : 1; // else it is counted already
    finish(stream_of(nullptr));
  });
}

cudaError_t cudaMemcpyToSymbolAsync(void const* symbol, void const* from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return in_runtime([&] { copy(place_in(symbol, offset), from, bytes, kind, stream); });
}

cudaError_t cudaMemcpyToSymbol(void const* symbol, void const* from, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  return in_runtime([&] { return cudaMemcpy(place_in(symbol, offset), from, bytes, kind); });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return in_runtime([&] {
    if (bytes != 0 && pageable(to, bytes)) {
      stop("memset of %lu bytes at %p, which is no memory of the device; is it the host's?", bytes, to);
    }
    enqueue(stream_of(stream), [to, value, bytes] {
      std::memset(device_memory::range(to, bytes, "memset"), value, bytes);
      device_memory::mark_written(number_of(to), bytes);
    });
  });
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return cudaMemsetAsync(to, value, bytes, nullptr);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, void const* pointer) {
  return in_runtime([&] {
    bool const of_device = device_memory::owns(pointer);
    *attributes = {};
    attributes->devicePointer = const_cast<void*>(pointer);
    attributes->hostPointer = of_device ? nullptr : const_cast<void*>(pointer);
    attributes->type = of_device              ? cudaMemoryTypeDevice
                       : pageable(pointer, 1) ? cudaMemoryTypeUnregistered
                                              : cudaMemoryTypeHost;
  });
}
