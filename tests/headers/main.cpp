// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The test is that two files of a program may include every header, and that the program links.
#include "every_header.hpp"

int main() {
  return 0;
}
