// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

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
