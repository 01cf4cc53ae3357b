// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Calls in which no rank selects anything: a global selection of nothing, which must leave a state that can be
// restored, and must not pass for an evaluation of the threshold.

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <oktopk/catalogue/catalogue.hpp>

using namespace oktopk_tests;
using oktopk::in_process_communicator;

namespace {

// Mean 0 and deviation 1: the magnitude that one of four should reach is 1.15, which none does.
std::vector<float> const nothing_stands_out = {1, -1, 1, -1};
std::vector<float> const one_stands_out = {0, 0, 0, 5};

} // namespace

TEST_CASE("a global selection of nothing leaves a sound state") {
  for (std::string const global : {"exact", "reused", "unguarded", "foreseen", "gathered"}) {
    for (int const ranks : {1, 2, 3, 5}) {
      CAPTURE(global, ranks);
      oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
        auto allreduce = oktopk::make_allreduce(execution(), comm, "ok_topk(local=gaussian, global=" + global + ")",
                                                {.length = 4, .k = 1});
        for (int call = 0; call < 2; ++call) {
          CHECK(allreduce(to_view(nothing_stands_out)).indices().extent(0) == 0);
          auto const saved = allreduce.state();
          CHECK_NOTHROW(allreduce.restore(saved)); // refuses a state that is not sound
        }
        // The threshold of nothing was none: it is evaluated as soon as there is something.
        auto const& update = allreduce(to_view(one_stands_out));
        CHECK((to_vector(update.indices()) == std::vector<std::int32_t>{3}));
        CHECK((to_vector(update.values()) == std::vector<float>{5.0F * static_cast<float>(ranks)}));
        CHECK(allreduce.last_call().global_reevaluated);
      });
    }
  }
}
