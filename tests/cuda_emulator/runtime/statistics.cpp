// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The counts, for programs that ask.

#include "../device/counters.hpp"
#include "../device/queues.hpp"

void oktopk_cuda_emulator_read_counts(oktopk_cuda_emulator_counts* counts) {
  cuda_emulator::runtime_lock const lock(cuda_emulator::runtime_mutex());
  *counts = cuda_emulator::counters;
}

void oktopk_cuda_emulator_reset_counts(void) {
  cuda_emulator::runtime_lock const lock(cuda_emulator::runtime_mutex());
  cuda_emulator::counters = {};
}
