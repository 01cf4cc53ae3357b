// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Makes the mistake that its argument names. check_emulator.py knows what the emulator must say.

#include "checked.cuh"

#include <cassert>
#include <string>

__global__ void write(float* out, int place) {
  out[place] = 1;
}
__global__ void read(float const* in, float* out) {
  *out = *in;
}
__global__ void misaligned(char* out) {
  *reinterpret_cast<int*>(out + 2) = 1;
}
__global__ void shared_bound(float* out, int place) {
  __shared__ float own[32];
  own[place] = 1;
  *out = own[place / 2];
}
__global__ void torn_barriers(int* out) {
  if (threadIdx.x < 16) {
    __syncthreads();
    out[0] = 1;
  } else {
    __syncthreads();
    out[1] = 2;
    __syncthreads();
  }
}
__global__ void parted_warp(int* out) {
  if (threadIdx.x < 16) {
    asm volatile("bar.sync 0;");
    out[0] = 1;
  } else {
    out[1] = __shfl_sync(~0U, out[2], 3);
  }
}
__global__ void other_barriers() {
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 1;");
  } else {
    asm volatile("bar.sync 2;");
  }
}
__global__ void wrong_mask(int* out) {
  out[threadIdx.x] = __shfl_sync(0xFFFF, out[threadIdx.x], 1);
}
// Two lanes wait for each other, at two instructions with one mask.
__global__ void other_instruction(int* out) {
  unsigned const lane = threadIdx.x;
  if (lane == 1) {
    __syncwarp(3);
    out[0] = 1;
  } else {
    out[lane + 1] = __shfl_sync(lane < 2 ? 3U : ~3U, out[lane], 0);
  }
}
__global__ void odd_barrier() {
  asm volatile("bar.sync 1, 33;");
}
__global__ void barrier_without_all() { // one of the three warps that it is for has left
  if (threadIdx.x < 64) {
    asm volatile("bar.sync 1, 96;");
  }
}
__global__ void __launch_bounds__(64) bounded(float* out) {
  out[threadIdx.x] = 1;
}
__global__ void larger_shared(float* out) {
  __shared__ float own[1024];
  own[threadIdx.x] = 2;
  *out = own[0];
}
__device__ __noinline__ int recursion(int volatile* depth) {
  if (*depth == 0) {
    return 1;
  }
  int const result = recursion(depth); // used twice, or a compiler makes a loop of it
  return result * result + *depth;
}
__global__ void endless_recursion(int* depth) {
  *depth = 1;
  *depth = recursion(depth);
}
__global__ void hang(int volatile* flag) {
  while (*flag == 0) {
  }
}
__global__ void failing_assertion(int n) {
  assert(n == 1);
}
__global__ void trap() {
  __trap();
}
__global__ void unknown(unsigned* out) {
  asm volatile("{ .reg .f32 t; add.rz.f32 t, 0f3F800000, 0f3F800000; mov.b32 %0, t; }" : "=r"(*out));
}

int main(int, char** arguments) {
  std::string const mistake = arguments[1];
  device_array<float> a(100);
  device_array<int> numbers(std::vector<int>(100, 0));
  float on_host = 0;
  if (mistake == "bounds") {
    write<<<1, 1>>>(a.data, 100);
  } else if (mistake == "freed") {
    float* freed;
    cudaMalloc(&freed, 400);
    cudaFree(freed);
    write<<<1, 1>>>(freed, 0);
  } else if (mistake == "unwritten") {
    read<<<1, 1>>>(a.data, a.data + 1);
  } else if (mistake == "unwritten copy") {
    cudaMemcpy(&on_host, a.data, sizeof on_host, cudaMemcpyDeviceToHost);
  } else if (mistake == "host pointer") {
    read<<<1, 1>>>(&on_host, a.data);
  } else if (mistake == "device pointer") {
    on_host = *a.data;
  } else if (mistake == "misaligned") {
    misaligned<<<1, 1>>>(reinterpret_cast<char*>(a.data));
  } else if (mistake == "shared bounds") {
    shared_bound<<<1, 1>>>(a.data, 100);
  } else if (mistake == "shared memory of another kernel") {
    shared_bound<<<1, 1>>>(a.data, 30);
    larger_shared<<<1, 32>>>(a.data);
    shared_bound<<<1, 1>>>(a.data, 100);
  } else if (mistake == "endless copy") {
    cudaMemcpy(a.data, &on_host, static_cast<std::size_t>(-4), cudaMemcpyHostToDevice);
  } else if (mistake == "kind of copy") {
    cudaMemcpy(a.data, &on_host, sizeof on_host, cudaMemcpyDeviceToHost);
  } else if (mistake == "memset of the host") {
    cudaMemset(&on_host, 0, sizeof on_host);
  } else if (mistake == "free on the host twice") {
    void* twice;
    cudaMallocHost(&twice, 10);
    cudaFreeHost(twice);
    cudaFreeHost(twice);
  } else if (mistake == "destroyed stream") {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaStreamDestroy(stream);
    write<<<1, 1, 0, stream>>>(a.data, 0);
  } else if (mistake == "default stream") {
    cudaStreamDestroy(nullptr);
  } else if (mistake == "copy bounds") {
    cudaMemset(a.data, 0, 404);
  } else if (mistake == "free twice") {
    void* twice;
    cudaMalloc(&twice, 10);
    cudaFree(twice);
    cudaFree(twice);
  } else if (mistake == "torn barriers") {
    torn_barriers<<<1, 32>>>(numbers.data);
  } else if (mistake == "parted warp") {
    parted_warp<<<1, 32>>>(numbers.data);
  } else if (mistake == "other barriers") {
    other_barriers<<<1, 64>>>();
  } else if (mistake == "mask") {
    wrong_mask<<<1, 32>>>(numbers.data);
  } else if (mistake == "other instruction") {
    other_instruction<<<1, 32>>>(numbers.data);
  } else if (mistake == "odd barrier") {
    odd_barrier<<<1, 64>>>();
  } else if (mistake == "barrier without all") {
    barrier_without_all<<<1, 96>>>();
  } else if (mistake == "recursion") {
    endless_recursion<<<1, 1>>>(numbers.data);
  } else if (mistake == "hang") {
    hang<<<1, 32>>>(numbers.data);
  } else if (mistake == "assertion") {
    failing_assertion<<<1, 1>>>(2);
  } else if (mistake == "trap") {
    trap<<<1, 1>>>();
  } else if (mistake == "unknown instruction") {
    unknown<<<1, 1>>>(reinterpret_cast<unsigned*>(numbers.data));
  } else if (mistake == "unknown function") {
    cudaTextureObject_t texture;
    return cudaCreateTextureObject(&texture, nullptr, nullptr, nullptr) == cudaSuccess ? 0 : 3;
  } else if (mistake == "large block") {
    write<<<1, 2000>>>(a.data, 0);
    return cudaGetLastError() == cudaSuccess ? 0 : 3;
  } else if (mistake == "bounded block") {
    bounded<<<1, 65>>>(a.data);
    return cudaGetLastError() == cudaSuccess ? 0 : 3;
  } else if (mistake == "shared memory of a launch") {
    write<<<1, 1, 49153>>>(a.data, 0);
    return cudaGetLastError() == cudaSuccess ? 0 : 3;
  } else if (mistake == "default stream and host") {
    cudaStream_t first;
    float* pinned;
    cudaStreamCreate(&first);
    cudaMallocHost(reinterpret_cast<void**>(&pinned), sizeof(float));
    *pinned = 0;
    write<<<1, 1, 0, first>>>(pinned, 0);
    cudaMemsetAsync(a.data, 0, 400, nullptr); // comes after the kernel; nobody has waited for either
    return *pinned == 1 ? 0 : 3;
  } else if (mistake == "unordered streams" || mistake == "unordered host") {
    cudaStream_t first;
    cudaStream_t second;
    float* pinned;
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaMallocHost(reinterpret_cast<void**>(&pinned), sizeof(float));
    cudaMemset(a.data, 0, 400);
    cudaDeviceSynchronize();
    *pinned = 0;
    write<<<1, 1, 0, first>>>(a.data, 0);
    if (mistake == "unordered streams") {
      cudaMemcpyAsync(pinned, a.data, sizeof(float), cudaMemcpyDeviceToHost, second);
      cudaStreamSynchronize(second);
    } else {
      cudaMemcpyAsync(pinned, a.data, sizeof(float), cudaMemcpyDeviceToHost, first);
    }
    return *pinned == 1 ? 0 : 3;
  } else if (mistake == "none") {
    write<<<1, 1>>>(a.data, 99);
    read<<<1, 1>>>(a.data + 99, a.data);
  } else {
    return 2;
  }
  cudaDeviceSynchronize();
  return 0;
}
