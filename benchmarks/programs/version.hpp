// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

namespace oktopk_programs {

/// The line that `--version` prints, without its end: the program, the version of oktopk and that of Kokkos.
std::string version_text(std::string const& program);

} // namespace oktopk_programs
