// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A kernel: its blocks one after another, the warps of a block in turns, each on a stack of its own.

#include "../device/errors.hpp"
#include "warp.hpp"

#include <algorithm>
#include <deque>
#include <numeric>
#include <sys/mman.h>

namespace cuda_emulator {

namespace {

constexpr u64 stack_bytes = 1 << 20; // enough for 256 calls within each other: local memory has room for no more

u8* reserved(u64 bytes) {
  void* const place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) {
    stop("cannot reserve memory for a warp");
  }
  return static_cast<u8*>(place);
}

void set_specials(warp& w, block const& b) { // in the order of special_names
  for (u32 k = 0; k < 3; ++k) {
    w.specials[3 + k].fill(b.threads[k]);
    w.specials[6 + k].fill(b.place[k]);
    w.specials[9 + k].fill(b.grid[k]);
  }
  for (u32 lane = 0; lane < warp_size; ++lane) {
    u32 const thread = w.index * warp_size + lane;
    w.specials[0][lane] = thread % b.threads[0];
    w.specials[1][lane] = thread / b.threads[0] % b.threads[1];
    w.specials[2][lane] = thread / b.threads[0] / b.threads[1];
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
    for (warp* const each : warps) {
      if (each->state == warp::states::at_barrier && each->barrier == k) {
        each->state = warp::states::ready;
        each->barrier_any = barrier.any;
      }
    }
    barrier = {};
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
        each->stack.resume();
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

// Warps are used again by later blocks.
warp::warp(u32 number)
    : index(number), frames(reserved(bytes_for_frames)), local(reserved(u64(warp_size) * local_bytes_per_lane)),
      stack(
          [this] {
            for (;; give_way()) {
              run(enter(*in->kernel), alive);
              state = states::done;
            }
          },
          stack_bytes) {
}

void run_kernel(function& kernel, launch_shape const& shape, std::vector<u8>& parameters) {
  constexpr u8 fill = 0xCB; // of shared memory that nobody has written
  static std::vector<u8>& shared = *new std::vector<u8>();
  static std::deque<warp>& all_warps = *new std::deque<warp>();
  block b(shape);
  b.kernel = &kernel;
  b.thread_count = shape.threads[0] * shape.threads[1] * shape.threads[2];
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
  u64 const seed = settings::seed;
  u64 random = seed * 0x9E3779B97F4A7C15 + launches * 77 + 1;
  std::vector<u64> order(seed != 0 ? blocks : 0);
  std::iota(order.begin(), order.end(), u64(0));
  shuffle(order, random);
  std::vector<warp*> warps;
  for (u32 k = 0; k * warp_size < b.thread_count; ++k) {
    if (k == all_warps.size()) {
      all_warps.emplace_back(k);
    }
    warps.push_back(&all_warps[k]);
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
      set_specials(*each, b);
      start(*each, b);
    }
    if (seed != 0) {
      shuffle(warps, random);
    }
    run_block(b, warps);
  }
}

} // namespace cuda_emulator
