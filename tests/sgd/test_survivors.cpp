// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A rank dies in the middle of a step; the others go on among themselves from their states. What is lost is the
// residual of the dead rank, and nothing else.

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/policies.hpp"
#include "support/seeded.hpp"

#include <oktopk/algorithm/concept.hpp>
#include <oktopk/allreduce.hpp>
#include <oktopk/bucketed.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/comm/simulation.hpp>
#include <oktopk/select/reused_threshold.hpp>
#include <oktopk/sgd.hpp>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;

namespace {

using E = host_execution;

constexpr int ranks = 4;
constexpr std::int64_t length = 200;
constexpr float rate = 0.5F;

// What one rank knows when it goes on, and what comes of it.
struct kept {
  bool alive = false;
  std::int64_t resumed_at = -1;
  int ranks_left = 0;
  std::vector<float> residual_before;
  std::vector<float> weights_before;
  std::vector<float> gradient;
  std::vector<float> residual_after;
  std::vector<float> weights_after;
};

template <class Algorithm>
typename Algorithm::options options_of() {
  typename Algorithm::options how{.length = length, .k = 20};
  SET_IF_THERE(how.local_select.tau_prime, 100);
  SET_IF_THERE(how.global_select.tau_prime, 100);
  return how;
}

std::vector<float> copy_of(vector_of<float> const& from) {
  return {from.data(), from.data() + from.extent(0)};
}

template <class Algorithm>
kept train(in_process_communicator comm, int calls) {
  using sgd = oktopk::sgd<Algorithm>;
  kept mine;
  int const me = comm.rank();
  vector_of<float> weights("weights", length);
  Algorithm allreduce(E(), comm, options_of<Algorithm>());
  sgd steps(E(), allreduce, {.learning_rate = rate});
  // Of the step before, too: who has completed it goes back to those who have not.
  std::vector<typename sgd::state_type> states;
  std::vector<std::vector<float>> weights_of;
  fault said = fault::none;
  for (int call = 0; call < calls && said == fault::none; ++call) {
    states.push_back(steps.state());
    weights_of.push_back(copy_of(weights));
    said = outcome_of([&] { steps.step(weights, seeded_accumulator<float>(length, me, call)); }).code;
  }
  if (said == fault::none) {
    return mine; // nobody has died
  }
  CHECK((said == fault::timed_out || said == fault::abandoned));
  in_process_communicator left = comm.survivors();
  auto at = static_cast<std::int64_t>(states.size()) - 1;
  left.allreduce(std::span(&at, 1), oktopk::reduction::min, oktopk::phase::control);
  auto const which = static_cast<std::size_t>(at);
  mine.alive = true;
  mine.resumed_at = at;
  mine.ranks_left = left.size();
  mine.weights_before = weights_of[which];
  mine.residual_before = states[which].residual;
  Algorithm smaller(E(), left, options_of<Algorithm>());
  sgd further(E(), smaller, {.learning_rate = 1});
  further.restore(oktopk::for_other_ranks(states[which]));
  CHECK(smaller.state().iteration == at);
  vector_of<float> const gradient = seeded_accumulator<float>(length, me, 1000);
  mine.gradient = copy_of(gradient);
  for (std::size_t i = 0; i < weights.extent(0); ++i) {
    weights(i) = weights_of[which][i];
  }
  further.step(weights, gradient);
  mine.weights_after = copy_of(weights);
  mine.residual_after = further.state().residual;
  return mine;
}

} // namespace

TEMPLATE_TEST_CASE("after a death the survivors go on with P-1 ranks and lose the dead rank's residual alone", "",
                   (oktopk::ok_topk<E, in_process_communicator>),
                   (oktopk::ok_topk<E, in_process_communicator, reused_policies>),
                   (oktopk::gtopk<E, in_process_communicator>), (oktopk::topk_dsa<E, in_process_communicator>)) {
  // How many messages there are, of a world that ends well.
  oktopk::in_process::simulated_run healthy;
  oktopk::in_process::options how;
  how.simulated = oktopk::in_process::simulation{.seed = 1, .result = &healthy};
  oktopk::in_process::run(
      ranks, [&](in_process_communicator comm) { CHECK_FALSE(train<TestType>(comm, 6).alive); }, how);
  for (int part = 9; part < 12; ++part) { // of the messages: in the middle of one of the last calls
    int const dead = part % ranks;
    std::int64_t const message = healthy.messages[static_cast<std::size_t>(dead)] * part / 12;
    how.simulated = oktopk::in_process::simulation{
        .seed = static_cast<std::uint64_t>(part),
        .faults = {{{.what = oktopk::in_process::injected_fault::death, .rank = dead, .message = message}}}};
    std::vector<kept> all(ranks);
    oktopk::in_process::run(
        ranks,
        [&](in_process_communicator comm) { all[static_cast<std::size_t>(comm.rank())] = train<TestType>(comm, 6); },
        how);
    for (int rank = 0; rank < ranks; ++rank) {
      kept const& one = all[static_cast<std::size_t>(rank)];
      kept const& other = all[static_cast<std::size_t>((dead + 1) % ranks)];
      CHECK(one.alive == (rank != dead));
      if (one.alive) {
        CHECK(one.ranks_left == ranks - 1);
        CHECK(one.resumed_at == other.resumed_at);
        CHECK(one.resumed_at >= 1);
        CHECK(one.weights_before == other.weights_before);
        CHECK(one.weights_after == other.weights_after);
      }
    }
    // What the survivors had and got is in their residuals and in the weights.
    bool moved = false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i) {
      double put_in = 0;
      double left = 0;
      double of_weights = 0;
      for (kept const& one : all) {
        if (one.alive) {
          put_in += one.residual_before[i] + static_cast<double>(rate) * one.gradient[i];
          left += one.residual_after[i];
          of_weights = (static_cast<double>(one.weights_before[i]) - one.weights_after[i]) * (ranks - 1);
        }
      }
      CHECK(left + of_weights == Approx(put_in).margin(1e-4));
      moved = moved || of_weights != 0;
    }
    CHECK(moved);
  }
}

TEST_CASE("a state of an algorithm of the catalogue goes on with other ranks") {
  using any = oktopk::any_allreduce<E, in_process_communicator>;
  auto const make = [](in_process_communicator const& comm) {
    return oktopk::make_allreduce(E(), comm, "ok_topk", {.length = length, .k = 20});
  };
  std::vector<oktopk::sgd<any>::state_type> of_four(4);
  oktopk::in_process::run(4, [&](in_process_communicator comm) {
    any allreduce = make(comm);
    oktopk::sgd steps(E(), allreduce, {.learning_rate = rate});
    vector_of<float> const weights("weights", length);
    steps.step(weights, seeded_accumulator<float>(length, comm.rank(), 0));
    of_four[static_cast<std::size_t>(comm.rank())] = steps.state();
  });
  oktopk::in_process::run(3, [&](in_process_communicator comm) {
    auto const& mine = of_four[static_cast<std::size_t>(comm.rank())];
    any allreduce = make(comm);
    oktopk::sgd steps(E(), allreduce, {.learning_rate = rate});
    CHECK(outcome_of([&] { steps.restore(mine); }).code == fault::bad_state);
    auto const fitting = oktopk::for_other_ranks(mine, allreduce);
    CHECK(fitting.residual == mine.residual);
    steps.restore(fitting);
    vector_of<float> const weights("weights", length);
    CHECK(steps.step(weights, seeded_accumulator<float>(length, comm.rank(), 1)).indices().extent(0) == 20);
    auto damaged = mine.allreduce;
    damaged.checkpoint.pop_back();
    CHECK(outcome_of([&] { oktopk::for_other_ranks(damaged, allreduce); }).code == fault::bad_state);
  });
}

TEST_CASE("a state of buckets goes on with other ranks") {
  using algorithm = oktopk::ok_topk<E, in_process_communicator>;
  std::vector<std::int64_t> const lengths{300, 200, 100};
  oktopk::bucketed_options how;
  how.plan.bucket_bytes = 1000;
  how.plan.densities = {0.1};
  std::vector<oktopk::bucketed<algorithm>::state_type> of_four(4);
  auto const step = [&](oktopk::bucketed<algorithm>& buckets, int rank) {
    for (int tensor = 0; tensor < 3; ++tensor) {
      buckets.ready(tensor, seeded_accumulator<float>(lengths[static_cast<std::size_t>(tensor)], rank, tensor));
    }
    buckets.wait();
  };
  auto const maker = [](in_process_communicator const& comm) {
    return
        [comm](oktopk::bucket const& of) { return algorithm(E(), comm, {.length = of.length, .density = of.density}); };
  };
  oktopk::in_process::run(4, [&](in_process_communicator comm) {
    oktopk::bucketed<algorithm> buckets(E(), comm, lengths, maker(comm), how);
    step(buckets, comm.rank());
    of_four[static_cast<std::size_t>(comm.rank())] = buckets.state();
  });
  oktopk::in_process::run(3, [&](in_process_communicator comm) {
    auto const& mine = of_four[static_cast<std::size_t>(comm.rank())];
    oktopk::bucketed<algorithm> buckets(E(), comm, lengths, maker(comm), how);
    CHECK(outcome_of([&] { buckets.restore(mine); }).code == fault::bad_state);
    buckets.restore(oktopk::for_other_ranks(mine));
    CHECK(buckets.state().residual == mine.residual);
    step(buckets, comm.rank());
  });
}

TEST_CASE("a state with the regions of more ranks is refused as it is, on all ranks") {
  using algorithm = oktopk::ok_topk<E, in_process_communicator>;
  algorithm::state_type of_four;
  oktopk::in_process::run(4, [&](in_process_communicator comm) {
    algorithm allreduce(E(), comm, options_of<algorithm>());
    allreduce(seeded_accumulator<float>(length, comm.rank(), 0));
    if (comm.rank() == 0) {
      of_four = allreduce.state();
    }
  });
  oktopk::in_process::run(3, [&](in_process_communicator comm) {
    algorithm allreduce(E(), comm, options_of<algorithm>());
    CHECK(outcome_of([&] { allreduce.restore(of_four); }).code == fault::bad_state);
    allreduce.restore(oktopk::for_other_ranks(of_four));
    CHECK(allreduce.state().iteration == 1);
    CHECK(allreduce(seeded_accumulator<float>(length, comm.rank(), 1)).indices().extent(0) == 20);
  });
}
