// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The masks in a program of which one translation unit may use instructions that the other may not; succeeds unchecked
// where the processor lacks them.

#include "select/magnitude_mask_cases.hpp"
#include "with_flags.hpp"

#include <cstdio>

int main() {
  if (!__builtin_cpu_supports(OKTOPK_TESTED_INSTRUCTIONS)) {
    std::puts("skipped: this processor has no " OKTOPK_TESTED_INSTRUCTIONS);
    return OKTOPK_SKIPPED;
  }
  int const here = oktopk_tests::wrong_masks<float>() + oktopk_tests::wrong_masks<double>();
  int const there = wrong_masks_with_flags();
  std::printf("%s: %d and %d wrong masks\n", oktopk::detail::processor_has_avx2() ? "AVX2" : "plain code", here, there);
  return here + there == 0 ? 0 : 1;
}
