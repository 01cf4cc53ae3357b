// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/participant.hpp"

#include <string>
#include <vector>

namespace oktopk_simulate {

/// The algorithms that are tried over checked communicators, which is a part of those of `tests/fuzz`, under the same
/// names; none where xxHash is missing.
std::vector<oktopk_fuzz::facts> const& checked_facts();

oktopk_fuzz::subject<float> const& checked_subject(std::string const& name);

} // namespace oktopk_simulate
