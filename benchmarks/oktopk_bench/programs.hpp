// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "options.hpp"

#include <exception>
#include <string>
#include <string_view>
#include <vector>

// One program for each kind of communicator, in files of their own: each compiles every algorithm.
namespace oktopk_bench {

std::vector<std::string_view> known_algorithms();

/// What `main` has split the command line into.
struct arguments {
  std::vector<std::string> own;
  std::vector<char*> kokkos; ///< the program's name and what is Kokkos' own: --kokkos-...
};

/// Both give the exit status, and print what went wrong.
int run_in_process(command_line read, arguments& given);
int run_with_mpi(command_line read, arguments& given);

/// One line on the standard error stream.
void complain(std::string const& sentence);

/// Hands Kokkos its arguments; gives a sentence where one of them is not known to it. Kokkos must be finalized after.
std::string initialize_kokkos(arguments& given);

} // namespace oktopk_bench
