// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/finding.hpp"
#include "fuzz/plan.hpp"
#include "fuzz/run_case.hpp"

#include <cstdint>
#include <functional>

namespace oktopk_fuzz {

/// How a worker ended.
struct work_done {
  counts done;
  verdict wrong;
  std::uint64_t at_case = 0; ///< the case with the finding
  int at_call = -1;
};

/// Runs cases in a process of its own, one after the other, until one has a finding: so a case that crashes, that a
/// sanitizer ends or that hangs is a finding like any other. `progress` is called now and then.
work_done work(plan const& all, double seconds, bool quiet, std::function<void(counts const&)> const& progress);

/// The same in this process, for a debugger.
work_done work_here(plan const& all);

} // namespace oktopk_fuzz
