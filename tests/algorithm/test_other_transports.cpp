// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The suite over transports that are not MPI's. The sparse algorithms start their messages in groups that fit a transport
// which runs one group after another on each rank, as NCCL does on a stream (support/ordered_transport.hpp); the dense
// ones run over one that moves bulk data of kernels alone and tells no sizes (support/foreign_transport.hpp), as does the
// former. The results have the same bits as over one that tells sizes and reaches all memory.

#include "algorithm/suite.hpp"
#include "fuzz/subject_of.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/ordered_transport.hpp"
#include "support/policies.hpp"

#include <oktopk/allreduce.hpp>
#include <oktopk/format/coo_or_dense.hpp>

using namespace oktopk_tests;

namespace {

static_assert(oktopk::control_communicator<control_archetype> && !oktopk::bulk_communicator<control_archetype>);
static_assert(oktopk::bulk_communicator<bulk_archetype> && !oktopk::control_communicator<bulk_archetype>);
static_assert(oktopk::communicator<foreign_communicator>);
static_assert(oktopk::bulk_communicator<ordered_bulk> && !oktopk::control_communicator<ordered_bulk>);
static_assert(oktopk::communicator<ordered_communicator> && ordered_communicator::ordered_by_instance());

// A format whose size follows from what it encodes, and parts that are balanced in every iteration.
struct always_balanced : oktopk::balanced_allgatherv {
  struct options {};
  always_balanced() : always_balanced(options{}) {}
  explicit always_balanced(options) : balanced_allgatherv({.ratio = 1}) {}
};
using ok_topk_of_open_sizes = oktopk::ok_topk<execution, oktopk::any_communicator,
                                              policies_of<oktopk::coo_or_dense<>, oktopk::exact, oktopk::exact,
                                                          oktopk::sampled, oktopk::rotated, always_balanced>>;

template <class Comm>
oktopk::any_communicator over(oktopk::in_process_communicator inner) {
  return Comm(inner);
}

} // namespace

TEST_CASE("every algorithm passes its suite over a transport that runs groups of messages in order") {
  std::vector<subject> all{oktopk_fuzz::typed_subject<ok_topk_of_open_sizes>("ok_topk of open sizes")};
  for (char const* const text :
       {"ok_topk(partition=sampled(tau=5))", "ok_topk(format=packed)", "paper_ok_topk(tau_prime=4, tau=5)", "topk_a",
        "topk_dsa", "gtopk", "gaussian_k", "dense"}) {
    all.push_back(subject_of(text));
  }
  for (subject const& of : all) {
    INFO(of.about.name);
    CHECK(algorithm_fault(of, 3, {.transport = over<ordered_communicator>}) == "");
    for (int const ranks : {1, 2, 3, 5, 8}) { // the same bits as over in_process; sizes travel ahead
      shape const what{1700, 50, 6};
      CHECK(repetition_fault(of, run(of, ranks, what, correlated{3, 8}, {.transport = over<ordered_communicator>}),
                             run(of, ranks, what, correlated{3, 8}), false) == "");
    }
  }
}

TEST_CASE("an allreduce whose messages would wait for each other is refused there on every rank, with the reason") {
  for (auto const& algorithm : oktopk::list_allreduces()) {
    if (subject_of(algorithm.name).about.is_dense() && algorithm.name != "dense") {
      auto const said = outcomes_of(3, [&](oktopk::in_process_communicator inner) {
        oktopk::make_allreduce(execution(), ordered_communicator(inner), algorithm.name, {.length = 500, .k = 20});
      });
      CHECK(unlike(said, oktopk::fault::option_out_of_range, algorithm.name + " does not run over this communicator") ==
            "");
    }
  }
}

TEST_CASE("every algorithm keeps its promises over a transport that tells no sizes") {
  for (auto const& algorithm : oktopk::list_allreduces()) {
    subject const of = subject_of(algorithm.name);
    for (int const ranks : {2, 5, 8}) {
      INFO(algorithm.name << " on " << ranks << " ranks");
      CHECK(repeated_run_fault(of, ranks, {2600, 37, 6}, correlated{3, 4}, {.transport = over<foreign_communicator>}) ==
            "");
    }
    INFO(algorithm.name);
    CHECK(special_input_fault(of, 3, {.transport = over<foreign_communicator>}) == "");
  }
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
