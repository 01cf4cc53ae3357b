// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A rank that leaves all others: it throws its reason, uses the communicator no more, and the others hear why.

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/messages.hpp"

#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;
using oktopk::phase;

namespace {

oktopk::error const reason(fault::damaged_message, "a bit fell over");

// Cannot tell the others anything.
struct silent {
  struct request {};
  int cancelled = 0;
  void cancel(std::span<request> requests) noexcept {
    CHECK(requests.empty());
    cancelled += 1;
  }
};

// Rank 1 gives up while the others wait for its message; gives what each rank has heard.
template <class Wrap>
std::vector<outcome> heard_from_one_that_aborts(int ranks, Wrap const& wrap) {
  std::vector<outcome> heard(static_cast<std::size_t>(ranks));
  auto const threw = oktopk::in_process::run_and_collect(ranks, [&](in_process_communicator inner) {
    auto comm = wrap(inner);
    comm.begin_operation("dance", 7);
    outcome& mine = heard[static_cast<std::size_t>(comm.rank())];
    int number = 0;
    if (comm.rank() == 1) {
      mine = outcome_of([&] { oktopk::detail::abort(comm, reason); });
      CHECK(outcome_of([&] { comm.isend(bytes_of(number), 0, phase::balance); }).says("cannot be used any more"));
      return;
    }
    mine = outcome_of([&] { receive_number<int>(comm, 1, phase::balance); });
    CHECK(outcome_of([&] { comm.isend(bytes_of(number), 1, phase::balance); }).says("cannot be used any more"));
  });
  for (auto const& each : threw) {
    CHECK(outcome_of(each) == outcome());
  }
  return heard;
}

void check_what_was_heard(std::vector<outcome> const& heard) {
  for (std::size_t rank = 0; rank < heard.size(); ++rank) {
    INFO("rank " << rank << ": " << heard[rank]);
    if (rank == 1) {
      CHECK(heard[rank] == outcome{reason.code(), reason.what()});
    } else {
      CHECK(unlike(heard[rank], fault::abandoned,
                   "rank 1 has given up (this rank was in dance, call 7): a bit fell over") == "");
    }
  }
}

} // namespace

TEST_CASE("a rank that gives up throws its reason, and all others hear it") {
  for (int const ranks : {2, 3, 5}) {
    check_what_was_heard(heard_from_one_that_aborts(ranks, [](in_process_communicator comm) { return comm; }));
    check_what_was_heard(
        heard_from_one_that_aborts(ranks, [](in_process_communicator comm) { return oktopk::counted(comm); }));
  }
}

TEST_CASE("a communicator that cannot tell the others is left all the same") {
  silent comm;
  CHECK(outcome_of([&] { oktopk::detail::abort(comm, reason); }) == outcome{reason.code(), reason.what()});
  CHECK(comm.cancelled == 1);
}
