// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace cuda_emulator {

// Says on standard error what is wrong and ends the program by abort(), which test frameworks report.
[[noreturn]] __attribute__((format(printf, 1, 2))) inline void stop(char const* format, ...) {
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
