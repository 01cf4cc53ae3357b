// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The functions that device code calls and that have no PTX: printf, assert, malloc, free.

#include "warp.hpp"

#include <cstdio>

namespace cuda_emulator {

namespace {

u64 read_bytes(warp& w, int lane, u64 address, u32 bytes) {
  u64 value = 0;
  std::memcpy(&value, w.translate(lane, address, bytes, false, memory_space::generic), bytes);
  return value;
}

std::string text_at(warp& w, int lane, u64 address) {
  std::string text;
  while (char const c = static_cast<char>(read_bytes(w, lane, address, 1))) {
    text += c;
    ++address;
  }
  return text;
}

// Arguments lie one behind the other, each at a multiple of its size.
std::string printed(warp& w, int lane, std::string const& format, u64 arguments) {
  std::string text;
  auto const next = [&](u32 bytes) {
    arguments = (arguments + bytes - 1) / bytes * bytes;
    arguments += bytes;
    return read_bytes(w, lane, arguments - bytes, bytes);
  };
  for (std::size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      text += format[at++];
      continue;
    }
    std::size_t const end = std::min(format.find_first_of("diouxXeEfFgGaAcsp%", at + 1), format.size() - 1);
    std::string const piece = format.substr(at, end - at + 1);
    if (piece.find('*') != piece.npos) {
      w.fail(lane, "printf with a width among its arguments");
    }
    char buffer[400] = "%";
    at = end + 1;
    if (piece.back() == 's') {
      std::snprintf(buffer, sizeof buffer, piece.c_str(), text_at(w, lane, next(8)).c_str());
    } else if (std::string_view("eEfFgGaA").find(piece.back()) != std::string_view::npos) {
      std::snprintf(buffer, sizeof buffer, piece.c_str(), from_register<f64>(next(8)));
    } else if (piece.back() == 'p' || piece.find_first_of("lzjt") != piece.npos) {
      std::snprintf(buffer, sizeof buffer, piece.c_str(), next(8));
    } else if (piece.back() != '%') {
      std::snprintf(buffer, sizeof buffer, piece.c_str(), static_cast<u32>(next(4)));
    }
    text += buffer;
  }
  return text;
}

} // namespace

void run_device_function(warp& w, frame& caller, call_target const& target, function& callee, u32 lanes) {
  for_each_lane(lanes, [&](int lane) {
    u8* const parameters = caller.parameters + static_cast<u64>(lane) * caller.code->call_bytes;
    auto const argument = [&](std::size_t k) {
      u64 value = 0;
      std::memcpy(&value, parameters + target.arguments.at(k), callee.parameters.at(k).size);
      return value;
    };
    u64 result = 0;
    if (callee.name == "vprintf") {
      std::fputs(printed(w, lane, text_at(w, lane, argument(0)), argument(1)).c_str(), stdout);
      std::fflush(stdout);
    } else if (callee.name == "__assertfail") {
      w.fail(lane, "an assertion does not hold: %s, %s:%u, %s", text_at(w, lane, argument(0)).c_str(),
             text_at(w, lane, argument(1)).c_str(), static_cast<u32>(argument(2)),
             text_at(w, lane, argument(3)).c_str());
    } else if (callee.name == "malloc") {
      result = device_memory::allocate(argument(0));
    } else if (callee.name == "free") {
      if (argument(0) != 0) {
        device_memory::release(argument(0));
      }
    } else {
      w.fail(lane, "a call of %s, which the emulator does not know", callee.name.c_str());
    }
    if (target.result >= 0 && !callee.results.empty()) {
      std::memcpy(parameters + target.result, &result, callee.results[0].size);
    }
  });
}

} // namespace cuda_emulator
