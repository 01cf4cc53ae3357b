// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/plan.hpp"

namespace oktopk_fuzz {

/// Puts each kind of defect into cases that have none, and sees whether it is found. Gives the program's exit status.
int self_test(plan const& all);

} // namespace oktopk_fuzz
