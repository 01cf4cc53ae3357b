// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include "../ptx/program.hpp"

namespace cuda_emulator {

// What a program has registered: its modules, and in them the kernels and variables that host code names by an address.
struct registered {
  module* owner = nullptr;
  std::string name;
  u64 size = 0;               // of a variable
  function* kernel = nullptr; // once found
};

std::vector<std::unique_ptr<module>>& modules();
std::unordered_map<void const*, registered>& kernels();
std::unordered_map<void const*, registered>& symbols();

function& kernel_of(registered& found);

} // namespace cuda_emulator
