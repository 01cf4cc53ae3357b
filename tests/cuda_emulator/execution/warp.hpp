// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include "../device/counters.hpp"
#include "../device/memory.hpp"
#include "../device/settings.hpp"
#include "../ptx/program.hpp"

#include <oktopk/comm/fiber.hpp>

#include <bit>
#include <string>

namespace cuda_emulator {

// A function that the lanes of a warp are in: its registers, and the parameters of the calls it makes.
struct frame {
  function* code = nullptr;
  u64 (*registers)[warp_size] = nullptr;
  u32* predicates = nullptr; // one bit for each lane
  u8* parameters = nullptr;  // function::call_bytes for each lane
  u32 carries = 0;           // of add.cc, one bit for each lane
  u32 local_base = 0;

  u8* parameters_of(int lane) const { return parameters + static_cast<u64>(lane) * code->call_bytes; }

  u64 const* values(operand const& o) const {
    return o.kind == operand::kinds::constant ? o.values->data() : registers[o.index];
  }

  u32 lanes_where(operand const& o) const {
    u32 const lanes = o.kind == operand::kinds::predicate                         ? predicates[o.index]
                      : o.kind == operand::kinds::constant && (*o.values)[0] != 0 ? all_lanes
                                                                                  : 0;
    return o.negated ? ~lanes : lanes;
  }

  void set_predicate(u32 index, u32 where, u32 lanes) {
    if (index != no_register) {
      predicates[index] = (predicates[index] & ~lanes) | (where & lanes);
    }
  }
};

struct block_barrier {
  u32 arrived = 0;  // warps
  bool any = false; // of the lanes that arrived has a predicate
};

constexpr u32 barriers_per_block = 16;

struct launch_shape {
  u32 grid[3];
  u32 threads[3];
  u32 dynamic_shared_bytes;
};

struct block : launch_shape {
  explicit block(launch_shape const& shape) : launch_shape(shape) {}

  function* kernel = nullptr;
  u32 place[3]; // in the grid
  u32 thread_count = 0;
  u8* shared = nullptr;
  std::vector<range> shared_ranges; // those that it may use
  u32 shared_bytes = 0;             // in all of them
  u8* parameters = nullptr;
  u32 parameter_bytes = 0;
  block_barrier barriers[barriers_per_block];

  bool has_shared(u64 address, u32 bytes) const {
    for (range const& each : shared_ranges) {
      if (address >= each.begin && address + bytes <= each.end) {
        return true;
      }
    }
    return false;
  }
};

constexpr u32 local_bytes_per_lane = 1 << 17;
constexpr u64 bytes_for_frames = u64(32) << 20;

// A warp runs on a stack of its own, so that it can stop at a barrier within a function.
struct warp {
  enum class states : u8 { ready, at_barrier, done };

  explicit warp(u32 number);

  block* in = nullptr;
  u32 const index;
  u32 alive = 0; // lanes that have not left the kernel
  states state = states::done;
  u32 barrier = 0;          // where it waits
  u32 barrier_threads = 0;  // as many as the barrier was told, or 0
  bool barrier_any = false; // of the barrier that it has left
  u64 steps = 0;
  u64 random = 1;

  u8* const frames;
  u64 frames_used = 0;
  u8* const local; // local_bytes_per_lane each
  u32 local_used = 0;
  lane_values specials[special_count];

  frame* current = nullptr; // for messages
  u32 current_instruction = 0;

  oktopk::detail::fiber stack;

  frame& enter(function& entered); // a frame for it
  void run(frame& entered, u32 lanes);
  void give_way() { stack.leave(); } // to the other warps of the block

  [[noreturn]] void fail(int lane, char const* format, ...) __attribute__((format(printf, 3, 4)));

  u8* translate(int lane, u64 address, u32 bytes, bool write, memory_space space) {
    if (space == memory_space::shared) {
      if ((address & (bytes - 1)) == 0 && in->has_shared(address, bytes)) {
        return in->shared + address;
      }
    } else if (space != memory_space::local && (address & (bytes - 1)) == 0) {
      if (device_memory::allocated(address, bytes)) {
        if (device_memory::knows_written()) {
          check_written(lane, address, bytes, write);
        }
        return device_memory::bytes_at(address);
      }
    }
    return translate_other(lane, address, bytes, write, space);
  }

private:
  u8* translate_other(int lane, u64 address, u32 bytes, bool write, memory_space space);
  void check_written(int lane, u64 address, u32 bytes, bool write);
};

template <typename Body>
void for_each_lane(u32 lanes, Body body) {
  for (; lanes != 0; lanes &= lanes - 1) {
    body(std::countr_zero(lanes));
  }
}

// xorshift64
inline u64 next_random(u64& state) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

std::string readable(std::string const& mangled_name);

void run_kernel(function& kernel, launch_shape const& shape, std::vector<u8>& parameters);

} // namespace cuda_emulator
