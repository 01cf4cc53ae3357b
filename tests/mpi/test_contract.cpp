// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The MPI adapter goes through the same suite as every communicator. Ranks are those of mpirun.

#include "comm/suite.hpp"
#include "support/mpi_ranks.hpp"

#include <oktopk/comm/counted.hpp>
#include <oktopk/mpi.hpp>

using namespace oktopk_tests;

TEST_CASE("mpi keeps the contract of a communicator") {
  check_communicator(
      [](auto const& body) { on_all_ranks([&] { body(oktopk::mpi_communicator::duplicate(MPI_COMM_WORLD)); }); });
}

TEST_CASE("mpi that is counted keeps the contract of a communicator") {
  check_communicator([](auto const& body) {
    on_all_ranks([&] { body(oktopk::counted(oktopk::mpi_communicator::duplicate(MPI_COMM_WORLD))); });
  });
}
