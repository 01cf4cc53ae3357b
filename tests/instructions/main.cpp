// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The masks with the instructions that this file was compiled for; succeeds unchecked where the processor lacks them.

#include "select/magnitude_mask_cases.hpp"

#include <cstdio>

int main() {
  if (!__builtin_cpu_supports(OKTOPK_TESTED_INSTRUCTIONS)) {
    std::puts("skipped: this processor has no " OKTOPK_TESTED_INSTRUCTIONS);
    return OKTOPK_SKIPPED;
  }
  int const wrong = oktopk_tests::wrong_masks<float>() + oktopk_tests::wrong_masks<double>();
  std::printf("%s: %d wrong masks\n", oktopk::detail::magnitude_mask_name(), wrong);
  return wrong == 0 ? 0 : 1;
}
