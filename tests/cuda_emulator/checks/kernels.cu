// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What the lanes of a warp do together, jumps, launches, streams, and the counts: where these were wrong, the suites of the
// library might pass nevertheless. Prints what is wrong; the exit status is 0 where nothing is.

#include "../counts.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

using i32 = std::int32_t;

int faults = 0;

template <typename T>
struct device_array {
  explicit device_array(std::size_t count) : size(count) { cudaMalloc(&data, size * sizeof(T)); }
  explicit device_array(std::vector<T> const& values) : device_array(values.size()) {
    cudaMemcpy(data, values.data(), size * sizeof(T), cudaMemcpyHostToDevice);
  }
  device_array(device_array const&) = delete;
  device_array& operator=(device_array const&) = delete;
  ~device_array() { cudaFree(data); }

  std::vector<T> on_host() const {
    std::vector<T> values(size);
    cudaMemcpy(values.data(), data, size * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
  }

  T* data = nullptr;
  std::size_t size;
};

void expect(bool holds, char const* what) {
  if (!holds) {
    std::printf("%s\n", what);
    ++faults;
  }
}

template <typename Result>
using kernel = void (*)(Result*);

// The results of one block, which `expected` has for each thread.
template <typename Result>
void check(char const* what, kernel<Result> run, int threads, std::function<Result(int)> expected, int blocks = 1) {
  device_array<Result> results(std::vector<Result>(static_cast<std::size_t>(threads), Result()));
  run<<<blocks, threads>>>(results.data);
  auto const got = results.on_host();
  for (int t = 0; t < threads; ++t) {
    if (got[t] != expected(t)) {
      std::printf("%s, thread %d: %.17g and not %.17g\n", what, t, double(got[t]), double(expected(t)));
      ++faults;
      return;
    }
  }
}

// Shared memory of a function that is called, beside the kernel's own and some whose size the launch says.
__device__ __noinline__ int mirrored_by_a_call(int value) {
  __shared__ int own[64];
  own[threadIdx.x] = value;
  __syncthreads();
  return own[63 - threadIdx.x];
}
__global__ void shared_by_calls(i32* out) {
  __shared__ int own[64];
  extern __shared__ int sized_by_launch[];
  int const t = static_cast<int>(threadIdx.x);
  own[t] = t;
  sized_by_launch[t] = 1000 * t;
  __syncthreads();
  int const mirrored = mirrored_by_a_call(t * t);
  out[t] = own[63 - t] + sized_by_launch[t] + mirrored;
}

// A lock that the lanes of a warp take in a loop: those that wait must not keep the owner from going on.
__device__ int lock = 0;
__device__ int volatile owned = 0;
__global__ void locked(i32* out) {
  for (bool done = false; !done;) {
    if (atomicCAS(&lock, 0, 1) == 0) {
      owned = owned + 1;
      __threadfence();
      atomicExch(&lock, 0);
      done = true;
    }
  }
  __syncthreads();
  out[threadIdx.x] = owned;
}

// Halves of a warp that go on without each other, one of which has lanes that come later than the rest.
__global__ void halves(i32* out) {
  int const t = static_cast<int>(threadIdx.x);
  unsigned const members = t < 16 ? 0xFFFF : 0xFFFF0000;
  int result = t;
  for (int turn = 0; turn < 3 + t / 16; ++turn) {
    asm volatile("{ .reg .pred late;\n"
                 "setp.ge.u32 late, %1, 24;\n"
                 "@late bra LATER;\n"
                 "AGAIN: shfl.sync.bfly.b32 %0, %0, 8, 31, %2;\n"
                 "bra DONE;\n"
                 "LATER: add.u32 %0, %0, 100;\n"
                 "bra AGAIN;\n"
                 "DONE: }"
                 : "+r"(result)
                 : "r"(t), "r"(members));
  }
  out[t] = result;
}
i32 expected_halves(int t) {
  i32 lanes[32];
  for (int lane = 0; lane < 32; ++lane) {
    lanes[lane] = lane;
  }
  for (int turn = 0; turn < 3 + t / 16; ++turn) {
    i32 next[32];
    for (int lane = 0; lane < 32; ++lane) {
      next[lane] = lanes[lane ^ 8] + ((lane ^ 8) >= 24 ? 100 : 0);
    }
    std::memcpy(lanes, next, sizeof next);
  }
  return lanes[t];
}
// The first warp polls, in a loop whose length fits no power of two, what the second one says.
__global__ void polls(i32* out) {
  __shared__ int volatile flag;
  int const t = static_cast<int>(threadIdx.x);
  flag = 0;
  __syncthreads();
  int waited = 0;
  if (t < 32) {
    while (flag == 0) {
      waited = waited * 5 + 3 ^ t;
    }
  } else {
    flag = 1;
  }
  out[t] = waited == -1 ? 0 : 1;
}

// A label hides that of the scope around it, for jumps inside alone.
__global__ void hidden_label(i32* out) {
  int result = 0;
  asm volatile("{ .reg .pred odd;\n"
               "setp.ne.u32 odd, %1, 0;\n"
               "@odd bra END;\n"
               "{ @!odd bra END;\n"
               "add.u32 %0, %0, 1000;\n"
               "END: add.u32 %0, %0, 1; }\n"
               "add.u32 %0, %0, 10;\n"
               "END: add.u32 %0, %0, 100; }"
               : "+r"(result)
               : "r"(threadIdx.x & 1));
  out[threadIdx.x] = result;
}
__global__ void add(int n, float const* a, float* b, int stride) {
  int const i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    b[i] += a[i * stride];
  }
}

// A wait is for what was recorded before its call, and the default stream waits for blocking streams alone.
void check_streams() {
  device_array<float> a(std::vector<float>(1000, 2.0F));
  device_array<float> b(std::vector<float>(1000, 1.0F));
  auto const add_to = [](device_array<float> const& to, device_array<float> const& from, cudaStream_t stream) {
    add<<<4, 256, 0, stream>>>(1000, from.data, to.data, 1);
  };
  cudaStream_t blocking;
  cudaStream_t first;
  cudaStream_t second;
  cudaEvent_t event;
  float* pinned;
  float got = 0;
  cudaMallocHost(&pinned, sizeof(float));
  cudaStreamCreate(&blocking);
  cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  cudaEventCreate(&event);
  cudaEventRecord(event, first);
  add_to(b, a, first); // b = 3
  cudaEventRecord(event, first);
  cudaStreamWaitEvent(second, event, 0);
  add_to(a, b, second);           // a = 5
  cudaEventRecord(event, second); // the wait above is not for this one
  cudaMemcpyAsync(&got, a.data + 999, sizeof got, cudaMemcpyDeviceToHost, second);
  expect(got == 5, "an event that is recorded again orders two streams no more");
  expect(cudaEventQuery(event) == cudaSuccess, "an event whose stream was waited for is not done");
  add_to(a, b, blocking);
  expect(a.on_host()[0] == 8, "the default stream does not wait for a blocking stream");
  add_to(b, a, second);
  while (cudaStreamQuery(second) != cudaSuccess) {
  }
  expect(b.on_host()[5] == 11, "a stream that is asked does not come to its end");
  add_to(a, b, first); // a = 19
  cudaEventRecord(event, first);
  cudaStreamWaitEvent(second, event, 0);
  cudaEventDestroy(event);
  add_to(b, a, second); // b = 30
  cudaStreamDestroy(first);
  cudaMemcpyAsync(pinned, b.data, sizeof(float), cudaMemcpyDeviceToHost, second);
  cudaStreamDestroy(second);
  cudaDeviceSynchronize();
  expect(*pinned == 30, "what was enqueued before an event or a stream was destroyed is not done, or not in order");
  expect(cudaLaunchKernel(reinterpret_cast<void*>(&check_streams), 1, 1, nullptr, 0, nullptr) != cudaSuccess &&
             cudaGetLastError() != cudaSuccess && cudaGetLastError() == cudaSuccess,
         "an error is not kept, or more than once");
}

struct launching { // an argument whose computation launches a kernel
  operator float const*() const {
    add<<<1, 32>>>(0, from, to, 1);
    return from;
  }
  float const* from;
  float* to;
};

void check_launches() {
  device_array<float> a(std::vector<float>(1000, 2.0F));
  device_array<float> b(std::vector<float>(1000, 1.0F));
  add<<<4, 256>>>(1000, launching{a.data, b.data}, b.data, 1);
  expect(b.on_host()[999] == 3, "a launch within the arguments of another one takes its configuration");
  device_array<i32> results(64);
  shared_by_calls<<<1, 64, 64 * sizeof(int)>>>(results.data);
  auto const got = results.on_host();
  for (int t = 0; t < 64; ++t) {
    expect(got[t] == 63 - t + 1000 * t + (63 - t) * (63 - t),
           "shared memory of a kernel, a call and a launch overlaps");
  }
  cudaFuncAttributes about;
  cudaFuncGetAttributes(&about, shared_by_calls);
  expect(about.sharedSizeBytes == 2 * 64 * sizeof(int), "shared memory is not that of a kernel and what it calls");
  expect(cudaFuncSetAttribute(shared_by_calls, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000) == cudaSuccess,
         "a kernel may not have more shared memory than 48 KiB");
  shared_by_calls<<<1, 64, 60000>>>(results.data);
  expect(cudaGetLastError() == cudaSuccess, "a kernel does not get the shared memory that it was allowed");
  expect(cudaFuncSetAttribute(shared_by_calls, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536) != cudaSuccess,
         "a kernel may have more shared memory than there is");
  void* none = nullptr;
  expect(cudaMalloc(&none, ~std::size_t(0)) == cudaErrorMemoryAllocation &&
             cudaMallocHost(&none, ~std::size_t(0)) == cudaErrorMemoryAllocation &&
             cudaGetLastError() == cudaErrorMemoryAllocation,
         "there is room for all that can be asked for");
}

void check_counts() {
  auto const read = reinterpret_cast<decltype(&oktopk_cuda_emulator_read_counts)>(
      dlsym(RTLD_DEFAULT, "oktopk_cuda_emulator_read_counts"));
  device_array<float> a(std::vector<float>(8192, 2.0F));
  device_array<float> b(std::vector<float>(1024, 1.0F));
  oktopk_cuda_emulator_counts before;
  oktopk_cuda_emulator_counts after;
  cudaDeviceSynchronize();
  read(&before);
  add<<<4, 256>>>(1024, a.data, b.data, 1);
  cudaDeviceSynchronize();
  read(&after);
  expect(after.launches - before.launches == 1 && after.blocks - before.blocks == 4 &&
             after.threads - before.threads == 1024,
         "launches are counted wrongly");
  expect(after.bytes_read - before.bytes_read == 8192 && after.bytes_written - before.bytes_written == 4096,
         "bytes of kernels are counted wrongly");
  expect(after.sectors_read - before.sectors_read == 256 && after.sectors_written - before.sectors_written == 128,
         "sectors are counted wrongly");
  auto const instructions = after.thread_instructions - before.thread_instructions;
  expect(instructions % 1024 == 0 && instructions > 10240 && instructions < 102400, "instructions are counted wrongly");
  expect(after.host_waits - before.host_waits == 1, "waits for the device are counted wrongly");
  read(&before);
  add<<<4, 256>>>(1024, a.data, b.data, 8);
  cudaStreamSynchronize(nullptr);
  read(&after);
  expect(after.sectors_read - before.sectors_read == 1024 + 128 && after.bytes_read - before.bytes_read == 8192,
         "scattered reads are counted wrongly");
  expect(after.host_waits - before.host_waits == 1, "waits for a stream are counted wrongly");
  read(&before);
  b.on_host();
  cudaMemcpyAsync(b.data, a.data, 512, cudaMemcpyDeviceToDevice, nullptr);
  device_array<float> const c(std::vector<float>(100));
  read(&after);
  expect(after.copies - before.copies == 3 && after.bytes_copied - before.bytes_copied == 4096 + 512 + 400 &&
             after.allocations - before.allocations == 1,
         "copies or allocations are counted wrongly");
  expect(after.host_waits - before.host_waits == 2, "copies that block are counted wrongly");
}

int main() {
  check<i32>("a lock", locked, 64, [](int) { return 64; });
  check<i32>("halves of a warp", halves, 32, expected_halves);
  check<i32>("a warp that polls", polls, 64, [](int) { return 1; });
  check<i32>("hidden label", hidden_label, 4, [](int t) { return t % 2 == 0 ? 111 : 100; });
  check_streams();
  check_launches();
  check_counts();
  std::printf("%d faults\n", faults);
  return faults == 0 ? 0 : 1;
}
