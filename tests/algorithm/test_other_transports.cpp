// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The suite over transports that are not MPI's. The sparse algorithms start their messages in groups that fit a transport
// which runs one group after another on each rank, as NCCL does on a stream (support/ordered_transport.hpp); the dense
// ones run over one that moves bulk data of kernels alone and tells no sizes (support/foreign_transport.hpp), as does the
// former. The results have the same bits as over one that tells sizes and reaches all memory.

#include "algorithm/suite.hpp"
#include "support/caught.hpp"
#include "support/ordered_transport.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/allreduce.hpp>
#include <oktopk/format/coo_or_dense.hpp>

using namespace oktopk_tests;

namespace {

using foreign = oktopk::counted<foreign_communicator>;
using ordered = oktopk::counted<ordered_communicator>;

static_assert(oktopk::control_communicator<control_archetype> && !oktopk::bulk_communicator<control_archetype>);
static_assert(oktopk::bulk_communicator<bulk_archetype> && !oktopk::control_communicator<bulk_archetype>);
static_assert(oktopk::communicator<foreign_communicator> && oktopk::communicator<foreign>);
static_assert(oktopk::bulk_communicator<ordered_bulk> && !oktopk::control_communicator<ordered_bulk>);
static_assert(oktopk::communicator<ordered> && ordered::ordered_by_instance);

/// A subject over any transport; `Algorithm<Comm>` with periods so short that a few iterations see all of them.
template <template <class> class Algorithm, class Comm>
struct transport_subject {
  using value_type = float;
  using index_type = std::int32_t;
  using communicator = Comm;
  template <class C>
  using algorithm = Algorithm<C>;
  template <class C>
  using over = transport_subject<Algorithm, C>;

  static typename Algorithm<Comm>::options options(std::int64_t length, std::int64_t k) {
    typename Algorithm<Comm>::options how;
    how.length = length;
    SET_IF_THERE(how.k, k);
    SET_IF_THERE(how.local_select.tau_prime, 4);
    SET_IF_THERE(how.global_select.tau_prime, 4);
    SET_IF_THERE(how.partition.tau, 5);
    return how;
  }

  static std::string volume_fault(call_record<float, std::int32_t> const& call, int, shape) {
    return call.total().words_sent() <= call.bound_words + 4 * static_cast<double>(call.indices.size())
               ? std::string()
               : "more words than the bound";
  }
};

template <class Comm>
using ok_topk = oktopk::ok_topk<execution, Comm>;

// A format whose size follows from what it encodes, and parts that are balanced in every iteration.
struct always_balanced : oktopk::balanced_allgatherv {
  struct options {};
  always_balanced() : always_balanced(options{}) {}
  explicit always_balanced(options) : balanced_allgatherv({.ratio = 1}) {}
};
template <class Comm>
using ok_topk_of_open_sizes = oktopk::ok_topk<execution, Comm,
                                              policies_of<oktopk::coo_or_dense<>, oktopk::exact, oktopk::exact,
                                                          oktopk::evened, oktopk::rotated, always_balanced>>;
template <class Comm>
using paper_ok_topk = oktopk::paper_ok_topk<execution, Comm>;
template <class Comm>
using topk_a = oktopk::topk_a<execution, Comm>;
template <class Comm>
using topk_dsa = oktopk::topk_dsa<execution, Comm>;
template <class Comm>
using gtopk = oktopk::gtopk<execution, Comm>;
template <class Comm>
using dense = oktopk::dense<execution, Comm>;

template <class Comm>
using ring = oktopk::dense_ring<execution, Comm>;
template <class Comm>
using ring_chunked = oktopk::dense_ring_chunked<execution, Comm>;
template <class Comm>
using halving_doubling = oktopk::dense_halving_doubling<execution, Comm>;
template <class Comm>
using recursive_doubling = oktopk::dense_recursive_doubling<execution, Comm>;
template <class Comm>
using rabenseifner = oktopk::dense_rabenseifner<execution, Comm>;

} // namespace

TEMPLATE_TEST_CASE("every algorithm passes its suite over a transport that runs groups of messages in order", "",
                   (transport_subject<ok_topk, ordered>), (transport_subject<ok_topk_of_open_sizes, ordered>),
                   (transport_subject<paper_ok_topk, ordered>), (transport_subject<topk_a, ordered>),
                   (transport_subject<topk_dsa, ordered>), (transport_subject<gtopk, ordered>),
                   (transport_subject<dense, ordered>)) {
  check_algorithm<TestType>();
  SECTION("the same bits as over in_process") {
    for (int const ranks : {1, 2, 3, 5, 8}) {
      shape const what{1700, 50, 6};
      auto const expected = run<typename TestType::template over<counting>>(ranks, what, correlated{3, 8});
      CHECK(results_fault(run<TestType>(ranks, what, correlated{3, 8}), expected) == ""); // sizes travel ahead
    }
  }
}

TEMPLATE_TEST_CASE("the textbook allreduces keep the invariants over a transport that tells no sizes", "",
                   (transport_subject<ring, foreign>), (transport_subject<ring_chunked, foreign>),
                   (transport_subject<halving_doubling, foreign>), (transport_subject<recursive_doubling, foreign>),
                   (transport_subject<rabenseifner, foreign>)) {
  check_invariants<TestType>();
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
