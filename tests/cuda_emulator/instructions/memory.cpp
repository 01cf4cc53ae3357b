// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Loads and stores.

#include "lanewise.hpp"

namespace cuda_emulator {

namespace {

// Addresses of the lanes of a load or store.
struct addresses {
  addresses(frame& f, instruction const& i)
      : base(i.address.kind != operand::kinds::none ? f.values(i.address) : nullptr),
        offset(static_cast<u64>(i.offset) + (i.flag ? f.local_base : 0)),
        mask(i.space == memory_space::shared || i.space == memory_space::local ? 0xFFFFFFFF : ~u64(0)) {}

  u64 operator()(int lane) const { return ((base != nullptr ? base[lane] : 0) + offset) & mask; }

  u64 const* base;
  u64 offset;
  u64 mask;
};

u64 checked_place(warp& w, addresses const& place, int lane, u32 bytes) {
  u64 const address = place(lane);
  if ((address & (bytes - 1)) != 0) {
    w.fail(lane, "%u bytes at %#lx, which is no multiple of their number", bytes, address);
  }
  return address;
}

template <typename T>
void load(warp& w, frame& f, instruction const& i, u32 lanes) {
  addresses const place(f, i);
  sector_set sectors;
  u32 const bytes = sizeof(T) * i.width;
  for_each_lane(lanes, [&](int lane) {
    std::array<T, 4> values;
    if (i.space == memory_space::parameter) {
      std::memcpy(values.data(), f.parameters_of(lane) + i.offset, bytes);
    } else {
      u64 const address = checked_place(w, place, lane, bytes);
      for (u32 k = 0; k < i.width; ++k) {
        std::memcpy(&values[k], w.translate(lane, address + k * sizeof(T), sizeof(T), false, i.space), sizeof(T));
      }
      if (device_memory::owns(address)) {
        counters.bytes_read += bytes;
        sectors.add(address);
      }
    }
    for (u32 k = 0; k < i.width; ++k) {
      if (i.destinations[k] != no_register) {
        f.registers[i.destinations[k]][lane] = to_register(values[k]);
      }
    }
  });
  counters.sectors_read += sectors.size();
}

template <typename T>
void store(warp& w, frame& f, instruction const& i, u32 lanes) {
  addresses const place(f, i);
  sector_set sectors;
  u32 const bytes = sizeof(T) * i.width;
  for_each_lane(lanes, [&](int lane) {
    std::array<T, 4> values;
    for (u32 k = 0; k < i.width; ++k) {
      values[k] = from_register<T>(f.values(i.sources[k])[lane]);
    }
    if (i.space == memory_space::parameter) {
      std::memcpy(f.parameters_of(lane) + i.offset, values.data(), bytes);
      return;
    }
    u64 const address = checked_place(w, place, lane, bytes);
    for (u32 k = 0; k < i.width; ++k) {
      std::memcpy(w.translate(lane, address + k * sizeof(T), sizeof(T), true, i.space), &values[k], sizeof(T));
    }
    if (device_memory::owns(address)) {
      counters.bytes_written += bytes;
      sectors.add(address);
    }
  });
  counters.sectors_written += sectors.size();
}

template <typename T>
handler load_or_store(bool stores) {
  return stores ? store<T> : load<T>;
}

} // namespace

bool decode_memory(statement const& s, decoder& d, instruction& i) {
  bool const stores = s.name == "st";
  if ((!stores && s.name != "ld" && s.name != "ldu") || s.operands.size() != 2) {
    return false;
  }
  i.run = for_type<u8, i8, u16, i16, u32, i32, u64, i64, f32, f64>(
      s.type, [stores]<typename T>() -> handler { return load_or_store<T>(stores); });
  return i.run != nullptr && d.address(s.operands[stores ? 0 : 1], i) &&
         (stores ? d.sources(s.operands[1], i, s.type) : d.destinations(s.operands[0], i));
}

} // namespace cuda_emulator
