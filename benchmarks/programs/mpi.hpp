// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "arguments.hpp"

#include <oktopk/core/error.hpp>

#include <mpi.h>
#ifdef __linux__
#include <sched.h>
#endif

#include <array>
#include <bitset>
#include <chrono>
#include <exception>
#include <string>
#include <thread>

namespace oktopk_programs {

/// The cores that the processes of a communicator may run on, of one machine. Collective.
inline int cores_of(MPI_Comm machine) {
#ifdef __linux__
  // A launcher binds each rank to cores of its own: together they have the union.
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof(mine), &mine);
  std::array<unsigned char, sizeof(cpu_set_t)> all{};
  MPI_Allreduce(&mine, all.data(), static_cast<int>(all.size()), MPI_UNSIGNED_CHAR, MPI_BOR, machine);
  std::size_t count = 0;
  for (unsigned char const byte : all) {
    count += std::bitset<8>(byte).count();
  }
  return static_cast<int>(count);
#else
  (void)machine;
  return static_cast<int>(std::thread::hardware_concurrency());
#endif
}

/// A sentence where the ranks of a machine outnumber the cores that they may run on, of the machine where they do most;
/// else empty. Collective over `world`, and the same on all ranks.
inline std::string crowding_note(MPI_Comm world) {
  MPI_Comm machine = MPI_COMM_NULL;
  MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  std::array<int, 2> here{}; // ranks and cores
  MPI_Comm_size(machine, here.data());
  here[1] = cores_of(machine);
  MPI_Comm_free(&machine);
  struct {
    int excess;
    int rank;
  } mine{here[0] - here[1], 0}, most{};
  MPI_Comm_rank(world, &mine.rank);
  MPI_Allreduce(&mine, &most, 1, MPI_2INT, MPI_MAXLOC, world);
  MPI_Bcast(here.data(), 2, MPI_INT, most.rank, world);
  return here[1] < 1 || here[0] <= here[1]
             ? std::string()
             : "note: " + std::to_string(here[0]) + " ranks share " + std::to_string(here[1]) +
                   (here[1] == 1 ? " core" : " cores") +
                   ", so they wait for each other's turns: times are no guide to those of a cluster";
}

/// Says what ended a program under MPI, once where that is possible, and gives its status.
///
/// Most errors of the library are on all ranks, and the first one tells. After any other the ranks do not leave
/// together: then the job is ended, since MPI_Finalize would wait for ranks that do not come. A rank that was told by
/// another one leaves that one the word for a second.
inline int report_failure(char const* program, std::exception const& failure) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  auto const* const known = dynamic_cast<oktopk::error const*>(&failure);
  if (known == nullptr || oktopk::detail::breaks_communicator(known->code())) {
    if (known != nullptr && known->code() == oktopk::fault::abandoned) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    complain(program, "rank " + std::to_string(rank) + ": " + failure.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (rank == 0) {
    complain(program, failure.what());
  }
  return 1;
}

} // namespace oktopk_programs
