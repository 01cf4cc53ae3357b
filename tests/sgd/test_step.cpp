// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"
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
      oktopk::ok_topk allreduce(execution(), comm, {.length = length, .k = 12});
      oktopk::sgd optimizer(execution(), allreduce, {.learning_rate = rate_at(0)});
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
