// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Jumps, calls, ends, and where lanes and warps meet: the interpreter acts on step_kind.

#include "lanewise.hpp"

namespace cuda_emulator {

namespace {

void nothing_to_do(warp&, frame&, instruction const&, u32) {
}

// "call.uni (result), name, (one, other)"
bool decode_call(statement const& s, decoder& d, instruction& i) {
  i.step = step_kind::call;
  i.call = std::make_unique<call_target>();
  bool known = true;
  for (std::string_view const each : s.operands) {
    if (!each.starts_with('(')) {
      i.call->callee = d.function_named(each);
      continue;
    }
    for (std::string_view const name : items_of(each.substr(1, each.size() - 2))) {
      variable const* const found = d.variable_named(name);
      known = known && found != nullptr && found->space == memory_space::parameter;
      u32 const place = known ? static_cast<u32>(found->address) : 0;
      if (i.call->callee != nullptr) {
        i.call->arguments.push_back(place);
      } else {
        i.call->result = place;
      }
    }
  }
  return known && i.call->callee != nullptr;
}

// "bar.sync 0", "barrier.sync 0, 64", "bar.red.or.pred %p1, 0, %p2"
bool decode_barrier(statement const& s, decoder& d, instruction& i) {
  i.step = step_kind::barrier;
  if (s.has("red")) {
    return s.has("or") && s.operands.size() == 3 && d.destination(s.operands[0], i.predicate) &&
           d.source(s.operands[1], i.sources[0], ptx_type::u32) && d.source(s.operands[2], i.sources[2], s.type);
  }
  i.flag = s.operands.size() == 2; // says how many threads
  return s.has("sync") && d.source(s.operands.at(0), i.sources[0], ptx_type::u32) &&
         (!i.flag || d.source(s.operands[1], i.sources[1], ptx_type::u32));
}

} // namespace

bool decode_control(statement const& s, decoder& d, instruction& i) {
  struct plain {
    std::string_view name;
    step_kind step;
  };
  static constexpr plain without_operands[] = {
      {"exit", step_kind::exit},       {"trap", step_kind::trap},   {"brkpt", step_kind::trap},
      {"nanosleep", step_kind::yield}, {"membar", step_kind::next}, {"fence", step_kind::next}, // memory is in order
      {"prefetch", step_kind::next},   {"discard", step_kind::next}};
  i.run = nothing_to_do;
  for (plain const& each : without_operands) {
    if (s.name == each.name) {
      i.step = each.step;
      return true;
    }
  }
  if (s.name == "bra") {
    i.step = step_kind::branch;
    d.jump_to(s.operands.at(0));
    return true;
  }
  if (s.name == "brx" && s.operands.size() == 2) {
    i.step = step_kind::branch_table;
    d.jump_by_table(s.operands[1]);
    return d.source(s.operands[0], i.sources[0], ptx_type::u32);
  }
  if (s.name == "call") {
    return decode_call(s, d, i);
  }
  if (s.name == "ret") {
    i.step = d.is_kernel() ? step_kind::exit : step_kind::leave;
    return true;
  }
  if (s.name != "bar" && s.name != "barrier") {
    return false;
  }
  if (s.has("warp")) {
    i.step = step_kind::warp_sync;
    return d.source(s.operands.at(0), i.members, ptx_type::u32);
  }
  return decode_barrier(s, d, i);
}

} // namespace cuda_emulator
