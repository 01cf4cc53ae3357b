// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The whole suite over a transport that is not MPI's; see support/foreign_transport.hpp. The results have the same bits
// as over one that tells sizes and reaches all memory.

#include "algorithm/suite.hpp"
#include "support/foreign_transport.hpp"

#include <oktopk/allreduce.hpp>
#include <oktopk/format/coo_or_dense.hpp>

#include <cstdint>
#include <string>

using namespace oktopk_tests;

namespace {

using foreign = oktopk::counted<foreign_communicator>;

static_assert(oktopk::control_communicator<control_archetype> && !oktopk::bulk_communicator<control_archetype>);
static_assert(oktopk::bulk_communicator<bulk_archetype> && !oktopk::control_communicator<bulk_archetype>);
static_assert(oktopk::communicator<foreign_communicator> && oktopk::communicator<foreign>);

/// A subject over either transport; `Algorithm<Comm>` with periods so short that a few iterations see all of them.
template <template <class> class Algorithm, class Comm>
struct subject {
  using value_type = float;
  using index_type = std::int32_t;
  using communicator = Comm;
  template <class C>
  using algorithm = Algorithm<C>;

  static typename Algorithm<Comm>::options options(std::int64_t length, std::int64_t k) {
    typename Algorithm<Comm>::options how;
    how.length = length;
    if constexpr (requires { how.k; }) {
      how.k = k;
    }
    if constexpr (requires { how.local_select.tau_prime; }) {
      how.local_select.tau_prime = 4;
    }
    if constexpr (requires { how.global_select.tau_prime; }) {
      how.global_select.tau_prime = 4;
    }
    if constexpr (requires { how.partition.tau; }) {
      how.partition.tau = 5;
    }
    return how;
  }

  static std::string volume_fault(call_record<float, std::int32_t> const& call, int, shape) {
    bool const bounded = !std::is_same_v<Algorithm<Comm>, oktopk::paper_ok_topk<execution, Comm>>;
    return !bounded || call.total().words_sent() <= call.bound_words + 4 * static_cast<double>(call.indices.size())
               ? std::string()
               : "more words than the bound";
  }
};

template <class Run>
void forget_traffic(Run& all) {
  for (auto& rank : all) {
    for (auto& call : rank) {
      call.traffic = {};
    }
  }
}

template <template <class> class Algorithm>
void check_all() {
  using here = subject<Algorithm, foreign>;
  SECTION("invariants") {
    check_invariants<here>();
  }
  SECTION("bad accumulators") {
    check_bad_accumulators<here>();
  }
  SECTION("continuation") {
    check_continuation<here>();
  }
  SECTION("the same bits") {
    for (int const ranks : {1, 2, 3, 5, 8}) {
      shape const what{1700, 50, 6};
      auto expected = run<subject<Algorithm, counting>>(ranks, what, correlated{3, 8});
      auto got = run<here>(ranks, what, correlated{3, 8});
      forget_traffic(expected); // sizes travel ahead
      forget_traffic(got);
      CHECK(repetition_fault(got, expected) == "");
    }
  }
}

template <class Comm>
using ok_topk = oktopk::ok_topk<execution, Comm>;

// A format whose size follows from what it encodes, and parts that are balanced in every iteration.
struct always_balanced : oktopk::balanced_allgatherv {
  struct options {};
  always_balanced() : always_balanced(options{}) {}
  explicit always_balanced(options) : balanced_allgatherv({.ratio = 1}) {}
};
template <class Comm>
using ok_topk_of_open_sizes = oktopk::ok_topk<execution, Comm, oktopk::coo_or_dense<>, oktopk::exact, oktopk::exact,
                                              oktopk::evened, oktopk::rotated, always_balanced>;
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

TEST_CASE("ok_topk passes its suite over a transport that moves bulk data of kernels alone") {
  check_all<ok_topk>();
}

TEST_CASE("ok_topk with a format of open sizes passes its suite over such a transport") {
  check_all<ok_topk_of_open_sizes>();
}

TEST_CASE("paper_ok_topk passes its suite over such a transport") {
  check_all<paper_ok_topk>();
}

TEST_CASE("topk_a passes its suite over such a transport") {
  check_all<topk_a>();
}

TEST_CASE("topk_dsa passes its suite over such a transport") {
  check_all<topk_dsa>();
}

TEST_CASE("gtopk passes its suite over such a transport") {
  check_all<gtopk>();
}

TEST_CASE("dense passes its suite over such a transport") {
  check_all<dense>();
}

TEST_CASE("the textbook allreduces keep the invariants over such a transport") {
  SECTION("ring") {
    check_invariants<subject<ring, foreign>>();
  }
  SECTION("ring_chunked") {
    check_invariants<subject<ring_chunked, foreign>>();
  }
  SECTION("halving_doubling") {
    check_invariants<subject<halving_doubling, foreign>>();
  }
  SECTION("recursive_doubling") {
    check_invariants<subject<recursive_doubling, foreign>>();
  }
  SECTION("rabenseifner") {
    check_invariants<subject<rabenseifner, foreign>>();
  }
}
