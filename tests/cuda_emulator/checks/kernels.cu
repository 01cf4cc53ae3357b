// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What the lanes of a warp do together, jumps, launches, streams, and the counts: where these were wrong, the suites of the
// library might pass nevertheless. Prints what is wrong; the exit status is 0 where nothing is.

#include "../counts.hpp"
#include "checked.cuh"

#include <dlfcn.h>
#include <functional>

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

void check_streams() {
  device_array<float> a(std::vector<float>(1000, 2.0F));
  device_array<float> b(std::vector<float>(1000, 1.0F));
  cudaStream_t first;
  cudaStream_t second;
  cudaEvent_t event;
  cudaStreamCreate(&first);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  cudaEventCreate(&event);
  add<<<4, 256, 0, first>>>(1000, a.data, b.data, 1);
  cudaEventRecord(event, first);
  cudaStreamWaitEvent(second, event, 0);
  add<<<4, 256, 0, second>>>(1000, b.data, a.data, 1);
  cudaStreamSynchronize(second);
  float got = 0;
  cudaMemcpyAsync(&got, a.data + 999, sizeof got, cudaMemcpyDeviceToHost, second);
  expect(got == 5, "an event does not order two streams");
  expect(cudaEventQuery(event) == cudaSuccess, "an event that was waited for is not done");
  add<<<4, 256, 0, first>>>(1000, b.data, a.data, 1);
  cudaMemcpy(&got, a.data, sizeof got, cudaMemcpyDeviceToHost); // the default stream waits for `first`
  expect(got == 8, "the default stream does not wait for a blocking stream");
  add<<<4, 256, 0, second>>>(1000, b.data, a.data, 1);
  while (cudaStreamQuery(second) != cudaSuccess) {
  }
  expect(a.on_host()[5] == 11, "a stream that is asked does not come to its end");
  expect(cudaLaunchKernel(reinterpret_cast<void*>(&check_streams), 1, 1, nullptr, 0, nullptr) != cudaSuccess &&
             cudaGetLastError() != cudaSuccess && cudaGetLastError() == cudaSuccess,
         "an error is not kept, or more than once");
  cudaEventDestroy(event);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
}

// Events and streams as CUDA has them: a wait is for what was recorded before the call of the wait.
void check_events() {
  device_array<float> a(std::vector<float>(1000, 2.0F));
  device_array<float> b(std::vector<float>(1000, 1.0F));
  cudaStream_t first;
  cudaStream_t second;
  cudaEvent_t event;
  float* pinned;
  cudaMallocHost(reinterpret_cast<void**>(&pinned), sizeof(float));
  cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  cudaEventCreate(&event);
  cudaEventRecord(event, first);
  add<<<4, 256, 0, first>>>(1000, a.data, b.data, 1); // b = 3
  cudaEventRecord(event, first);
  cudaStreamWaitEvent(second, event, 0);
  add<<<4, 256, 0, second>>>(1000, b.data, a.data, 1); // a = 5
  cudaEventRecord(event, second);                      // the wait above is not for this one
  cudaStreamSynchronize(second);
  expect(a.on_host()[999] == 5, "an event that is recorded again orders two streams no more");
  add<<<4, 256, 0, first>>>(1000, a.data, b.data, 1); // b = 8
  cudaEventRecord(event, first);
  cudaStreamWaitEvent(second, event, 0);
  cudaEventDestroy(event);
  add<<<4, 256, 0, second>>>(1000, b.data, a.data, 1); // a = 13
  cudaStreamDestroy(first);
  cudaMemcpyAsync(pinned, a.data, sizeof(float), cudaMemcpyDeviceToHost, second);
  cudaStreamDestroy(second);
  cudaDeviceSynchronize();
  expect(*pinned == 13, "what was enqueued before an event or a stream was destroyed is not done, or not in order");
  cudaFreeHost(pinned);
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
  auto const counts_of = [](auto const& run) {
    static auto const read = reinterpret_cast<void (*)(oktopk_cuda_emulator_counts*)>(
        dlsym(RTLD_DEFAULT, "oktopk_cuda_emulator_read_counts"));
    static auto const reset = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "oktopk_cuda_emulator_reset_counts"));
    cudaDeviceSynchronize();
    reset();
    run();
    oktopk_cuda_emulator_counts counts;
    read(&counts);
    return counts;
  };
  device_array<float> a(std::vector<float>(8192, 2.0F));
  device_array<float> b(std::vector<float>(1024, 1.0F));
  auto counts = counts_of([&] {
    add<<<4, 256>>>(1024, a.data, b.data, 1);
    cudaDeviceSynchronize();
  });
  expect(counts.launches == 1 && counts.blocks == 4 && counts.threads == 1024, "launches are counted wrongly");
  expect(counts.bytes_read == 8192 && counts.bytes_written == 4096, "bytes of kernels are counted wrongly");
  expect(counts.sectors_read == 256 && counts.sectors_written == 128, "sectors are counted wrongly");
  expect(counts.device_waits == 1 && counts.stream_waits == 0, "waits for the device are counted wrongly");
  u64 const instructions = counts.thread_instructions;
  expect(instructions % 1024 == 0 && instructions > 10240 && instructions < 32 * counts.warp_instructions,
         "instructions are counted wrongly");
  counts = counts_of([&] {
    add<<<4, 256>>>(1024, a.data, b.data, 8);
    cudaStreamSynchronize(nullptr);
  });
  expect(counts.sectors_read == 1024 + 128 && counts.bytes_read == 8192, "scattered reads are counted wrongly");
  expect(counts.stream_waits == 1, "waits for a stream are counted wrongly");
  counts = counts_of([&] {
    b.on_host();
    cudaMemcpyAsync(b.data, a.data, 512, cudaMemcpyDeviceToDevice, nullptr);
    cudaMemset(b.data, 0, 100);
    device_array<float> const c(std::vector<float>(100));
  });
  expect(counts.copies_to_host == 1 && counts.bytes_to_host == 4096, "copies to the host are counted wrongly");
  expect(counts.copies_to_device == 1 && counts.bytes_to_device == 400, "copies to the device are counted wrongly");
  expect(counts.copies_on_device == 1 && counts.bytes_on_device == 512, "copies on the device are counted wrongly");
  expect(counts.memsets == 1 && counts.bytes_set == 100 && counts.allocations == 1, "sets are counted wrongly");
  expect(counts.blocking_copies == 2, "blocking copies are counted wrongly");
}

int main() {
  check<i32>("a lock", locked, 64, [](int) { return 64; });
  check<i32>("halves of a warp", halves, 32, expected_halves);
  check<i32>("a warp that polls", polls, 64, [](int) { return 1; });
  check<i32>("hidden label", hidden_label, 4, [](int t) { return t % 2 == 0 ? 111 : 100; });
  check_streams();
  check_events();
  check_launches();
  check_counts();
  std::printf("%d faults\n", faults);
  return faults == 0 ? 0 : 1;
}
