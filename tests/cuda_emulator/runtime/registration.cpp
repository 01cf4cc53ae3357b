// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What the code that nvcc writes into a program calls before main(): fat binaries, kernels, variables.

#include "../device/errors.hpp"
#include "../device/memory.hpp"
#include "../device/modules.hpp"
#include "../device/queues.hpp"
#include "../ptx/text.hpp"

namespace cuda_emulator {

namespace {

struct fat_binary_wrapper {
  u32 magic;
  u32 version;
  u8 const* data;
};

struct fat_binary_header {
  u32 magic;
  u16 version;
  u16 header_bytes;
  u64 bytes;
};

struct fat_binary_entry {
  u16 kind; // 1: PTX
  u16 unused;
  u32 header_bytes;
  u64 stored_bytes;
  u64 unused_too[3];
  u64 flags;
  u64 unused_at_last;
  u64 plain_bytes;
};

// Of the one architecture that nvcc.sh compiles for.
std::string text_of(fat_binary_wrapper const& wrapper) {
  constexpr u64 compressed = 0xA000; // in one of two ways
  auto const& header = *reinterpret_cast<fat_binary_header const*>(wrapper.data);
  auto const& entry = *reinterpret_cast<fat_binary_entry const*>(wrapper.data + header.header_bytes);
  if (header.magic != 0xBA55ED50 || entry.kind != 1 || (entry.flags & compressed) != 0) {
    stop("the program has a fat binary of an unknown kind: compile with nvcc.sh, for PTX that is not compressed");
  }
  std::string_view const text(reinterpret_cast<char const*>(&entry) + entry.header_bytes,
                              entry.plain_bytes != 0 ? entry.plain_bytes : entry.stored_bytes);
  return std::string(text.substr(0, text.find('\0')));
}

// A number, "name", "name+8", "generic(name)", or "0xFF00(name)", the second byte of an address.
u64 initial_value(module const& owner, std::string_view text, ptx_type type) {
  u64 bits = 0;
  u32 shift = 0;
  if (text.starts_with("0x") && text.ends_with(')')) {
    shift = static_cast<u32>(std::countr_zero(std::strtoull(std::string(text).c_str(), nullptr, 16)));
    text = text.substr(text.find('(') + 1, text.size() - text.find('(') - 2);
  }
  if (!read_number(text, type, bits)) {
    text = text.starts_with("generic(") ? text.substr(8, text.find(')') - 8) : text;
    auto const found = owner.variables.find(std::string(text));
    if (found == owner.variables.end()) {
      stop("a variable of the device begins with %s, which is unknown", std::string(text).c_str());
    }
    bits = found->second.address;
  }
  return bits >> shift;
}

} // namespace

void place_variables(module& placed) {
  auto const lies_here = [](variable const& v) {
    return v.space == memory_space::global || v.space == memory_space::constant;
  };
  for (auto& [name, each] : placed.variables) {
    if (lies_here(each)) {
      each.address = device_memory::allocate(std::max<u64>(each.size, 1));
      std::memset(device_memory::bytes_at(each.address), 0, each.size);
      device_memory::mark_written(each.address, each.size);
    }
  }
  for (auto& [name, each] : placed.variables) {
    if (lies_here(each) && !each.initial.empty()) {
      std::string values = each.initial;
      std::erase_if(values, [](char c) { return c == '{' || c == '}'; });
      u8* place = device_memory::bytes_at(each.address);
      for (std::string_view const item : items_of(values)) {
        u64 const bits = initial_value(placed, item, each.type);
        std::memcpy(place, &bits, size_of(each.type));
        place += size_of(each.type);
      }
    }
  }
}

} // namespace cuda_emulator

using namespace cuda_emulator;

extern "C" {

// Modules are never freed, for kernels may be launched until the program ends.
void** __cudaRegisterFatBinary(void* wrapper) {
  auto* const made = new module();
  made->text = text_of(*static_cast<fat_binary_wrapper const*>(wrapper));
  return reinterpret_cast<void**>(made);
}

char __cudaInitModule(void**) {
  return 1;
}

void __cudaRegisterFunction(void** owner, char const* host_function, char*, char const* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  in_runtime([&] { kernels[host_function] = {reinterpret_cast<module*>(owner), name}; });
}

void __cudaRegisterVar(void** owner, char* host_variable, char*, char const* name, int, size_t, int, int) {
  in_runtime([&] { symbols[host_variable] = {reinterpret_cast<module*>(owner), name}; });
}

} // extern "C"
