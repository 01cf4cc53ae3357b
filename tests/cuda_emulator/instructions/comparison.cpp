// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Comparisons, logic of predicates, and choices by them.

#include "lanewise.hpp"

#include <algorithm>

namespace cuda_emulator {

namespace {

// What two numbers may be to each other, and for which of these a relation holds.
enum outcome : u8 { less = 1, equal = 2, greater = 4, unordered = 8 };
struct relation {
  std::string_view name;
  u8 holds;
};
constexpr relation relations[] = {
    {"eq", equal},
    {"ne", less | greater},
    {"lt", less},
    {"le", less | equal},
    {"gt", greater},
    {"ge", greater | equal},
    {"lo", less}, // of unsigned numbers
    {"ls", less | equal},
    {"hi", greater},
    {"hs", greater | equal},
    {"equ", equal | unordered},
    {"neu", less | greater | unordered},
    {"ltu", less | unordered},
    {"leu", less | equal | unordered},
    {"gtu", greater | unordered},
    {"geu", greater | equal | unordered},
    {"num", less | equal | greater},
    {"nan", unordered},
};
enum combination : u8 { none, conjunction, disjunction, exclusion, negation };

u32 combined(u8 how, u32 a, u32 b) {
  switch (how) {
  case conjunction: return a & b;
  case disjunction: return a | b;
  case exclusion: return a ^ b;
  case negation: return ~a;
  default: return a;
  }
}

template <typename T>
void set_predicates(warp&, frame& f, instruction const& i, u32 lanes) {
  u64 const* const a = f.values(i.sources[0]);
  u64 const* const b = f.values(i.sources[1]);
  u32 where = 0;
  for (int lane = 0; lane < warp_size; ++lane) {
    T const x = from_register<T>(a[lane]);
    T const y = from_register<T>(b[lane]);
    u32 const is = x < y ? less : x > y ? greater : x == y ? equal : unordered;
    where |= u32((i.variant & is) != 0) << lane;
  }
  u32 const other = i.combine == none ? 0 : f.lanes_where(i.sources[2]);
  f.set_predicate(i.destinations[0], combined(i.combine, where, other), lanes);
  f.set_predicate(i.predicate, combined(i.combine, ~where, other), lanes);
}

void predicate_logic(warp&, frame& f, instruction const& i, u32 lanes) {
  u32 const second = i.combine == negation ? 0 : f.lanes_where(i.sources[1]);
  f.set_predicate(i.destinations[0], combined(i.combine, f.lanes_where(i.sources[0]), second), lanes);
}

void choose_by_predicate(warp&, frame& f, instruction const& i, u32 lanes) {
  u64 const* const a = f.values(i.sources[0]);
  u64 const* const b = f.values(i.sources[1]);
  u32 const where = f.lanes_where(i.sources[2]);
  u64* const to = f.registers[i.destinations[0]];
  for_each_lane(lanes, [&](int lane) { to[lane] = (where >> lane & 1) != 0 ? a[lane] : b[lane]; });
}

u8 combination_of(statement const& s) {
  return s.has("and") ? conjunction : s.has("or") ? disjunction : s.has("xor") ? exclusion : none;
}

bool decode_setp(statement const& s, decoder& d, instruction& i) {
  for (relation const& each : relations) {
    i.variant = each.name == s.modifiers[0] ? each.holds : i.variant;
  }
  i.combine = combination_of(s);
  i.run = for_type<u16, i16, u32, i32, u64, i64, f32, f64>(s.type,
                                                           []<typename T>() -> handler { return set_predicates<T>; });
  return i.variant != 0 && i.run != nullptr && s.operands.size() >= 3 &&
         d.destination_with_predicate(s.operands[0], i) && d.source(s.operands[1], i.sources[0], s.type) &&
         d.source(s.operands[2], i.sources[1], s.type) &&
         (i.combine == none || (s.operands.size() == 4 && d.source(s.operands[3], i.sources[2], ptx_type::predicate)));
}

} // namespace

bool decode_comparison(statement const& s, decoder& d, instruction& i) {
  if (s.name == "setp" && s.modifiers.size() >= 2) {
    return decode_setp(s, d, i);
  }
  if (s.name == "selp") {
    return d.usual(s, i, choose_by_predicate, 3);
  }
  if (s.type == ptx_type::predicate) {
    i.combine = s.name == "and"   ? conjunction
                : s.name == "or"  ? disjunction
                : s.name == "xor" ? exclusion
                : s.name == "not" ? negation
                                  : none;
    return i.combine != none && d.usual(s, i, predicate_logic, i.combine == negation ? 1 : 2);
  }
  return false;
}

} // namespace cuda_emulator
