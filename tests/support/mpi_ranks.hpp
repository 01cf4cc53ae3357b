// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/same_everywhere.hpp"

#include <oktopk/comm/in_process.hpp>

#include <mpi.h>

namespace oktopk_tests {

inline int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

inline int world_size() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// `program(comm)` over ranks of this process, as many as MPI has: the result of the rank that is this one.
template <class Program>
auto of_twin_in_process(Program const& program) {
  decltype(program(std::declval<oktopk::in_process_communicator>())) mine;
  oktopk::in_process::run(world_size(), [&](oktopk::in_process_communicator comm) {
    auto const here = program(comm);
    if (comm.rank() == world_rank()) {
      mine = here;
    }
  });
  return mine;
}

inline std::vector<std::string> texts_of_all(std::string const& mine) {
  int const length = static_cast<int>(mine.size());
  int longest = 0;
  MPI_Allreduce(&length, &longest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  std::vector<char> padded(static_cast<std::size_t>(longest) + 1, '\0');
  std::copy(mine.begin(), mine.end(), padded.begin());
  std::vector<char> all(padded.size() * static_cast<std::size_t>(world_size()));
  MPI_Allgather(padded.data(), longest + 1, MPI_CHAR, all.data(), longest + 1, MPI_CHAR, MPI_COMM_WORLD);
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < all.size(); at += padded.size()) {
    texts.emplace_back(all.data() + at);
  }
  return texts;
}

/// Runs a test on all ranks. What one of them throws fails it on every rank, and none goes on before all are through:
/// a rank that left alone would wait in the next test for those that wait in this one. Collective.
template <class Body>
void on_all_ranks(Body const& body) {
  detail::on_all_ranks(body);
}

/// MPICH forgets the communicator of a request that failed, and calls the handler of MPI_COMM_WORLD or MPI_COMM_SELF: by
/// default that ends the job. The adapter changes no communicator but its own, so a program that wants to live on says
/// so.
class errors_return_everywhere {
public:
  errors_return_everywhere() { set(MPI_ERRORS_RETURN); }
  ~errors_return_everywhere() { set(MPI_ERRORS_ARE_FATAL); }
  errors_return_everywhere(errors_return_everywhere const&) = delete;
  errors_return_everywhere& operator=(errors_return_everywhere const&) = delete;

private:
  static void set(MPI_Errhandler handler) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  }
};

} // namespace oktopk_tests

/// A test case all of whose body runs by `on_all_ranks`.
#define TEST_CASE_ON_ALL_RANKS(...) OKTOPK_TESTS_ON_ALL_RANKS(OKTOPK_TESTS_BODY_AT(__COUNTER__), __VA_ARGS__)
#define OKTOPK_TESTS_ON_ALL_RANKS(body, ...)                                                                           \
  static void body();                                                                                                  \
  TEST_CASE(__VA_ARGS__) {                                                                                             \
    oktopk_tests::on_all_ranks(body);                                                                                  \
  }                                                                                                                    \
  static void body()
