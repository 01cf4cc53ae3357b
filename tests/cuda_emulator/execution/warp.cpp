// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "warp.hpp"

#include "../device/errors.hpp"

#include <cxxabi.h>

namespace cuda_emulator {

namespace {

constexpr u64 line = 64;
constexpr u32 least_local_bytes = 512; // of a call, which also takes some of the host's stack

u64 whole_lines(u64 bytes) {
  return (bytes + line - 1) / line * line;
}

} // namespace

std::string readable(std::string const& mangled_name) {
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> const name(
      abi::__cxa_demangle(mangled_name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && name ? name.get() : mangled_name;
}

frame& warp::enter(function& entered) {
  decode(entered);
  u64 const bytes_of_registers = u64(entered.registers) * sizeof(lane_values);
  u64 const bytes_of_predicates = whole_lines(4 * u64(entered.predicates));
  u64 const bytes = whole_lines(sizeof(frame)) + bytes_of_registers + bytes_of_predicates +
                    whole_lines(u64(entered.call_bytes) * warp_size);
  local_used = aligned(local_used + least_local_bytes, 16);
  if (frames_used + bytes > bytes_for_frames || local_used + entered.local_bytes > local_bytes_per_lane) {
    fail(0, "the stack of the device is full: calls are too deep");
  }
  u8* place = frames + frames_used;
  frames_used += bytes;
  auto& made = *new (place) frame();
  place += whole_lines(sizeof(frame));
  made.code = &entered;
  made.registers = reinterpret_cast<u64(*)[warp_size]>(place);
  made.predicates = reinterpret_cast<u32*>(place + bytes_of_registers);
  made.parameters = place + bytes_of_registers + bytes_of_predicates;
  made.local_base = local_used;
  local_used += entered.local_bytes;
  std::memset(made.predicates, 0, bytes_of_predicates);
  for_each_lane(entered.specials_used,
                [&](int k) { std::memcpy(made.registers[k], specials[k].data(), sizeof(lane_values)); });
  return made;
}

void warp::fail(int lane, char const* format, ...) {
  char said[1000];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(said, sizeof said, format, arguments);
  va_end(arguments);
  std::string where;
  if (current != nullptr) {
    auto const& code = current->code->code;
    where = "\n    function " + readable(current->code->name);
    for (u32 k = current_instruction - std::min<u32>(current_instruction, 6); k <= current_instruction; ++k) {
      where += (k == current_instruction ? "\n    => " : "\n       ") + std::to_string(k) + ": " + code[k].text;
    }
  }
  block const& b = *in;
  u32 const thread = index * warp_size + static_cast<u32>(lane);
  stop("%s\n    kernel %s\n    block (%u, %u, %u) of (%u, %u, %u), thread (%u, %u, %u) of (%u, %u, %u)%s", said,
       readable(b.kernel->name).c_str(), b.place[0], b.place[1], b.place[2], b.grid[0], b.grid[1], b.grid[2],
       thread % b.threads[0], thread / b.threads[0] % b.threads[1], thread / b.threads[0] / b.threads[1], b.threads[0],
       b.threads[1], b.threads[2], where.c_str());
}

u8* warp::translate_other(int lane, u64 address, u32 bytes, bool write, memory_space space) {
  char const* const use = write ? "write" : "read";
  if ((address & (bytes - 1)) != 0) {
    fail(lane, "%s of %u bytes at %#lx, which is no multiple of their number", use, bytes, address);
  }
  if (space == memory_space::shared) {
    fail(lane, "%s of %u bytes at %#lx of the block's shared memory, which has %u", use, bytes, address,
         in->shared_bytes);
  }
  if (space == memory_space::local) {
    if (address + bytes > local_bytes_per_lane) {
      fail(lane, "%s of %u bytes at %#lx is behind the local memory", use, bytes, address);
    }
    return local + static_cast<u64>(lane) * local_bytes_per_lane + address;
  }
  if (space == memory_space::generic) {
    if (address - shared_window < window_size) {
      return translate(lane, address - shared_window, bytes, write, memory_space::shared);
    }
    if (address - local_window < window_size) {
      return translate(lane, address - local_window, bytes, write, memory_space::local);
    }
    if (u64 const place = address - parameter_window; place < window_size) {
      if (place + bytes > in->parameter_bytes) {
        fail(lane, "%s of %u bytes at %#lx is behind the kernel's parameters", use, bytes, place);
      }
      return in->parameters + place;
    }
  }
  if (device_memory::kernels_may_use(address, bytes)) {
    return reinterpret_cast<u8*>(address);
  }
  if (device_memory::owns(address)) {
    fail(lane, "%s of %u bytes at %#lx is out of bounds of every allocation, or that was freed", use, bytes, address);
  }
  fail(lane, "%s of %u bytes at %#lx, which is no memory of the device; is it the host's?", use, bytes, address);
}

void warp::check_written(int lane, u64 address, u32 bytes, bool write) {
  if (write) {
    device_memory::mark_written(address, bytes);
  } else if (!device_memory::was_written(address, bytes)) {
    fail(lane, "read of %u bytes at %#lx, which nobody wrote", bytes, address);
  }
}

} // namespace cuda_emulator
