// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Every communicator of the library, decorated ones and those of the tests go through one suite; MPI's is in tests/mpi.

#include "comm/suite.hpp"
#include "support/archetype_communicator.hpp"
#include "support/foreign_transport.hpp"
#include "support/ordered_transport.hpp"
#include "support/unreachable.hpp"

#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/comm/self.hpp>

using namespace oktopk_tests;

namespace {

/// Worlds of several sizes, whose ranks talk through `Comm`, which is made from `Made`.
template <class Comm, class Made = oktopk::in_process_communicator>
auto in_worlds() {
  return [](auto const& body) {
    for (int const ranks : {1, 2, 3, 5, 8}) {
      oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator inner) { body(Comm(Made(inner))); });
    }
  };
}

} // namespace

TEST_CASE("self keeps the contract of a communicator, and has nobody to send to") {
  check_communicator([](auto const& body) { body(oktopk::self_communicator()); });
  oktopk::self_communicator comm;
  int number = 3;
  CHECK(outcome_of([&] { comm.isend(bytes_of(number), 0, oktopk::phase::control); }).code ==
        oktopk::fault::communication);
  CHECK(outcome_of([&] { comm.irecv(space_in(number), 0, oktopk::phase::control); }).code ==
        oktopk::fault::communication);
}

TEMPLATE_TEST_CASE("communicators of ranks of one process, those of the tests and decorated ones keep the contract", "",
                   oktopk::in_process_communicator, oktopk::counted<oktopk::in_process_communicator>,
                   foreign_communicator, ordered_communicator, archetype_communicator,
                   unreachable<oktopk::in_process_communicator>) {
  check_communicator(in_worlds<TestType>());
}

TEST_CASE("a pair of a control and a bulk transport that is counted keeps the contract of a communicator") {
  check_communicator(in_worlds<oktopk::counted<foreign_communicator>, foreign_communicator>());
}
