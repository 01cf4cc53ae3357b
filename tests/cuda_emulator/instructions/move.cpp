// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Copies between registers, and addresses.

#include "lanewise.hpp"

namespace cuda_emulator {

namespace {

constexpr auto same = []<typename T>(T a) -> T { return a; };

void move_predicate(warp&, frame& f, instruction const& i, u32 lanes) {
  f.set_predicate(i.destinations[0], f.lanes_where(i.sources[0]), lanes);
}

// `i.width` parts of a register.
u32 bits_of_part(instruction const& i) {
  return 8 * size_of(i.type) / i.width;
}

void pack(warp&, frame& f, instruction const& i, u32 lanes) {
  u32 const bits = bits_of_part(i);
  for_each_lane(lanes, [&](int lane) {
    u64 whole = 0;
    for (u32 k = 0; k < i.width; ++k) {
      whole |= (f.values(i.sources[k])[lane] & ((u64(1) << bits) - 1)) << (k * bits);
    }
    f.registers[i.destinations[0]][lane] = whole;
  });
}

void unpack(warp&, frame& f, instruction const& i, u32 lanes) {
  u32 const bits = bits_of_part(i);
  for_each_lane(lanes, [&](int lane) {
    u64 const whole = f.values(i.sources[0])[lane];
    for (u32 k = 0; k < i.width; ++k) {
      if (i.destinations[k] != no_register) {
        f.registers[i.destinations[k]][lane] = whole >> (k * bits) & ((u64(1) << bits) - 1);
      }
    }
  });
}

void local_address(warp&, frame& f, instruction const& i, u32 lanes) {
  u64 const address = f.local_base + static_cast<u64>(i.offset);
  for_each_lane(lanes, [&](int lane) { f.registers[i.destinations[0]][lane] = address; });
}

void add_offset(warp&, frame& f, instruction const& i, u32 lanes) {
  u64 const* const a = f.values(i.sources[0]);
  for_each_lane(lanes, [&](int lane) { f.registers[i.destinations[0]][lane] = a[lane] + static_cast<u64>(i.offset); });
}

u64 window_of(memory_space space) {
  return space == memory_space::shared ? shared_window : space == memory_space::local ? local_window : 0;
}

bool decode_mov(statement const& s, decoder& d, instruction& i) {
  if (s.operands.size() != 2) {
    return false;
  }
  if (s.type == ptx_type::predicate) {
    return d.usual(s, i, move_predicate, 1);
  }
  std::string_view const from = s.operands[1];
  if (s.operands[0].front() == '{') {
    i.run = unpack;
    return d.destinations(s.operands[0], i) && d.source(from, i.sources[0], s.type);
  }
  if (from.front() == '{') {
    i.run = pack;
    return d.sources(from, i, s.type) && d.destination(s.operands[0], i.destinations[0]);
  }
  instruction place;
  if (d.address(from, place) && place.flag) { // of a local variable, and not of one that is a constant
    i.offset = place.offset;
    return d.usual(s, i, local_address, 0);
  }
  return d.usual(s, i, alike<same, 1, u16, u32, i16, i32, f32, u64, i64, f64>(s.type), 1);
}

} // namespace

bool decode_move(statement const& s, decoder& d, instruction& i) {
  if (s.name == "mov") {
    return decode_mov(s, d, i);
  }
  if (s.name == "cvta" && s.operands.size() == 2) { // from a space to generic, or with "to" back
    variable const* const local = d.variable_named(s.operands[1]);
    if (local != nullptr && local->space == memory_space::local) {
      i.offset = static_cast<i64>(local->address + local_window);
      return d.usual(s, i, local_address, 0);
    }
    u64 const window = window_of(i.space);
    i.offset = static_cast<i64>(s.has("to") ? 0 - window : window);
    return d.usual(s, i, add_offset, 1);
  }
  return false;
}

} // namespace cuda_emulator
