// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include "../ptx/types.hpp"

#include <cstdlib>
#include <string>

namespace cuda_emulator {

// An environment variable whose name begins with OKTOPK_CUDA_EMULATOR_.
inline u64 setting(char const* name, u64 otherwise = 0) {
  char const* const text = std::getenv((std::string("OKTOPK_CUDA_EMULATOR_") + name).c_str());
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 0);
}

namespace settings {

constexpr int multiprocessors = 4;
inline bool const lazy = setting("LAZY") != 0;                     // a stream runs only when somebody waits for it
inline u64 const seed = setting("SEED");                           // not 0: blocks and warps in an order drawn from it
inline bool const uninitialised_reads = setting("INITCHECK") != 0; // reading memory that nobody wrote is an error
inline u64 const max_steps = setting("MAX_STEPS", 1'000'000'000);  // of one warp in one kernel; more count as hanging

} // namespace settings

} // namespace cuda_emulator
