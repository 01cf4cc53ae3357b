// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "result.hpp"

#include "programs/pending_file.hpp"

#include <string>
#include <vector>

namespace oktopk_bench {

/// Throws where a folder for dumps cannot be one, before anything has been computed; an absent one is made later.
void check_dump_folder(std::string const& folder);

/// Writes one rank's last result of one algorithm as raw little-endian arrays, and adds the files, which do not have
/// their names yet, to `pending`.
void write_dump(std::string const& folder, std::string const& algorithm, int rank, host_result const& result,
                std::vector<oktopk_programs::pending_file>& pending);

} // namespace oktopk_bench
