// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"
#include "support/policies.hpp"
#include "support/reference.hpp"

#include <oktopk/allreduce.hpp>
#include <oktopk/sgd.hpp>

// Algorithm 2, step by step. Gradients are whole numbers and rates powers of two, so that nothing rounds.
using namespace oktopk_tests;
using oktopk::in_process_communicator;

namespace {

constexpr std::size_t length = 150;

std::vector<float> gradient_of(int rank, int iteration) {
  std::vector<float> gradient(length);
  whole_numbers{41}({rank, 1, iteration}, gradient);
  return gradient;
}

double rate_at(int iteration) {
  return iteration < 6 ? 0.5 : 0.125;
}

/// Algorithm 2 with Topk(sum of Topk), for all ranks at once.
struct sequential_sgd {
  explicit sequential_sgd(int ranks, std::int64_t most)
      : residual(static_cast<std::size_t>(ranks), std::vector<float>(length)), weights(length, 1.0F), k(most) {}

  void step(int iteration) {
    std::vector<sparse_vector<float>> chosen;
    std::vector<float> sums(length);
    std::vector<bool> touched(length);
    for (std::size_t rank = 0; rank < residual.size(); ++rank) {
      auto const gradient = gradient_of(static_cast<int>(rank), iteration);
      for (std::size_t i = 0; i < length; ++i) {
        residual[rank][i] += static_cast<float>(rate_at(iteration)) * gradient[i];
      }
      chosen.push_back(top(all_entries(residual[rank]), k));
      for (std::size_t i = 0; i < chosen.back().indices.size(); ++i) {
        auto const index = static_cast<std::size_t>(chosen.back().indices[i]);
        sums[index] += chosen.back().values[i];
        touched[index] = true;
      }
    }
    sparse_vector<float> candidates;
    for (std::size_t i = 0; i < length; ++i) {
      if (touched[i]) {
        candidates.push_back(static_cast<std::int64_t>(i), sums[i]);
      }
    }
    auto const update = top(candidates, k);
    for (std::size_t i = 0; i < update.indices.size(); ++i) {
      auto const index = static_cast<std::size_t>(update.indices[i]);
      weights[index] -= update.values[i] / static_cast<float>(residual.size());
      for (std::size_t rank = 0; rank < residual.size(); ++rank) {
        auto const& mine = chosen[rank].indices;
        if (std::find(mine.begin(), mine.end(), update.indices[i]) != mine.end()) {
          residual[rank][index] = 0;
        }
      }
    }
  }

  std::vector<std::vector<float>> residual;
  std::vector<float> weights;
  std::int64_t k;
};

using exact_ok_topk =
    oktopk::ok_topk<execution, in_process_communicator, policies_of<oktopk::coo<>, oktopk::exact, oktopk::exact>>;

/// Steps over any algorithm, each held against the update that it says it made.
template <class Allreduce>
void check_steps(int ranks, typename Allreduce::options const& how) {
  CAPTURE(ranks);
  std::vector<std::vector<float>> weights_of(static_cast<std::size_t>(ranks));
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    Allreduce allreduce(execution(), comm, how);
    oktopk::sgd<Allreduce> optimizer(execution(), allreduce, {.learning_rate = rate_at(0)});
    auto const weights = to_view(std::vector<float>(length, 1.0F));
    for (int iteration = 0; iteration < 12; ++iteration) {
      optimizer.set_learning_rate(rate_at(iteration));
      auto const weights_before = to_vector(weights);
      auto expected = to_vector(optimizer.residual());
      auto const gradient = gradient_of(comm.rank(), iteration);
      for (std::size_t i = 0; i < length; ++i) {
        expected[i] += static_cast<float>(rate_at(iteration)) * gradient[i];
      }
      std::vector<float> handed_over;
      optimizer.before_allreduce([&](auto const& accumulator) { handed_over = to_vector(accumulator); });
      auto const& update = optimizer.step(weights, Kokkos::View<float const*, memory>(to_view(gradient)));
      CHECK(handed_over == expected);
      for (auto const index : to_vector(update.contributed())) {
        expected[static_cast<std::size_t>(index)] = 0;
      }
      CHECK(to_vector(optimizer.residual()) == expected);
      auto expected_weights = weights_before;
      auto const indices = to_vector(update.indices());
      auto const values = to_vector(update.values());
      for (std::size_t i = 0; i < indices.size(); ++i) {
        expected_weights[static_cast<std::size_t>(indices[i])] -= values[i] / static_cast<float>(ranks);
      }
      CHECK(to_vector(weights) == expected_weights);
      CHECK(expected_weights != weights_before);
    }
    weights_of[static_cast<std::size_t>(comm.rank())] = to_vector(weights);
  });
  for (auto const& weights : weights_of) {
    CHECK(bits(weights) == bits(weights_of[0]));
  }
}

} // namespace

TEST_CASE("sgd over exact ok_topk is the sequential Algorithm 2, with a rate that changes") {
  for (int const ranks : {1, 2, 3, 4, 8}) {
    CAPTURE(ranks);
    sequential_sgd reference(ranks, 12);
    std::vector<sequential_sgd> after;
    for (int iteration = 0; iteration < 15; ++iteration) {
      reference.step(iteration);
      after.push_back(reference);
    }
    oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
      exact_ok_topk allreduce(execution(), comm, {.length = length, .k = 12});
      oktopk::sgd<exact_ok_topk> optimizer(execution(), allreduce, {.learning_rate = rate_at(0)});
      auto const weights = to_view(std::vector<float>(length, 1.0F));
      for (int iteration = 0; iteration < 15; ++iteration) {
        optimizer.set_learning_rate(rate_at(iteration));
        optimizer.step(weights, Kokkos::View<float const*, memory>(to_view(gradient_of(comm.rank(), iteration))));
        auto const& expected = after[static_cast<std::size_t>(iteration)];
        CHECK(to_vector(weights) == expected.weights);
        CHECK(to_vector(optimizer.residual()) == expected.residual[static_cast<std::size_t>(comm.rank())]);
      }
    });
  }
}

TEMPLATE_TEST_CASE("looking at the accumulator changes nothing", "", oktopk::exact, oktopk::reused_threshold) {
  // Without a look the accumulator is formed while it is selected from.
  using scheme = oktopk::ok_topk<execution, in_process_communicator, policies_of<oktopk::coo<>, TestType>>;
  for (int const ranks : {1, 3}) {
    for (std::int64_t const k : {0, 30, 1500}) {
      CAPTURE(ranks, k);
      std::string trace;
      oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
        constexpr std::size_t long_one = 3000;
        typename scheme::options how;
        how.length = long_one;
        how.k = k;
        SET_IF_THERE(how.local_select.tau_prime, 4);
        scheme watched_allreduce(execution(), comm, how);
        scheme plain_allreduce(execution(), comm, how);
        oktopk::sgd<scheme> watched(execution(), watched_allreduce, {.learning_rate = 0.1});
        oktopk::sgd<scheme> plain(execution(), plain_allreduce, {.learning_rate = 0.1});
        watched.before_allreduce([](auto const&) {});
        auto const watched_weights = to_view(std::vector<float>(long_one, 1.0F));
        auto const plain_weights = to_view(std::vector<float>(long_one, 1.0F));
        for (int iteration = 0; iteration < 20; ++iteration) {
          std::vector<float> gradient(long_one);
          correlated{47, 11}({comm.rank(), ranks, iteration}, gradient);
          Kokkos::View<float const*, memory> const input = to_view(gradient);
          watched.step(watched_weights, input);
          plain.step(plain_weights, input);
          if (bits(to_vector(watched_weights)) != bits(to_vector(plain_weights)) ||
              bits(to_vector(watched.residual())) != bits(to_vector(plain.residual()))) {
            trace = "they part in iteration " + std::to_string(iteration);
          }
        }
      });
      CHECK(trace == "");
    }
  }
}

TEST_CASE("sgd works over ok_topk") {
  using scheme = oktopk::ok_topk<execution, in_process_communicator>;
  for (int const ranks : {1, 4}) {
    check_steps<scheme>(ranks, {.length = length, .k = 12, .partition = {.tau = 5}});
  }
}

TEST_CASE("sgd works over paper_ok_topk") {
  using scheme = oktopk::paper_ok_topk<execution, in_process_communicator>;
  check_steps<scheme>(3, {.length = length, .k = 12, .partition = {.tau = 5}});
}

TEST_CASE("sgd works over dense") {
  check_steps<oktopk::dense<execution, in_process_communicator>>(4, {.length = length});
}

TEST_CASE("sgd over dense is plain SGD on the mean gradient") {
  using scheme = oktopk::dense<execution, in_process_communicator>;
  for (int const ranks : {1, 3, 4}) {
    CAPTURE(ranks);
    std::vector<double> expected(length, 1.0);
    std::vector<float> found;
    oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
      scheme allreduce(execution(), comm, {.length = length});
      oktopk::sgd<scheme> optimizer(execution(), allreduce, {.learning_rate = 0.3});
      auto const weights = to_view(std::vector<float>(length, 1.0F));
      for (int iteration = 0; iteration < 20; ++iteration) {
        optimizer.step(weights, Kokkos::View<float const*, memory>(to_view(gradient_of(comm.rank(), iteration))));
        if (comm.rank() == 0) {
          for (int rank = 0; rank < ranks; ++rank) {
            auto const gradient = gradient_of(rank, iteration);
            for (std::size_t i = 0; i < length; ++i) {
              expected[i] -= 0.3 * static_cast<double>(gradient[i]) / ranks;
            }
          }
        }
        CHECK(to_vector(optimizer.residual()) == std::vector<float>(length, 0.0F)); // nothing is ever left over
      }
      found = to_vector(weights);
    });
    for (std::size_t i = 0; i < length; ++i) {
      CHECK(std::fabs(static_cast<double>(found[i]) - expected[i]) <= 1e-5 * (1000 + std::fabs(expected[i])));
    }
  }
}
