// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Atomic operations. One lane comes after the other, and one warp after the other, so they are plain here.

#include "arithmetic.hpp"
#include "lanewise.hpp"

namespace cuda_emulator {

namespace {

enum operation : u8 { add, min, max, bit_and, bit_or, bit_xor, exch, cas, inc, dec };
constexpr std::string_view operation_names[] = {"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"};

template <typename T>
T updated(u8 how, T before, T operand, T replacement) {
  switch (how) {
  case add: return plus(before, operand);
  case min: return least(before, operand);
  case max: return greatest(before, operand);
  case exch: return operand;
  default:
    if constexpr (std::is_integral_v<T>) {
      switch (how) {
      case bit_and: return before & operand;
      case bit_or: return before | operand;
      case bit_xor: return before ^ operand;
      case cas: return before == operand ? replacement : before;
      case inc: return before >= operand ? T(0) : plus(before, T(1));
      case dec: return before == 0 || before > operand ? operand : static_cast<T>(before - 1);
      default: break;
      }
    }
    return before;
  }
}

template <typename T>
void read_modify_write(warp& w, frame& f, instruction const& i, u32 lanes) {
  u64 const* const base = i.address.kind != operand::kinds::none ? f.values(i.address) : nullptr;
  u64 const* const operands = f.values(i.sources[0]);
  u64 const* const replacements = f.values(i.sources[i.variant == cas ? 1 : 0]);
  sector_set sectors;
  for_each_lane(lanes, [&](int lane) {
    u64 address = (base != nullptr ? base[lane] : 0) + static_cast<u64>(i.offset);
    address = i.space == memory_space::shared ? static_cast<u32>(address) : address;
    u8* const place = w.translate(lane, address, sizeof(T), false, i.space);
    w.translate(lane, address, sizeof(T), true, i.space);
    T before;
    std::memcpy(&before, place, sizeof before);
    T const after = updated(i.variant, before, from_register<T>(operands[lane]), from_register<T>(replacements[lane]));
    std::memcpy(place, &after, sizeof after);
    if (i.destinations[0] != no_register) {
      f.registers[i.destinations[0]][lane] = to_register(before);
    }
    if (device_memory::owns(address)) {
      counters.bytes_read += sizeof(T);
      counters.bytes_written += sizeof(T);
      sectors.add(address);
    }
  });
  counters.sectors_read += sectors.size();
  counters.sectors_written += sectors.size();
}

} // namespace

bool decode_atomic(statement const& s, decoder& d, instruction& i) {
  bool const reads = s.name == "atom";
  if (!reads && s.name != "red") {
    return false;
  }
  u8 wanted = 0;
  while (wanted < std::size(operation_names) && !s.has(operation_names[wanted])) {
    ++wanted;
  }
  i.run =
      for_type<u16, u32, i32, u64, i64, f32, f64>(s.type, []<typename T>() -> handler { return read_modify_write<T>; });
  std::size_t const first = reads ? 1 : 0;
  std::size_t const count = wanted == cas ? 3 : 2;
  bool const known = wanted < std::size(operation_names) && i.run != nullptr && s.operands.size() == first + count &&
                     (!reads || d.destination(s.operands[0], i.destinations[0])) && d.address(s.operands[first], i) &&
                     !i.flag && d.source(s.operands[first + 1], i.sources[0], s.type) &&
                     (count == 2 || d.source(s.operands[first + 2], i.sources[1], s.type));
  i.variant = wanted;
  i.step = wanted == cas ? step_kind::yield : step_kind::next; // locks are taken in loops
  return known;
}

} // namespace cuda_emulator
