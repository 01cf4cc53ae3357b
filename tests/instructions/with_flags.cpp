// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "with_flags.hpp"

#include "select/magnitude_mask_cases.hpp"

int wrong_masks_with_flags() {
  return oktopk_tests::wrong_masks<float>() + oktopk_tests::wrong_masks<double>();
}
