// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/checks/checks.hpp"
#include "fuzz/finding.hpp"
#include "simulate/story.hpp"

#include <oktopk/comm/simulation.hpp>

#include <vector>

namespace oktopk_simulate {

using oktopk_fuzz::finding;
using oktopk_fuzz::verdict;

/// Every call of a world without faults keeps its promises: conservation, the same bits on all ranks, and the rest.
template <class Value>
verdict judge_calls(scenario const& of, std::vector<story<Value>> const& all);

/// Another order of events has changed nothing.
template <class Value>
verdict judge_order(std::vector<story<Value>> const& plain, std::vector<story<Value>> const& other);

/// After a fault: what returned is right, every survivor has heard of the fault in time and is as before the call, and
/// those that are left can go on.
template <class Value>
verdict judge_faults(scenario const& of, std::vector<story<Value>> const& plain, std::vector<story<Value>> const& all,
                     std::vector<bool> const& died, oktopk::in_process::simulated_run const& run,
                     std::chrono::nanoseconds deadline);

} // namespace oktopk_simulate
