// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include <cstdint>

// What the emulator counts, for programs that run on it. Look the function up with dlsym(RTLD_DEFAULT, ...): on a real
// GPU it is not there.
struct oktopk_cuda_emulator_counts {
  std::uint64_t launches;
  std::uint64_t blocks;  // launched
  std::uint64_t threads; // launched
  std::uint64_t thread_instructions;

  // Of global memory, by kernels. A read-modify-write counts as both. Sectors are the pieces of 32 bytes that the lanes
  // of one warp touch in one instruction: what a GPU moves where no cache helps.
  std::uint64_t bytes_read;
  std::uint64_t bytes_written;
  std::uint64_t sectors_read;
  std::uint64_t sectors_written;

  std::uint64_t host_waits;   // for a stream, the device, an event or a copy
  std::uint64_t copies;       // that begin or end on the device
  std::uint64_t bytes_copied; // by them
  std::uint64_t allocations;
};

// What has been executed since the start; what a stream still holds back is not in it.
extern "C" void oktopk_cuda_emulator_read_counts(oktopk_cuda_emulator_counts* counts);
