// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "algorithm/suite.hpp"
#include "support/policies.hpp"

#include <oktopk/allreduce.hpp>
#include <oktopk/format/coo_or_dense.hpp>

#include <type_traits>

// The suite of all sparse algorithms, and of the communicator's own allreduce, over a transport of another kind.
namespace oktopk_tests {

/// A subject over any transport; `Algorithm<Comm>` with periods so short that a few iterations see all of them.
template <template <class> class Algorithm, class Comm>
struct transport_subject {
  using value_type = float;
  using index_type = std::int32_t;
  using communicator = Comm;
  template <class C>
  using algorithm = Algorithm<C>;

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

template <class Run>
void forget_traffic(Run& all) {
  for (auto& rank : all) {
    for (auto& call : rank) {
      call.traffic = {};
    }
  }
}

/// Everything over `Comm`, whose traffic is counted; the results have the same bits as over `in_process`.
template <class Comm, template <class> class Algorithm>
void check_over() {
  using here = transport_subject<Algorithm, Comm>;
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
      auto expected = run<transport_subject<Algorithm, counting>>(ranks, what, correlated{3, 8});
      auto got = run<here>(ranks, what, correlated{3, 8});
      forget_traffic(expected); // sizes travel ahead
      forget_traffic(got);
      CHECK(repetition_fault(got, expected) == "");
    }
  }
}

namespace over {

template <class Comm>
using ok_topk = oktopk::ok_topk<execution, Comm>;

// A format whose size follows from what it encodes, and parts that are balanced in every iteration.
struct always_balanced : oktopk::balanced_allgatherv {
  struct options {};
  always_balanced() : always_balanced(options{}) {}
  explicit always_balanced(options) : balanced_allgatherv({.ratio = 1}) {}
};
template <class Comm>
using ok_topk_of_open_sizes =
    oktopk::ok_topk<execution, Comm,
                    oktopk_tests::policies_of<oktopk::coo_or_dense<>, oktopk::exact, oktopk::exact, oktopk::evened,
                                              oktopk::rotated, always_balanced>>;
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

} // namespace over

/// Every algorithm that starts its messages in groups.
template <class Comm>
void check_sparse_algorithms_over() {
  SECTION("ok_topk") {
    check_over<Comm, over::ok_topk>();
  }
  SECTION("ok_topk with a format of open sizes") {
    check_over<Comm, over::ok_topk_of_open_sizes>();
  }
  SECTION("paper_ok_topk") {
    check_over<Comm, over::paper_ok_topk>();
  }
  SECTION("topk_a") {
    check_over<Comm, over::topk_a>();
  }
  SECTION("topk_dsa") {
    check_over<Comm, over::topk_dsa>();
  }
  SECTION("gtopk") {
    check_over<Comm, over::gtopk>();
  }
  SECTION("dense") {
    check_over<Comm, over::dense>();
  }
}

} // namespace oktopk_tests
