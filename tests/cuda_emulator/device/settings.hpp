// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include "../ptx/types.hpp"

namespace cuda_emulator {

// Environment variables whose names begin with OKTOPK_CUDA_EMULATOR_.
struct settings {
  bool lazy = false;                // LAZY: a stream runs only when somebody waits for it
  u64 seed = 0;                     // SEED: not 0: blocks, and warps in them, run in an order drawn from it
  bool uninitialised_reads = false; // INITCHECK: reading memory that nobody wrote is an error
  bool trace = false;               // TRACE: every launch
  u64 multiprocessors = 4;          // MULTIPROCESSORS: of the device
  u64 max_steps = 0;                // MAX_STEPS: instructions of one warp in one kernel before it counts as hanging

  static settings const& given();
};

} // namespace cuda_emulator
