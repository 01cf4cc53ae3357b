// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Calls in which no rank selects anything: a global selection of nothing, which must leave a state that can be
// restored, and must not pass for an evaluation of the threshold.

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/paper_ok_topk.hpp>
#include <oktopk/select/gaussian.hpp>
#include <oktopk/select/reused_threshold.hpp>

using namespace oktopk_tests;
using oktopk::in_process_communicator;

namespace {

template <class GlobalSelector>
using gaussian_then =
    oktopk::ok_topk<execution, in_process_communicator, policies_of<oktopk::coo<>, oktopk::gaussian, GlobalSelector>>;

// Mean 0 and deviation 1: the magnitude that one of four should reach is 1.15, which none does.
std::vector<float> const nothing_stands_out = {1, -1, 1, -1};
std::vector<float> const one_stands_out = {0, 0, 0, 5};

} // namespace

TEMPLATE_TEST_CASE("a global selection of nothing leaves a sound state", "", oktopk::exact, oktopk::reused_threshold,
                   oktopk::unguarded_threshold, oktopk::gathered_threshold) {
  for (int const ranks : {1, 2, 3, 5}) {
    CAPTURE(ranks);
    oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
      using algorithm = gaussian_then<TestType>;
      algorithm allreduce(execution(), comm, {.length = 4, .k = 1});
      for (int call = 0; call < 2; ++call) {
        CHECK(allreduce(to_view(nothing_stands_out)).indices().extent(0) == 0);
        CHECK(allreduce.state().global.is_sound(allreduce.state().iteration));
      }
      auto const saved = allreduce.state();
      allreduce.restore(saved);
      // The threshold of nothing was none: it is evaluated as soon as there is something.
      auto const& update = allreduce(to_view(one_stands_out));
      CHECK((to_vector(update.indices()) == std::vector<std::int32_t>{3}));
      CHECK((to_vector(update.values()) == std::vector<float>{5.0F * static_cast<float>(ranks)}));
      CHECK(allreduce.last_call().global_reevaluated);
    });
  }
}
