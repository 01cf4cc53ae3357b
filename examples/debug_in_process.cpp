// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Debugging with ranks in one process: no launcher, one thread, and a deadlock is an error that names all ranks.
//
// The ranks of `in_process` are fibres of one thread, so a debugger sees all of them, and every run takes the same
// course. The program makes two mistakes on purpose: a rank leaves before a collective call, and a rank has a value
// that is not finite. It fails when the library does not name these mistakes.

#include <oktopk/allreduce.hpp>
#include <oktopk/comm/in_process.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <string>
#include <vector>

namespace {

using space = Kokkos::DefaultExecutionSpace;
constexpr int ranks = 4;
constexpr int length = 1000;

/// One call of Ok-Topk; `bad` puts a NaN into the gradient.
void call_once(oktopk::in_process_communicator const& comm, bool bad) {
  oktopk::ok_topk allreduce(space(), comm, {.length = length, .k = 10});
  Kokkos::View<float*, space> const gradient("gradient", length);
  Kokkos::deep_copy(gradient, 1.0F);
  if (bad) {
    Kokkos::deep_copy(Kokkos::subview(gradient, 7), std::numeric_limits<float>::quiet_NaN());
  }
  allreduce(gradient);
}

/// The sentence of an error, and its kind; an empty sentence where there was none.
struct outcome {
  std::string sentence;
  oktopk::fault kind = oktopk::fault::none;
};

outcome outcome_of(std::exception_ptr const& failure) {
  try {
    if (failure) {
      std::rethrow_exception(failure);
    }
  } catch (oktopk::error const& caught) {
    return {caught.what(), caught.code()};
  }
  return {};
}

/// Rank 2 returns at once; the others wait for it.
bool show_deadlock() {
  auto const failures = oktopk::in_process::run_and_collect(ranks, [](oktopk::in_process_communicator comm) {
    if (comm.rank() != 2) {
      call_once(comm, false);
    }
  });
  bool right = true;
  for (int rank = 0; rank < ranks; ++rank) {
    outcome const seen = outcome_of(failures[static_cast<std::size_t>(rank)]);
    if (rank == 2) {
      right = right && seen.kind == oktopk::fault::none;
      continue;
    }
    right =
        right && seen.kind == oktopk::fault::deadlock && seen.sentence.find("rank 2 has returned") != std::string::npos;
    if (rank == 0) {
      std::printf("a rank leaves:\n  %s\n", seen.sentence.c_str());
    }
  }
  return right;
}

/// Rank 1 has a NaN. Nobody is left waiting: all ranks throw the same error at the end of the call.
bool show_bad_value() {
  auto const failures = oktopk::in_process::run_and_collect(
      ranks, [](oktopk::in_process_communicator comm) { call_once(comm, comm.rank() == 1); });
  bool right = true;
  outcome const first = outcome_of(failures[0]);
  for (std::exception_ptr const& failure : failures) {
    outcome const seen = outcome_of(failure);
    right = right && seen.kind == oktopk::fault::non_finite && seen.sentence == first.sentence;
  }
  std::printf("a rank has a NaN:\n  %s\n", first.sentence.c_str());
  return right && first.sentence.find("rank 1") != std::string::npos;
}

} // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos(argc, argv);
  bool const deadlock_named = show_deadlock();
  bool const value_named = show_bad_value();
  return deadlock_named && value_named ? EXIT_SUCCESS : EXIT_FAILURE;
}
