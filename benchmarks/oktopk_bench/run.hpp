// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "options.hpp"

#include "programs/arguments.hpp"

#include <oktopk/comm/in_process.hpp>
#ifdef OKTOPK_BENCH_WITH_MPI
#include <oktopk/mpi.hpp>
#endif

#include <string>

// One program for each kind of communicator, in files of their own: each compiles every algorithm.
namespace oktopk_bench {

/// The text of `--list`.
std::string list_text();

/// Both give the exit status, and print what went wrong.
int run_in_process(command_line const& read);
int run_with_mpi(command_line const& read);

// The measurements with `oktopk::checked` messages: one source file for each communicator, as without.

/// Runs what the command line asks for; throws what is wrong, the same on every rank. `note` goes to the standard error
/// stream before anything is measured.
void run_checked(oktopk::in_process_communicator comm, options const& asked, std::string const& note);
#ifdef OKTOPK_BENCH_WITH_MPI
void run_checked(oktopk::mpi_communicator comm, options const& asked, std::string const& note);

/// The same over TCP, between ranks that meet over MPI.
void run_over_tcp(oktopk::mpi_communicator comm, options const& asked, std::string const& note);
#endif

} // namespace oktopk_bench
