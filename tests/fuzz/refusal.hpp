// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/case.hpp"

namespace oktopk_fuzz {

/// Options and learning rate with something wrong, and the error that every rank must get.
struct bad_options {
  options how;
  double learning_rate = 0.1;
  oktopk::fault code = oktopk::fault::none;
};

/// The options of a rank where the case has an object that must be refused.
bad_options refused_options(fuzz_case const& what, int rank);

} // namespace oktopk_fuzz
