// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// An algorithm whose type is hidden behaves as the algorithm does, in its errors as well.
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/catalogue/catalogue.hpp>

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/collect.hpp"

namespace {

using namespace oktopk;
using namespace oktopk_tests;

using format = coo<double, std::int64_t>;
using typed = topk_a<execution, counting, oktopk::with_format<format>>;
using any = any_allreduce<execution, counting, double, std::int64_t>;
static_assert(gradient_allreduce<any>);

any made(in_process_communicator const& comm, std::int64_t length, std::int64_t k) {
  return any(std::in_place_type<typed>, execution(), counting(comm), {.length = length, .k = k});
}

} // namespace

TEST_CASE_ON(comm, 2, "an algorithm without a text goes by its own name, and can be moved") {
  any first = made(comm, 10, 2);
  any allreduce = std::move(first);
  CHECK((allreduce.text() == "topk_a" && allreduce.name() == "topk_a"));
  CHECK((allreduce.length() == 10 && allreduce.k() == 2));
  std::vector<double> const values{0, 1, 2, 3, 4, 5, 6, 7, 8, -9};
  auto const& update = allreduce(to_view(values));
  CHECK(to_vector(update.indices()) == std::vector<std::int64_t>{8, 9});
  CHECK(to_vector(update.values()) == std::vector<double>{16, -18});
  CHECK(allreduce.last_call().local_selected == 2);
  CHECK(allreduce.comm().total().messages_sent > 0);
}

TEST_CASE_ON(comm, 2, "a hidden algorithm that selects nothing takes no other k, and says so") {
  auto dense = make_allreduce(execution(), comm, "ring", {.length = 10});
  CHECK(unlike(outcome_of([&] { dense.set_k(3); }), fault::k_out_of_range, "takes no other k") == "");
}

TEST_CASE_ON(comm, 2, "what was reset is as a new object") {
  any allreduce = made(comm, 4, 1);
  any::state_type const fresh = allreduce.state();
  allreduce(to_view(std::vector<double>{1, 2, 3, 4}));
  CHECK(!(allreduce.state() == fresh));
  allreduce.reset();
  CHECK(allreduce.state() == fresh);
}

TEST_CASE("a state that was never saved is refused") {
  CHECK(unlike(outcomes_of(2, [](in_process_communicator comm) { made(comm, 4, 1).restore(any::state_type()); }),
               fault::bad_state, "cut short") == "");
}
