// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The ranks of a test executable: of MPI (OKTOPK_TESTS_WITH_MPI), those that the environment numbers, in RANK and WORLD_SIZE
// (OKTOPK_TESTS_WITH_RANKS), or none.

#include "support/world.hpp"

#if defined(OKTOPK_TESTS_WITH_MPI)
#include <mpi.h>
#elif defined(OKTOPK_TESTS_WITH_RANKS)
#include <cstdlib>
#endif

namespace oktopk_tests {

#if defined(OKTOPK_TESTS_WITH_MPI)

world::world(int& argc, char**& argv) {
  int level = MPI_THREAD_SINGLE; // what is given, tests of other threads look at
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  name += ", rank " + std::to_string(rank) + " of " + std::to_string(size);
}

world::~world() {
  MPI_Finalize();
}

#elif defined(OKTOPK_TESTS_WITH_RANKS)

world::world(int&, char**&) {
  auto const in = [](char const* variable) {
    char const* const text = std::getenv(variable);
    return text == nullptr ? 0 : std::atoi(text);
  };
  rank = in("RANK");
  name += ", rank " + std::to_string(rank) + " of " + std::to_string(in("WORLD_SIZE"));
}

world::~world() = default;

#else

world::world(int&, char**&) {
}
world::~world() = default;

#endif

} // namespace oktopk_tests
