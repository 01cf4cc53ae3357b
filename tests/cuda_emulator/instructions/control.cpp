// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Jumps, calls, ends, and where lanes and warps meet: the interpreter acts on step_kind.

#include "lanewise.hpp"

namespace cuda_emulator {

namespace {

enum barrier_result : u8 { nothing, count, conjunction, disjunction };

void nothing_to_do(warp&, frame&, instruction const&, u32) {
}

bool decode_call(statement const& s, decoder& d, instruction& i) {
  i.step = step_kind::call;
  i.call = std::make_unique<call_target>();
  auto const inner = [](std::string_view text) { return text.substr(1, text.size() - 2); };
  std::size_t at = 0;
  u32 place = 0;
  if (at < s.operands.size() && s.operands[at].front() == '(') {
    if (!d.call_parameter(trimmed(inner(s.operands[at])), place)) {
      return false;
    }
    i.call->result = place;
    ++at;
  }
  if (at == s.operands.size()) {
    return false;
  }
  i.call->callee = d.function_named(s.operands[at]);
  if (i.call->callee == nullptr && !d.source(s.operands[at], i.call->pointer, ptx_type::u64)) {
    return false;
  }
  ++at;
  if (at < s.operands.size() && s.operands[at].front() == '(') {
    for (std::string_view const each : items_of(inner(s.operands[at]))) {
      if (!d.call_parameter(each, place)) {
        return false;
      }
      i.call->arguments.push_back(place);
    }
  }
  return true;
}

// "bar.sync 0", "barrier.sync 0, 64", "bar.red.popc.u32 %r1, 0, %p1"
bool decode_barrier(statement const& s, decoder& d, instruction& i) {
  i.step = step_kind::barrier;
  i.variant = !s.has("red") ? nothing : s.has("popc") ? count : s.has("and") ? conjunction : disjunction;
  auto operands = s.operands;
  if (s.has("arrive") || operands.empty()) {
    return false;
  }
  if (i.variant != nothing) {
    if (operands.size() < 3 || !d.destination(operands.front(), i.destinations[0]) ||
        !d.source(operands.back(), i.sources[2], ptx_type::predicate)) {
      return false;
    }
    operands.erase(operands.begin());
    operands.pop_back();
  }
  i.flag = operands.size() == 2; // says how many threads
  return d.source(operands[0], i.sources[0], ptx_type::u32) &&
         (!i.flag || d.source(operands[1], i.sources[1], ptx_type::u32));
}

} // namespace

bool decode_control(statement const& s, decoder& d, instruction& i) {
  auto const is = [&i](step_kind kind) {
    i.step = kind;
    return true;
  };
  i.run = nothing_to_do;
  if (s.name == "bra") {
    d.jump_to(s.operands.at(0));
    return is(step_kind::branch);
  }
  if (s.name == "brx" && s.operands.size() == 2) {
    d.jump_by_table(s.operands[1]);
    return is(step_kind::branch_table) && d.source(s.operands[0], i.sources[0], ptx_type::u32);
  }
  if (s.name == "call") {
    return decode_call(s, d, i);
  }
  if (s.name == "ret") {
    return is(d.is_kernel() ? step_kind::exit : step_kind::leave);
  }
  if (s.name == "exit") {
    return is(step_kind::exit);
  }
  if (s.name == "trap" || s.name == "brkpt") {
    return is(step_kind::trap);
  }
  if (s.name == "nanosleep") {
    return is(step_kind::yield);
  }
  if ((s.name == "bar" || s.name == "barrier") && s.has("warp")) {
    return is(step_kind::warp_sync) && d.source(s.operands.at(0), i.members, ptx_type::u32);
  }
  if (s.name == "bar" || s.name == "barrier") {
    return decode_barrier(s, d, i);
  }
  for (std::string_view const without_effect : {"membar", "fence", "prefetch", "prefetchu", "discard", "pmevent"}) {
    if (s.name == without_effect) { // memory is never out of order here
      return is(step_kind::next);
    }
  }
  return false;
}

} // namespace cuda_emulator
