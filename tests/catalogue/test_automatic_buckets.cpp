// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The automatic choice in buckets: each bucket chooses by itself, and loses nothing while it tries schemes.
#include <oktopk/bucketed.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/catalogue/machine_model.hpp>
#include <oktopk/comm/in_process.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

using namespace oktopk;
using E = Kokkos::DefaultHostExecutionSpace;
using scheme = any_allreduce<E>;

constexpr int ranks = 4;
constexpr int steps = 40; // a scheme is on trial for 12 calls at most, however short they are
constexpr std::array<std::int64_t, 2> lengths{256, 20000}; // small and dense, large and sparse
constexpr std::array<double, 2> densities{1, 0.005};

// Small whole numbers, whose sums are exact.
float gradient_at(int rank, int step, int tensor, std::size_t i) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(step * 13 + rank * 5 + tensor)) % 17) - 8.0F;
}

struct seen_step {
  std::string runs;
  std::vector<float> residual; // after the step
  std::vector<float> update;   // dense
};

} // namespace

TEST_CASE("automatic: each bucket chooses by itself, and every step keeps all that was put in", "[automatic]") {
  // A machine that is given and not measured: what is tried does not depend on how busy this one is.
  std::string const file = "automatic_buckets_machine_" + std::to_string(::getpid());
  machine_model machine;
  machine.latency = 200e-6;
  machine.seconds_per_byte = 8e-8; // 100 Mbit/s
  std::ofstream(file) << machine;
  std::vector<std::array<std::vector<seen_step>, 2>> seen(ranks);
  in_process::run(ranks, [&](in_process_communicator comm) {
    auto const make = [&](bucket const& of) {
      std::size_t const which = of.length == lengths[0] ? 0 : 1;
      return make_allreduce(E(), comm, "automatic(recheck=2, machine=" + file + ")",
                            {.length = of.length, .density = densities[which]});
    };
    bucketed_options how;
    how.overlap = false;
    how.plan.bucket_bytes = 1; // a bucket for each tensor
    bucketed<scheme> buckets(E(), comm, lengths, make, how);
    for (int step = 0; step < steps; ++step) {
      for (int tensor = 0; tensor < 2; ++tensor) {
        auto const gradient = buckets.gradient(tensor);
        for (std::size_t i = 0; i < gradient.extent(0); ++i) {
          gradient(i) = gradient_at(comm.rank(), step, tensor, i);
        }
        buckets.ready(tensor);
      }
      buckets.wait();
      for (int b = 0; b < 2; ++b) {
        auto const length = static_cast<std::size_t>(buckets.allreduce(b).length());
        auto const residual = buckets.feedback(b).residual();
        seen_step one{buckets.allreduce(b).explain(), {residual.data(), residual.data() + length}, {}};
        one.runs = one.runs.substr(0, one.runs.find(": "));
        one.update.assign(length, 0.0F);
        auto const& update = buckets.update(b);
        for (std::size_t i = 0; i < update.values().extent(0); ++i) {
          one.update[static_cast<std::size_t>(update.indices()(i))] = update.values()(i);
        }
        std::size_t const tensor = length == static_cast<std::size_t>(lengths[0]) ? 0 : 1;
        seen[static_cast<std::size_t>(comm.rank())][tensor].push_back(one);
      }
    }
  });
  std::remove(file.c_str());
  // The first on trial has the best prediction. For the small bucket that is a dense one; for the large one no dense
  // scheme comes near.
  auto const is_sparse = [](seen_step const& step) { return step.runs.find("topk") != std::string::npos; };
  auto const has_dense_regions = [](seen_step const& step) { return step.runs.find("_or_dense") != std::string::npos; };
  CHECK((!is_sparse(seen[0][0][0]) || has_dense_regions(seen[0][0][0])));
  CHECK(std::all_of(seen[0][1].begin(), seen[0][1].end(), is_sparse));
  for (std::size_t tensor = 0; tensor < 2; ++tensor) {
    std::set<std::string> tried;
    for (std::size_t step = 0; step < steps; ++step) {
      std::int64_t lost = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(lengths[tensor]); ++i) {
        float put_in = 0;
        float left = seen[0][tensor][step].update[i];
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          auto const& mine = seen[rank][tensor];
          put_in += (step > 0 ? mine[step - 1].residual[i] : 0.0F) +
                    gradient_at(static_cast<int>(rank), static_cast<int>(step), static_cast<int>(tensor), i);
          left += mine[step].residual[i];
        }
        lost += put_in != left ? 1 : 0;
      }
      INFO("tensor " << tensor << ", step " << step << ", " << seen[0][tensor][step].runs);
      CHECK(lost == 0);
      for (auto const& rank : seen) {
        CHECK(rank[tensor][step].runs == seen[0][tensor][step].runs);
        CHECK(rank[tensor][step].update == seen[0][tensor][step].update);
      }
      tried.insert(seen[0][tensor][step].runs);
    }
    CHECK(tried.size() > 1); // conservation was tried over a change of the scheme
  }
}
