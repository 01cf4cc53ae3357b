// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/ok_topk_subject.hpp"

#include <oktopk/algorithm/paper_ok_topk.hpp>

using namespace oktopk_tests;

namespace {

struct paper_subject : ok_topk_subject<paper_subject, oktopk::paper_policies> {
  static constexpr volume_terms terms{.sizes_announced = true, .candidates_gathered = true, .gather_bounded = false};
  static constexpr ok_topk_rules rules{rule::unguarded, rule::unguarded, true, 4, 5};
  template <class Comm>
  using algorithm = oktopk::paper_ok_topk<execution, Comm>;

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length,
            .k = k,
            .local_select = {.tau_prime = 4},
            .global_select = {.tau_prime = 4},
            .partition = {.tau = 5}};
  }
};

} // namespace

TEST_CASE("paper_ok_topk passes the suite of algorithms") {
  check_algorithm<paper_subject>();
}

TEST_CASE("paper_ok_topk keeps its bound, when thresholds are evaluated too") {
  for (int const ranks : {2, 3, 4, 7, 16}) {
    CAPTURE(ranks);
    oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
      algorithm_of<paper_subject> allreduce(execution(), counting(comm), paper_subject::options(20000, 1000));
      std::vector<float> accumulator(20000);
      correlated{17}({comm.rank(), ranks, 0}, accumulator);
      for (int iteration = 0; iteration < 8; ++iteration) {
        auto const call = observe(allreduce, accumulator);
        CHECK(call.statistics.global_reevaluated == (iteration % 4 == 0));
        CHECK(call.statistics.global_selected == 1000);
        CHECK(call.total().words_sent() <= call.bound_words);
      }
    });
  }
}
