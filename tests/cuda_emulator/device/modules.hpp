// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include "../ptx/program.hpp"

namespace cuda_emulator {

// What a program has registered: kernels and variables that host code names by an address.
struct registered {
  module* owner = nullptr;
  std::string name;
};

inline std::unordered_map<void const*, registered> kernels;
inline std::unordered_map<void const*, registered> symbols;

} // namespace cuda_emulator
