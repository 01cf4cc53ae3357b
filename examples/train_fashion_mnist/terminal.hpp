// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fashion {

/// Whether a person watches what this process prints: its standard output ends in a terminal, behind MPI's launcher
/// where there is one.
bool output_is_a_terminal();

} // namespace fashion
