// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The sparse algorithms start their messages in groups that fit a transport which runs one group after another on each
// rank, as NCCL does on a stream; see support/ordered_transport.hpp.

#include "algorithm/transport_suite.hpp"
#include "support/caught.hpp"
#include "support/ordered_transport.hpp"

using namespace oktopk_tests;

namespace {

using ordered = oktopk::counted<ordered_communicator>;

static_assert(oktopk::bulk_communicator<ordered_bulk> && !oktopk::control_communicator<ordered_bulk>);
static_assert(oktopk::communicator<ordered> && ordered::ordered_by_instance);

} // namespace

TEST_CASE("every algorithm passes its suite over a transport that runs groups of messages in order") {
  check_sparse_algorithms_over<ordered>();
}

TEST_CASE("a transport that runs groups in order tells ranks whose orders do not fit") {
  auto const cross = [](bool in_one_group) {
    return outcome_of([&] {
      oktopk::in_process::run(2, [&](oktopk::in_process_communicator inner) {
        ordered_communicator comm(inner);
        Kokkos::View<std::byte*, memory> const space("room", 16);
        int const peer = 1 - comm.rank();
        oktopk::detail::message_group<ordered_communicator> messages;
        messages.reset(2);
        oktopk::detail::cancel_on_unwind const guard(comm, messages.requests());
        messages.send({space.data(), 8}, peer, oktopk::phase::reduce, oktopk::detail::message_size::known);
        if (!in_one_group) {
          messages.start(execution(), comm);
        }
        messages.receive({space.data() + 8, 8}, peer, oktopk::phase::reduce, oktopk::detail::message_size::known);
        messages.start(execution(), comm);
        messages.wait_all(comm);
      });
    });
  };
  CHECK(cross(true).code == oktopk::fault::none);
  CHECK(cross(false).code == oktopk::fault::deadlock);
}
