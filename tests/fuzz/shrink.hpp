// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/plan.hpp"
#include "fuzz/worker.hpp"

namespace oktopk_fuzz {

/// Makes a case with a finding smaller — fewer events, calls, ranks, elements — as long as it has the same finding.
/// Gives what it was limited to, and puts the finding of the smaller case into `found`.
limits shrink(plan const& all, work_done& found);

} // namespace oktopk_fuzz
