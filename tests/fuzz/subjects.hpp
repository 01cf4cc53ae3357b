// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/record.hpp"

#include <string>
#include <vector>

namespace oktopk_fuzz {

/// The algorithms and policies that are tried, of one value type; each kind in a file of its own under `subjects/`.
template <class Value>
std::vector<subject<Value>> const& subjects();

/// The facts of all subjects of either value type, in a fixed order.
std::vector<facts> const& all_facts();

// The parts of the list.
std::vector<subject<float>> ok_topk_of_floats();
std::vector<subject<float>> ok_topk_of_floats_other_formats();
std::vector<subject<double>> ok_topk_of_doubles();
std::vector<subject<double>> ok_topk_of_doubles_other_formats();
std::vector<subject<float>> baselines_of_floats();
std::vector<subject<double>> baselines_of_doubles();
std::vector<subject<float>> dense_of_floats();
std::vector<subject<double>> dense_of_doubles();

} // namespace oktopk_fuzz
