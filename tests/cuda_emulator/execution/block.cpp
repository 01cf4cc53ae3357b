// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A kernel: its blocks one after another, the warps of a block in turns, each on a stack of its own.

#include "../device/errors.hpp"
#include "warp.hpp"

#include <algorithm>
#include <deque>
#include <numeric>
#include <sys/mman.h>

#if !defined(__x86_64__) || !defined(__linux__)
#error "the emulator of CUDA is for Linux on x86-64: it switches stacks and catches faults of memory"
#endif

// switch_stacks(from, to): keeps the stack pointer of the caller in *from and goes on at `to`.
extern "C" void cuda_emulator_switch_stacks(void** from, void* to);
asm(R"(
.text
.globl cuda_emulator_switch_stacks
.type cuda_emulator_switch_stacks, @function
cuda_emulator_switch_stacks:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
)");

namespace cuda_emulator {

namespace {

constexpr u64 stack_bytes = 1 << 18;
constexpr int saved_registers = 6;

void* stack_of_host = nullptr;
warp* running = nullptr;

void run_warp() {
  warp& w = *running;
  w.run(w.enter(*w.in->kernel), w.alive);
  w.state = warp::states::done;
  w.give_way();
}

u8* reserved(u64 bytes) {
  void* const place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) {
    stop("cannot reserve memory for a warp");
  }
  return static_cast<u8*>(place);
}

// Warps are used again by later blocks.
warp& warp_with_index(u32 index) {
  static std::deque<warp>& warps = *new std::deque<warp>();
  while (warps.size() <= index) {
    warp& made = warps.emplace_back();
    made.stack = reserved(stack_bytes);
    made.frames = reserved(bytes_for_frames);
    made.local = reserved(u64(warp_size) * local_bytes_per_lane);
  }
  return warps[index];
}

void set_specials(warp& w, block const& b, u64 launch) {
  u32 const same_everywhere[] = {b.threads[0], b.threads[1], b.threads[2], b.place[0], b.place[1],
                                 b.place[2],   b.grid[0],    b.grid[1],    b.grid[2]};
  for (u32 k = 0; k < std::size(same_everywhere); ++k) {
    w.specials[special("ntid.x") + k].fill(same_everywhere[k]);
  }
  auto const multiprocessors = static_cast<u32>(settings::given().multiprocessors);
  w.specials[special("smid")].fill(b.place[0] % multiprocessors);
  w.specials[special("nsmid")].fill(multiprocessors);
  w.specials[special("warpid")].fill(w.index);
  w.specials[special("nwarpid")].fill(1024 / warp_size);
  w.specials[special("dynamic_smem_size")].fill(b.dynamic_bytes);
  w.specials[special("total_smem_size")].fill(b.shared_bytes);
  w.specials[special("gridid")].fill(launch);
  for (u32 lane = 0; lane < warp_size; ++lane) {
    u32 const thread = w.index * warp_size + lane;
    w.specials[special("tid.x")][lane] = thread % b.threads[0];
    w.specials[special("tid.y")][lane] = thread / b.threads[0] % b.threads[1];
    w.specials[special("tid.z")][lane] = thread / b.threads[0] / b.threads[1];
    w.specials[special("laneid")][lane] = lane;
    u32 const below = (u32(1) << lane) - 1;
    u32 const own = u32(1) << lane;
    w.specials[special("lanemask_eq")][lane] = own;
    w.specials[special("lanemask_lt")][lane] = below;
    w.specials[special("lanemask_le")][lane] = below | own;
    w.specials[special("lanemask_gt")][lane] = ~(below | own);
    w.specials[special("lanemask_ge")][lane] = ~below;
  }
}

void start(warp& w, block& b) {
  w.in = &b;
  w.state = warp::states::ready;
  w.current = nullptr;
  w.frames_used = 0;
  w.local_used = 0;
  w.steps = 0;
  u32 const lanes = std::min<u32>(warp_size, b.thread_count - w.index * warp_size);
  w.alive = lanes == warp_size ? all_lanes : (u32(1) << lanes) - 1;
  // What switch_stacks() finds: registers, where to return to, and where that would return to.
  auto* top = reinterpret_cast<u64*>(w.stack + stack_bytes - 64);
  *--top = 0;
  *--top = reinterpret_cast<u64>(&run_warp);
  for (int k = 0; k < saved_registers; ++k) {
    *--top = 0;
  }
  w.stack_pointer = top;
}

// Opens the barriers at which all that they wait for have arrived.
bool open_barriers(block& b, std::vector<warp*> const& warps) {
  bool opened = false;
  auto const left = static_cast<u32>(
      std::count_if(warps.begin(), warps.end(), [](warp* w) { return w->state != warp::states::done; }));
  for (u32 k = 0; k < barriers_per_block; ++k) {
    block_barrier& barrier = b.barriers[k];
    u32 threads = 0;
    for (warp* const each : warps) {
      threads = each->state == warp::states::at_barrier && each->barrier == k ? each->barrier_threads : threads;
    }
    u32 const wanted = threads != 0 ? threads / warp_size : left;
    if (barrier.arrived == 0 || barrier.arrived < wanted) {
      continue;
    }
    u64 const generation = barrier.generation + 1;
    barrier = {
        .generation = generation, .result_any = barrier.any, .result_all = barrier.all, .result_count = barrier.count};
    for (warp* const each : warps) {
      if (each->state == warp::states::at_barrier && each->barrier == k) {
        each->state = warp::states::ready;
      }
    }
    opened = true;
  }
  return opened;
}

void run_block(block& b, std::vector<warp*> const& warps) {
  std::fill(std::begin(b.barriers), std::end(b.barriers), block_barrier());
  for (bool progress = true; progress;) {
    progress = false;
    for (warp* const each : warps) {
      if (each->state == warp::states::ready) {
        progress = true;
        running = each;
        cuda_emulator_switch_stacks(&stack_of_host, each->stack_pointer);
      }
    }
    progress = open_barriers(b, warps) || progress;
  }
  for (warp* const each : warps) {
    if (each->state != warp::states::done) {
      each->fail(0, "all warps of the block wait at barriers, and not at the same");
    }
  }
}

template <typename T>
void shuffle(std::vector<T>& order, u64& random) {
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[next_random(random) % left]);
  }
}

} // namespace

void warp::give_way() {
  cuda_emulator_switch_stacks(&stack_pointer, stack_of_host);
}

void run_kernel(function& kernel, launch_shape const& shape, std::vector<u8>& parameters) {
  constexpr u8 fill = 0xCB; // of shared memory that nobody has written
  static std::vector<u8>& shared = *new std::vector<u8>();
  block b;
  b.kernel = &kernel;
  std::copy(shape.grid, shape.grid + 3, b.grid);
  std::copy(shape.threads, shape.threads + 3, b.threads);
  b.thread_count = shape.threads[0] * shape.threads[1] * shape.threads[2];
  b.dynamic_bytes = shape.dynamic_shared_bytes;
  b.shared_ranges = shared_memory_of(kernel);
  b.shared_ranges.push_back({dynamic_shared, dynamic_shared + shape.dynamic_shared_bytes});
  for (range const& each : b.shared_ranges) {
    b.shared_bytes += each.end - each.begin;
  }
  b.parameters = parameters.data();
  b.parameter_bytes = static_cast<u32>(parameters.size());
  shared.resize(std::max<std::size_t>(shared.size(), dynamic_shared + shape.dynamic_shared_bytes));
  b.shared = shared.data();

  u64 const blocks = u64(shape.grid[0]) * shape.grid[1] * shape.grid[2];
  counters.blocks += blocks;
  counters.threads += blocks * b.thread_count;
  ++counters.launches;
  static u64 launches = 0; // never reset: order depends on it
  ++launches;
  u64 const seed = settings::given().seed;
  u64 random = seed * 0x9E3779B97F4A7C15 + launches * 77 + 1;
  std::vector<u64> order(seed != 0 ? blocks : 0);
  std::iota(order.begin(), order.end(), u64(0));
  shuffle(order, random);
  std::vector<warp*> warps;
  for (u32 k = 0; k * warp_size < b.thread_count; ++k) {
    warps.push_back(&warp_with_index(k));
    warps.back()->index = k;
    warps.back()->random = random + k * 1315423911;
  }
  for (u64 k = 0; k < blocks; ++k) {
    u64 const place = seed != 0 ? order[k] : k;
    b.place[0] = static_cast<u32>(place % shape.grid[0]);
    b.place[1] = static_cast<u32>(place / shape.grid[0] % shape.grid[1]);
    b.place[2] = static_cast<u32>(place / shape.grid[0] / shape.grid[1]);
    for (range const& each : b.shared_ranges) {
      std::memset(b.shared + each.begin, fill, each.end - each.begin);
    }
    for (warp* const each : warps) {
      set_specials(*each, b, launches);
      start(*each, b);
    }
    if (seed != 0) {
      shuffle(warps, random);
    }
    run_block(b, warps);
  }
}

} // namespace cuda_emulator
