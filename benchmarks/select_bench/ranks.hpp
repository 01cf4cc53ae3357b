// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifdef SELECT_BENCH_WITH_MPI
#include "programs/mpi.hpp"

#include <mpi.h>
#endif

#include <string>

namespace select_bench {

/// Copies of this program that measure at the same time, as the ranks of a node do, and wait for each other before each
/// measurement. One alone where there is no MPI.
class ranks {
public:
  ranks(int& argc, char**& argv) {
#ifdef SELECT_BENCH_WITH_MPI
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
#else
    (void)argc, (void)argv;
#endif
  }
  ranks(ranks const&) = delete;
  ranks& operator=(ranks const&) = delete;
  ~ranks() {
#ifdef SELECT_BENCH_WITH_MPI
    MPI_Finalize();
#endif
  }

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Returns once all are here.
  void meet() const {
#ifdef SELECT_BENCH_WITH_MPI
    MPI_Barrier(MPI_COMM_WORLD);
#endif
  }

  /// Where they outnumber the cores, a sentence on that. Collective.
  std::string note() const {
#ifdef SELECT_BENCH_WITH_MPI
    return oktopk_programs::crowding_note(MPI_COMM_WORLD);
#else
    return {};
#endif
  }

  /// Ends the others too, which would wait for this one.
  void abort() const {
#ifdef SELECT_BENCH_WITH_MPI
    if (size_ > 1) {
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
#endif
  }

private:
  int rank_ = 0;
  int size_ = 1;
};

} // namespace select_bench
