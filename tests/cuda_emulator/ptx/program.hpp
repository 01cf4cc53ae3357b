// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include "types.hpp"

#include <array>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace cuda_emulator {

struct frame;
struct function;
struct instruction;
struct module;
struct warp;

constexpr int warp_size = 32;
constexpr u32 all_lanes = ~u32(0);
constexpr u32 no_register = ~u32(0);

using lane_values = std::array<u64, warp_size>;

// Executes an instruction for those lanes of a warp whose bits are set.
using handler = void (*)(warp&, frame&, instruction const&, u32 lanes);

// How the interpreter goes on after an instruction.
enum class step_kind : u8 {
  next,         // to the next instruction, after its handler
  yield,        // the same, but others may come first: somebody may be waiting in a loop
  warp_sync,    // its handler runs when all lanes of its mask are there
  barrier,      // when all warps of the block are there
  branch,       // to `target`
  branch_table, // to one of `targets`
  call,
  leave, // the function
  exit,  // the kernel
  trap,
  unknown // to the emulator: an error if it is executed
};

struct operand {
  enum class kinds : u8 { none, value, constant, predicate };
  kinds kind = kinds::none;
  bool negated = false;
  u32 index = 0;                       // of a register or predicate
  lane_values const* values = nullptr; // of a constant
};

struct call_target {
  function* callee = nullptr;
  std::vector<u32> arguments; // where they lie among the caller's parameters
  i64 result = -1;
};

struct instruction {
  step_kind step = step_kind::next;
  handler run = nullptr;
  u32 guard = no_register; // predicate
  bool guard_negated = false;

  ptx_type type = ptx_type::none;
  memory_space space = memory_space::generic;
  u8 width = 1;   // elements of a vector
  u8 variant = 0; // which of several forms; each group of instructions has its own
  u8 combine = 0;
  bool flag = false;

  std::array<u32, 4> destinations{no_register, no_register, no_register, no_register};
  u32 predicate = no_register; // a second destination
  std::array<operand, 4> sources;
  operand address; // base
  operand members; // mask of lanes
  i64 offset = 0;  // of an address; a number in an instruction

  u32 target = 0;
  std::vector<u32> targets;
  std::unique_ptr<call_target> call;
  std::string text;
};

// A variable or a parameter.
struct variable {
  std::string name;
  memory_space space = memory_space::generic;
  ptx_type type = ptx_type::none;
  u64 address = 0; // of a parameter of a call: where it lies among the caller's; of a local one: in the frame
  u64 size = 0;
  u32 alignment = 1;
  std::string initial;
};

// Of addresses.
struct range {
  u32 begin = 0;
  u32 end = 0;
};

struct function {
  module* owner = nullptr;
  std::string name;
  bool is_kernel = false;
  bool is_decoded = false;
  std::string body; // empty where it is declared alone
  std::vector<variable> parameters;
  std::vector<variable> results;
  u32 parameter_bytes = 0; // of both
  u32 most_threads = 1024; // of a block: .maxntid
  u32 asked_dynamic = 0;   // bytes of shared memory of a launch, where the host has asked for more than usual

  // Written by decode().
  std::vector<instruction> code;
  std::map<u64, lane_values> constants;
  u32 registers = 0;
  u32 predicates = 0;
  u32 specials_used = 0; // bits
  u32 call_bytes = 0;    // parameters and results of its own and of those it calls, for one lane
  u32 local_bytes = 0;
  range shared; // declared in its body

  std::vector<range> shared_in_all; // by shared_memory_of()
};

// A translation unit's PTX.
struct module {
  std::string text;
  bool is_read = false;
  std::unordered_map<std::string, std::unique_ptr<function>> functions;
  std::unordered_map<std::string, variable> variables;
  u32 shared_bytes = 0;  // given to variables in shared memory so far
  u32 shared_by_all = 0; // of these to variables outside of functions
};

// Shared memory whose size the launch says begins here in every block, behind all variables.
constexpr u32 dynamic_shared = u32(1) << 20;

// Addresses by which generic pointers name what is not global memory.
constexpr u64 window_size = u64(1) << 24;
constexpr u64 shared_window = 0x710000000000;
constexpr u64 local_window = 0x720000000000;
constexpr u64 parameter_window = 0x730000000000;

// Registers that the hardware sets: the first ones of a frame.
inline constexpr std::string_view special_names[] = {"tid.x",   "tid.y",    "tid.z",    "ntid.x",
                                                     "ntid.y",  "ntid.z",   "ctaid.x",  "ctaid.y",
                                                     "ctaid.z", "nctaid.x", "nctaid.y", "nctaid.z"};
constexpr u32 special_count = std::size(special_names);

void read(module& read_module);                               // its declarations, when first needed
void place_variables(module& placed);                         // in device memory, with their initial values
void decode(function& decoded);                               // its instructions, when first executed
std::vector<range> const& shared_memory_of(function& kernel); // what it and all that it calls have declared
variable read_variable(std::string_view declaration);
void place_shared(variable& placed, module& owner); // behind those that have a place; not one that a launch sizes

inline u64 aligned(u64 place, u64 alignment) {
  return (place + alignment - 1) / alignment * alignment;
}

} // namespace cuda_emulator
