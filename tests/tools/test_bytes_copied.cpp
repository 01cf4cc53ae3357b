// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"
#include "support/kokkos_events.hpp"
#include "support/policies.hpp"
#include "support/unreachable.hpp"

#include <oktopk/allreduce.hpp>
#include <oktopk/sgd.hpp>

#include <memory>

// What crosses the bus between a device and its host: what goes on the wire, and no dense vector, ever. Over a
// communicator that reaches no memory of kernels this can be counted on a CPU, too.
using namespace oktopk_tests;

namespace {

using far_ranks = oktopk::counted<unreachable<oktopk::in_process_communicator>>;

constexpr int ranks = 4;
constexpr std::size_t length = std::size_t(1) << 18;
constexpr std::uint64_t dense_bytes = 4 * length;

/// Histograms and positions, which kernels and the host of a device tell each other, per rank and step.
constexpr std::uint64_t numbers_bytes = oktopk::detail::is_device<execution> ? std::uint64_t(1) << 17 : 0;

struct copies {
  std::uint64_t bytes = 0;   ///< of all ranks and steps
  std::uint64_t largest = 0; ///< of a single copy
  std::int64_t wire = 0;     ///< bytes sent and received, of all ranks and steps
};

constexpr int steps = 6;

std::vector<float> const& gradient_of(int rank, int step) {
  static std::vector<std::vector<float>> all;
  if (all.empty()) {
    for (int i = 0; i < 3 * ranks; ++i) {
      all.emplace_back(length);
      correlated{9}({i % ranks, ranks, i / ranks}, all.back());
    }
  }
  return all[static_cast<std::size_t>(step % 3 * ranks + rank)];
}

/// The copies of some steps of training, after some others.
template <class Allreduce>
copies copies_of(typename Allreduce::options const& how) {
  copies seen;
  std::unique_ptr<kokkos_events> watcher;
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator near) {
    oktopk::collective_workspace workspace;
    // All ranks run in this one thread: between two of these, nobody does anything else.
    auto const everybody = [&] {
      std::int64_t one = 1;
      oktopk::allreduce_integers(near, std::span(&one, 1), oktopk::reduction::sum, oktopk::phase::control, workspace);
    };
    far_ranks comm{unreachable(near)};
    execution const exec;
    Allreduce allreduce(exec, comm, how);
    oktopk::sgd<Allreduce> optimizer(exec, allreduce, {.learning_rate = 0.5});
    Kokkos::View<float*, memory> const weights("test data", length);
    std::vector<Kokkos::View<float*, memory>> gradients;
    for (int step = 0; step < 3; ++step) {
      gradients.push_back(to_view(gradient_of(near.rank(), step)));
    }
    for (int step = 0; step < 2 * steps; ++step) {
      if (step == steps) {
        comm.reset();
        everybody();
        if (near.rank() == 0) {
          watcher = std::make_unique<kokkos_events>();
        }
        everybody();
      }
      optimizer.step(weights, gradients[static_cast<std::size_t>(step % 3)]);
    }
    seen.wire += comm.total().bytes_sent + comm.total().bytes_received;
    everybody();
    if (near.rank() == 0) {
      for (kokkos_event const& event : watcher->take()) {
        if (event.what == kokkos_event::deep_copy) {
          seen.bytes += event.bytes;
          seen.largest = std::max(seen.largest, event.bytes);
        }
      }
      watcher.reset();
    }
    everybody();
  });
  return seen;
}

/// Only what goes on the wire is copied, and that is much less than a dense vector.
template <class Allreduce>
void check_copies(typename Allreduce::options how) {
  how.length = static_cast<std::int64_t>(length);
  how.k = static_cast<std::int64_t>(length / 100);
  copies const seen = copies_of<Allreduce>(how);
  CHECK(seen.bytes > 0); // it is staged
  CHECK(seen.bytes <= static_cast<std::uint64_t>(seen.wire) + numbers_bytes * ranks * steps);
  CHECK(seen.bytes < dense_bytes / 2 * ranks * steps);
  CHECK(seen.largest < dense_bytes / 4);
}

} // namespace

TEST_CASE("dense: the bytes of every copy are seen") {
  copies const seen = copies_of<oktopk::dense<execution, far_ranks>>({.length = length});
  CHECK(seen.largest == dense_bytes);
  CHECK(seen.bytes >= 2 * dense_bytes * ranks * steps); // to the wire and back
}

TEST_CASE("ok_topk: no more bytes are copied than travel") {
  check_copies<oktopk::ok_topk<execution, far_ranks>>({.partition = {.tau = 2}});
}

TEST_CASE("ok_topk with reused thresholds: no more bytes are copied than travel") {
  using oktopk::reused_threshold;
  check_copies<oktopk::ok_topk<execution, far_ranks, reused_policies>>({.partition = {.tau = 2}});
}

TEST_CASE("paper_ok_topk: no more bytes are copied than travel") {
  check_copies<oktopk::paper_ok_topk<execution, far_ranks>>(
      {.local_select = {.tau_prime = 4}, .global_select = {.tau_prime = 4}});
}

TEST_CASE("topk_a: no more bytes are copied than travel") {
  check_copies<oktopk::topk_a<execution, far_ranks>>({});
}

TEST_CASE("topk_dsa: no more bytes are copied than travel") {
  check_copies<oktopk::topk_dsa<execution, far_ranks>>({});
}

TEST_CASE("gtopk: no more bytes are copied than travel") {
  check_copies<oktopk::gtopk<execution, far_ranks>>({});
}
