// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Comparisons, logic of predicates, and choices by them.

#include "lanewise.hpp"

#include <algorithm>

namespace cuda_emulator {

namespace {

enum relation : u8 { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
constexpr std::string_view relation_names[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                               "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
enum combination : u8 { none, conjunction, disjunction, exclusion, negation };

template <typename T, typename Holds>
u32 lanes_where(u64 const* a, u64 const* b, Holds holds) {
  u32 where = 0;
  for (int lane = 0; lane < warp_size; ++lane) {
    where |= u32(holds(from_register<T>(a[lane]), from_register<T>(b[lane]))) << lane;
  }
  return where;
}

// With a NaN the relations of the first line are false, those of the second true.
template <typename T>
u32 lanes_where(u8 wanted, u64 const* a, u64 const* b) {
  switch (wanted) {
  case eq: return lanes_where<T>(a, b, [](T x, T y) { return x == y; });
  case ne:
    if constexpr (std::is_integral_v<T>) {
      return lanes_where<T>(a, b, [](T x, T y) { return x != y; });
    }
    return lanes_where<T>(a, b, [](T x, T y) { return x < y || x > y; });
  case lt: return lanes_where<T>(a, b, [](T x, T y) { return x < y; });
  case le: return lanes_where<T>(a, b, [](T x, T y) { return x <= y; });
  case gt: return lanes_where<T>(a, b, [](T x, T y) { return x > y; });
  case ge: return lanes_where<T>(a, b, [](T x, T y) { return x >= y; });
  case equ: return ~lanes_where<T>(ne, a, b);
  case neu: return ~lanes_where<T>(eq, a, b);
  case ltu: return ~lanes_where<T>(ge, a, b);
  case leu: return ~lanes_where<T>(gt, a, b);
  case gtu: return ~lanes_where<T>(le, a, b);
  case geu: return ~lanes_where<T>(lt, a, b);
  case num: return lanes_where<T>(a, b, [](T x, T y) { return x == x && y == y; });
  default: return ~lanes_where<T>(num, a, b);
  }
}

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
  u32 const where = lanes_where<T>(i.variant, f.values(i.sources[0]), f.values(i.sources[1]));
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
  auto const* const found = std::find(std::begin(relation_names), std::end(relation_names), s.modifiers[0]);
  std::string_view name = s.modifiers[0];
  if (found == std::end(relation_names)) { // other names for unsigned numbers
    name = name == "lo" ? "lt" : name == "ls" ? "le" : name == "hi" ? "gt" : name == "hs" ? "ge" : "";
  }
  auto const* const wanted = std::find(std::begin(relation_names), std::end(relation_names), name);
  i.variant = static_cast<u8>(wanted - std::begin(relation_names));
  i.combine = combination_of(s);
  i.run = for_type<u16, i16, u32, i32, u64, i64, f16, f32, f64>(
      s.type, []<typename T>() -> handler { return set_predicates<T>; });
  return wanted != std::end(relation_names) && i.run != nullptr && s.operands.size() >= 3 &&
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
