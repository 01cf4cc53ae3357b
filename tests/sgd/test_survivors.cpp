// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Ranks that go on from the states of a larger world lose the residuals of those that are gone, and nothing else; how
// they get there when a rank dies in the middle of a call is in tests/simulate.

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/seeded.hpp"

#include <oktopk/bucketed.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/sgd.hpp>

namespace test_of_survivors {

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;

namespace {

using E = host_execution;

constexpr std::int64_t length = 200;
constexpr float rate = 0.5F;

} // namespace

TEST_CASE("a state goes on with other ranks, once it is without the regions of more ranks") {
  for (std::string const text :
       {"ok_topk", "ok_topk(local=reused(tau_prime=100), global=reused(tau_prime=100))", "gtopk", "topk_dsa"}) {
    CAPTURE(text);
    using any = oktopk::any_allreduce<E>;
    auto const make = [&](in_process_communicator const& comm) {
      return oktopk::make_allreduce(E(), comm, text, {.length = length, .k = 20});
    };
    std::vector<oktopk::sgd<any>::state_type> of_four(4);
    oktopk::in_process::run(4, [&](in_process_communicator comm) {
      any allreduce = make(comm);
      oktopk::sgd steps(E(), allreduce, {.learning_rate = rate});
      vector_of<float> const weights("weights", length);
      for (int call = 0; call < 2; ++call) {
        steps.step(weights, seeded_accumulator<float>(length, comm.rank(), call));
      }
      of_four[static_cast<std::size_t>(comm.rank())] = steps.state();
    });
    std::vector<double> put_in(length);
    std::vector<double> came_out(length);
    oktopk::in_process::run(3, [&](in_process_communicator comm) {
      auto const& mine = of_four[static_cast<std::size_t>(comm.rank())];
      any allreduce = make(comm);
      oktopk::sgd steps(E(), allreduce, {.learning_rate = 1});
      if (text.starts_with("ok_topk")) {
        CHECK(outcome_of([&] { steps.restore(mine); }).code == fault::bad_state);
      }
      auto const fitting = oktopk::for_other_ranks(mine, allreduce);
      CHECK(fitting.residual == mine.residual);
      steps.restore(fitting);
      CHECK(steps.learning_rate() == rate);
      vector_of<float> const weights("weights", length);
      auto const gradient = seeded_accumulator<float>(length, comm.rank(), 1000);
      CHECK(steps.step(weights, gradient).indices().extent(0) > 0);
      auto const after = steps.state();
      for (std::size_t i = 0; i < put_in.size(); ++i) {
        put_in[i] += mine.residual[i] + static_cast<double>(rate) * gradient(i);
        came_out[i] += after.residual[i] - static_cast<double>(weights(i)); // each rank holds a third of the sums
      }
      auto damaged = mine.allreduce;
      damaged.checkpoint.pop_back();
      CHECK(outcome_of([&] { oktopk::for_other_ranks(damaged, allreduce); }).code == fault::bad_state);
    });
    for (std::size_t i = 0; i < put_in.size(); ++i) {
      CHECK(came_out[i] == Approx(put_in[i]).margin(1e-4));
    }
  }
}

TEST_CASE("a state of buckets goes on with other ranks") {
  using any = oktopk::any_allreduce<E>;
  std::vector<std::int64_t> const lengths{300, 200, 100};
  oktopk::detail::bucketed_options how;
  how.plan.bucket_bytes = 1000;
  how.plan.densities = {0.1};
  std::vector<oktopk::bucketed<any>::state_type> of_four(4);
  auto const step = [&](oktopk::bucketed<any>& buckets, int rank) {
    for (int tensor = 0; tensor < 3; ++tensor) {
      buckets.ready(tensor, seeded_accumulator<float>(lengths[static_cast<std::size_t>(tensor)], rank, tensor));
    }
    buckets.wait();
  };
  auto const maker = [](in_process_communicator const& comm) {
    return [comm](oktopk::bucket const& of) {
      return oktopk::make_allreduce(E(), comm, "ok_topk", {.length = of.length, .density = of.density});
    };
  };
  oktopk::in_process::run(4, [&](in_process_communicator comm) {
    oktopk::bucketed<any> buckets(E(), comm, lengths, maker(comm), how);
    step(buckets, comm.rank());
    of_four[static_cast<std::size_t>(comm.rank())] = buckets.state();
  });
  oktopk::in_process::run(3, [&](in_process_communicator comm) {
    auto const& mine = of_four[static_cast<std::size_t>(comm.rank())];
    oktopk::bucketed<any> buckets(E(), comm, lengths, maker(comm), how);
    CHECK(outcome_of([&] { buckets.restore(mine); }).code == fault::bad_state);
    buckets.restore(oktopk::for_other_ranks(mine));
    CHECK(buckets.state().residual == mine.residual);
    step(buckets, comm.rank());
  });
}

} // namespace test_of_survivors
