// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <oktopk/core/version.hpp>

#include <cstdio>

#if OKTOPK_VERSION < 200 || !defined(OKTOPK_VERSION_MAJOR)
#error "the version cannot be compared in a preprocessor directive"
#endif
static_assert(oktopk::version()[0] != '\0');

// The macros and the function, for the test to compare with what CMakeLists.txt says.
int main() {
  std::printf("%s %d %d.%d.%d %s\n", oktopk::version(), OKTOPK_VERSION, OKTOPK_VERSION_MAJOR, OKTOPK_VERSION_MINOR,
              OKTOPK_VERSION_PATCH, OKTOPK_VERSION_STRING);
  return 0;
}
