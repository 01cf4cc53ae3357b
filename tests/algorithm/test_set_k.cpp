// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Another k from one call to the next: the calls are those of an object made with that k and the state so far.

#include "algorithm/invariants.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/base.hpp>
#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/algorithm/paper_ok_topk.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/algorithm/topk_dsa.hpp>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;

namespace {

constexpr std::int64_t length = 700;

template <class Allreduce>
typename Allreduce::options with_k(std::int64_t k) {
  typename Allreduce::options how;
  how.length = length;
  how.k = k;
  return how;
}

} // namespace

TEMPLATE_TEST_CASE("after set_k an algorithm does what one made with that k does from the same state", "",
                   (oktopk::ok_topk<execution, counting>), (oktopk::paper_ok_topk<execution, counting>),
                   (oktopk::ok_topk<execution, counting, reused_policies>), (oktopk::topk_a<execution, counting>),
                   (oktopk::topk_dsa<execution, counting>), (oktopk::gtopk<execution, counting>),
                   (oktopk::gaussian_k<execution, counting>)) {
  for (int const ranks : {1, 4}) {
    oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
      TestType changing(execution(), counting(comm), with_k<TestType>(200));
      std::vector<float> residual(static_cast<std::size_t>(length), 0);
      int iteration = 0;
      for (std::int64_t const k : {std::int64_t(200), std::int64_t(30), std::int64_t(0), length, std::int64_t(7)}) {
        changing.set_k(k);
        CHECK(changing.k() == k);
        TestType made(execution(), counting(comm), with_k<TestType>(k));
        made.restore(changing.state());
        CHECK((made.bound_words() == changing.bound_words() || iteration > 0)); // gaussian_k's is of its last call
        for (int call = 0; call < 3; ++call, ++iteration) {
          auto const input = accumulator_of({comm.rank(), ranks, iteration}, residual, correlated{7, 3});
          auto const one = observe(changing, input);
          CHECK(difference(one, observe(made, input)) == "");
          residual = one.residual;
        }
      }
    });
  }
}

TEST_CASE("a k that is out of range or differs between ranks is an error on every rank, and k stays") {
  auto const refused = [](std::int64_t of_rank_1, std::int64_t of_others, std::string const& words, fault code) {
    oktopk::in_process::run(3, [&](in_process_communicator comm) {
      oktopk::ok_topk<execution, in_process_communicator> allreduce(execution(), comm, {.length = length, .k = 20});
      auto const heard = outcome_of([&] { allreduce.set_k(comm.rank() == 1 ? of_rank_1 : of_others); });
      CHECK(unlike(heard, code, words) == "");
      CHECK(allreduce.k() == 20);
    });
  };
  refused(-1, 5, "rank 1: k = -1 is not in [0, length]", fault::k_out_of_range);
  refused(length + 1, length + 1, "k = 701 is not in [0, length], length = 700", fault::k_out_of_range);
  refused(6, 5, "rank 1 has k = 6", fault::ranks_disagree);
}
