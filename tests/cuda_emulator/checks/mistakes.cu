// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Makes the mistake that its argument names. check_emulator.py knows what the emulator must say.

#include <cassert>
#include <string_view>

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

float* floats;
int* numbers;
float on_host = 0;
bool seen = false; // by the program: a wrong number, or an error that CUDA returns

void unordered(bool other_stream) {
  cudaStream_t streams[2];
  float* pinned;
  for (cudaStream_t& each : streams) {
    cudaStreamCreateWithFlags(&each, cudaStreamNonBlocking);
  }
  cudaMallocHost(&pinned, sizeof(float));
  cudaMemset(floats, 0, 400);
  cudaDeviceSynchronize();
  *pinned = 0;
  write<<<1, 1, 0, streams[0]>>>(floats, 0);
  cudaMemcpyAsync(pinned, floats, sizeof(float), cudaMemcpyDeviceToHost, streams[other_stream ? 1 : 0]);
  if (other_stream) {
    cudaStreamSynchronize(streams[1]);
  }
  seen = *pinned != 1;
}

struct {
  char const* name;
  void (*make)();
} const mistakes[] = {
    {"bounds", [] { write<<<1, 1>>>(floats, 100); }},
    {"freed",
     [] {
       cudaFree(floats);
       write<<<1, 1>>>(floats, 0);
     }},
    {"unwritten", [] { read<<<1, 1>>>(floats, floats + 1); }},
    {"unwritten copy", [] { cudaMemcpy(&on_host, floats, sizeof on_host, cudaMemcpyDeviceToHost); }},
    {"host pointer", [] { read<<<1, 1>>>(&on_host, floats); }},
    {"device pointer", [] { on_host = *floats; }},
    {"misaligned", [] { misaligned<<<1, 1>>>(reinterpret_cast<char*>(floats)); }},
    {"shared bounds", [] { shared_bound<<<1, 1>>>(floats, 100); }},
    {"shared memory of another kernel",
     [] {
       shared_bound<<<1, 1>>>(floats, 30);
       larger_shared<<<1, 32>>>(floats);
       shared_bound<<<1, 1>>>(floats, 100);
     }},
    {"endless copy", [] { cudaMemcpy(floats, &on_host, static_cast<std::size_t>(-4), cudaMemcpyHostToDevice); }},
    {"kind of copy", [] { cudaMemcpy(floats, &on_host, sizeof on_host, cudaMemcpyDeviceToHost); }},
    {"memset of the host", [] { cudaMemset(&on_host, 0, sizeof on_host); }},
    {"free on the host twice",
     [] {
       void* twice;
       cudaMallocHost(&twice, 10);
       cudaFreeHost(twice);
       cudaFreeHost(twice);
     }},
    {"destroyed stream",
     [] {
       cudaStream_t stream;
       cudaStreamCreate(&stream);
       cudaStreamDestroy(stream);
       write<<<1, 1, 0, stream>>>(floats, 0);
     }},
    {"default stream", [] { cudaStreamDestroy(nullptr); }},
    {"copy bounds", [] { cudaMemset(floats, 0, 404); }},
    {"free twice",
     [] {
       cudaFree(floats);
       cudaFree(floats);
     }},
    {"torn barriers", [] { torn_barriers<<<1, 32>>>(numbers); }},
    {"parted warp", [] { parted_warp<<<1, 32>>>(numbers); }},
    {"other barriers", [] { other_barriers<<<1, 64>>>(); }},
    {"mask", [] { wrong_mask<<<1, 32>>>(numbers); }},
    {"other instruction", [] { other_instruction<<<1, 32>>>(numbers); }},
    {"odd barrier", [] { odd_barrier<<<1, 64>>>(); }},
    {"barrier without all", [] { barrier_without_all<<<1, 96>>>(); }},
    {"recursion", [] { endless_recursion<<<1, 1>>>(numbers); }},
    {"hang", [] { hang<<<1, 32>>>(numbers); }},
    {"assertion", [] { failing_assertion<<<1, 1>>>(2); }},
    {"trap", [] { trap<<<1, 1>>>(); }},
    {"unknown instruction", [] { unknown<<<1, 1>>>(reinterpret_cast<unsigned*>(numbers)); }},
    {"unknown function",
     [] {
       cudaTextureObject_t texture;
       seen = cudaCreateTextureObject(&texture, nullptr, nullptr, nullptr) != cudaSuccess;
     }},
    {"large block", [] { write<<<1, 2000>>>(floats, 0); }},
    {"bounded block", [] { bounded<<<1, 65>>>(floats); }},
    {"shared memory of a launch", [] { write<<<1, 1, 49153>>>(floats, 0); }},
    {"default stream and host",
     [] {
       cudaStream_t first;
       float* pinned;
       cudaStreamCreate(&first);
       cudaMallocHost(&pinned, sizeof(float));
       *pinned = 0;
       write<<<1, 1, 0, first>>>(pinned, 0);
       cudaMemsetAsync(floats, 0, 400, nullptr); // comes after the kernel; nobody has waited for either
       seen = *pinned != 1;
     }},
    {"unordered streams", [] { unordered(true); }},
    {"unordered host", [] { unordered(false); }},
    {"none",
     [] {
       write<<<1, 1>>>(floats, 99);
       read<<<1, 1>>>(floats + 99, floats);
     }},
};

int main(int, char** arguments) {
  cudaMalloc(&floats, 100 * sizeof(float));
  cudaMalloc(&numbers, 100 * sizeof(int));
  cudaMemset(numbers, 0, 100 * sizeof(int));
  for (auto const& each : mistakes) {
    if (std::string_view(each.name) == arguments[1]) {
      each.make();
      seen = seen || cudaGetLastError() != cudaSuccess;
      cudaDeviceSynchronize();
      return seen ? 3 : 0;
    }
  }
  return 2;
}
