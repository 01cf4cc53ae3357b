// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "counters.hpp"

#include "errors.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace cuda_emulator {

void stop(char const* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::fputs("\n*** CUDA emulator: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
  std::fflush(stdout);
  std::abort();
}

} // namespace cuda_emulator

void oktopk_cuda_emulator_read_counts(oktopk_cuda_emulator_counts* counts) {
  *counts = cuda_emulator::counters;
}

void oktopk_cuda_emulator_reset_counts(void) {
  cuda_emulator::counters = {};
}
