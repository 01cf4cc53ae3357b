// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

// What the emulator counts, for programs that run on it. Look the functions up with dlsym(RTLD_DEFAULT, ...) or declare
// them weak: on a real GPU they are not there.

#include <stdint.h> // NOLINT(modernize-deprecated-headers): C reads this as well

#ifdef __cplusplus
extern "C" {
#endif

typedef struct oktopk_cuda_emulator_counts { // NOLINT(modernize-use-using)
  uint64_t launches;
  uint64_t blocks;  // launched
  uint64_t threads; // launched
  uint64_t thread_instructions;
  uint64_t warp_instructions;

  // Of global memory, by kernels. A read-modify-write counts as both. Sectors are the pieces of 32 bytes that the lanes
  // of one warp touch in one instruction: what a GPU moves where no cache helps.
  uint64_t bytes_read;
  uint64_t bytes_written;
  uint64_t sectors_read;
  uint64_t sectors_written;
  uint64_t atomics; // thread instructions

  // Calls for which the host waits.
  uint64_t stream_waits;
  uint64_t device_waits;
  uint64_t event_waits;
  uint64_t blocking_copies; // cudaMemcpy and its like, and asynchronous ones to pageable memory

  uint64_t copies_to_device;
  uint64_t copies_to_host;
  uint64_t copies_on_device;
  uint64_t bytes_to_device;
  uint64_t bytes_to_host;
  uint64_t bytes_on_device;
  uint64_t memsets;
  uint64_t bytes_set;
  uint64_t allocations;
} oktopk_cuda_emulator_counts;

// What has been executed since the start or the last reset; what a stream still holds back is not in it.
void oktopk_cuda_emulator_read_counts(oktopk_cuda_emulator_counts* counts);
void oktopk_cuda_emulator_reset_counts(void);

#ifdef __cplusplus
}
#endif
