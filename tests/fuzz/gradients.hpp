// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/case.hpp"

#include <cstdint>
#include <vector>

namespace oktopk_fuzz {

/// What a rank hands over in a call: a gradient, which may be spoilt, and the length of its weights.
template <class Value>
struct handed_over {
  std::vector<Value> gradient;
  std::int64_t weights = 0;
};

/// The same for the same arguments. A smaller case has the same first elements.
template <class Value>
handed_over<Value> gradient_of(fuzz_case const& what, int rank, int call);

} // namespace oktopk_fuzz
