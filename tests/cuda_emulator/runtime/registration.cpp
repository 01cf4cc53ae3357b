// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What the code that nvcc writes into a program calls before main(): fat binaries, kernels, variables.

#include "../device/errors.hpp"
#include "../device/memory.hpp"
#include "../device/modules.hpp"
#include "../device/queues.hpp"
#include "../ptx/text.hpp"

#include <dlfcn.h>

namespace cuda_emulator {

namespace {

struct fat_binary_wrapper {
  u32 magic;
  u32 version;
  u8 const* data;
  void* unused;
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
  u32 compressed_bytes;
  u32 unused_too[2];
  u32 architecture;
  u32 unused_again[2];
  u64 flags;
  u64 unused_at_last;
  u64 plain_bytes;
};

constexpr u64 compressed_by_lz4 = 0x2000;
constexpr u64 compressed_by_zstd = 0x8000;

std::string text_of(fat_binary_entry const& entry) {
  auto const* const data = reinterpret_cast<char const*>(&entry) + entry.header_bytes;
  std::string text(data, entry.plain_bytes != 0 ? entry.plain_bytes : entry.stored_bytes);
  if ((entry.flags & (compressed_by_lz4 | compressed_by_zstd)) != 0) {
    stop("the PTX of the program is compressed: compile with nvcc --no-compress");
  }
  return text.substr(0, text.find('\0'));
}

// The PTX for the newest architecture.
std::string text_of(fat_binary_wrapper const& wrapper) {
  fat_binary_header header;
  std::memcpy(&header, wrapper.data, sizeof header);
  if (header.magic != 0xBA55ED50) {
    stop("the program has a fat binary of an unknown kind");
  }
  std::string text;
  u32 newest = 0;
  for (u8 const* at = wrapper.data + header.header_bytes; at < wrapper.data + header.header_bytes + header.bytes;) {
    auto const& entry = *reinterpret_cast<fat_binary_entry const*>(at);
    if (entry.kind == 1 && entry.architecture >= newest) {
      newest = entry.architecture;
      text = text_of(entry);
    }
    at += entry.header_bytes + entry.stored_bytes;
  }
  return text;
}

u64 initial_value(module const& owner, std::string_view text, ptx_type type) {
  u64 bits = 0;
  u32 shift = 0;
  if (text.substr(0, 2) == "0x" && text.find('(') != text.npos) { // 0xFF00(name): the second byte of an address
    shift = static_cast<u32>(std::countr_zero(std::strtoull(std::string(text).c_str(), nullptr, 16)));
    text = text.substr(text.find('(') + 1, text.size() - text.find('(') - 2);
  }
  if (read_number(text, type, bits)) {
    return bits >> shift;
  }
  std::string name(text);
  if (name.substr(0, 8) == "generic(") { // generic(name)+8
    std::size_t const close = name.find(')');
    name = name.substr(8, close - 8) + name.substr(close + 1);
  }
  std::size_t const plus = std::min(name.find('+'), name.size());
  u64 const offset = plus == name.size() ? 0 : std::strtoull(name.c_str() + plus + 1, nullptr, 0);
  name = std::string(trimmed(std::string_view(name).substr(0, plus)));
  if (auto const found = owner.variables.find(name); found != owner.variables.end()) {
    return (found->second.address + offset) >> shift;
  }
  if (auto const found = owner.functions.find(name); found != owner.functions.end()) {
    return found->second->address >> shift;
  }
  stop("a variable of the device begins with %s, which is unknown", name.c_str());
}

} // namespace

std::vector<std::unique_ptr<module>>& modules() {
  static auto& all = *new std::vector<std::unique_ptr<module>>();
  return all;
}

std::unordered_map<void const*, registered>& kernels() {
  static auto& all = *new std::unordered_map<void const*, registered>();
  return all;
}

std::unordered_map<void const*, registered>& symbols() {
  static auto& all = *new std::unordered_map<void const*, registered>();
  return all;
}

function& kernel_of(registered& found) {
  if (found.kernel == nullptr) {
    read(*found.owner);
    auto const place = found.owner->functions.find(found.name);
    if (place == found.owner->functions.end()) {
      stop("no PTX of the kernel %s", found.name.c_str());
    }
    found.kernel = place->second.get();
  }
  return *found.kernel;
}

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

void** __cudaRegisterFatBinary(void* wrapper) {
  runtime_lock const lock(runtime_mutex());
  modules().push_back(std::make_unique<module>());
  modules().back()->text = text_of(*static_cast<fat_binary_wrapper const*>(wrapper));
  return reinterpret_cast<void**>(modules().back().get());
}

char __cudaInitModule(void**) {
  return 1;
}

void __cudaRegisterFunction(void** owner, char const* host_function, char*, char const* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  runtime_lock const lock(runtime_mutex());
  kernels()[host_function] = {reinterpret_cast<module*>(owner), name};
}

void __cudaRegisterVar(void** owner, char* host_variable, char*, char const* name, int, size_t size, int, int) {
  runtime_lock const lock(runtime_mutex());
  symbols()[host_variable] = {reinterpret_cast<module*>(owner), name, size};
}

void __cudaRegisterManagedVar(void**, void**, char*, char const* name, int, size_t, int, int) {
  stop("the emulator knows no managed variables, such as %s", name);
}

} // extern "C"
