// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "options.hpp"

#include "programs/arguments.hpp"

#include <string>

// One program for each kind of communicator, in files of their own: each compiles every algorithm.
namespace oktopk_bench {

/// The text of `--list`.
std::string list_text();

/// Both give the exit status, and print what went wrong.
int run_in_process(command_line const& read);
int run_with_mpi(command_line const& read);

} // namespace oktopk_bench
