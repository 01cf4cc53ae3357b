// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shared.hpp"

float first_weight_in_two(std::int64_t length) {
  return first_weight(length);
}
