// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "pending_file.hpp"
#include "result.hpp"

#include <string>
#include <vector>

namespace oktopk_bench {

/// Says what is wrong with a folder for dumps, before anything has been computed; an absent one is made later.
std::string fault_of_dump_folder(std::string const& folder);

/// Writes one rank's last result of one algorithm as raw little-endian arrays, and adds the files, which do not have
/// their names yet, to `pending`. Gives a sentence where it fails.
std::string write_dump(std::string const& folder, std::string const& algorithm, int rank, host_result const& result,
                       std::vector<pending_file>& pending);

} // namespace oktopk_bench
