// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"
#include "support/kokkos_events.hpp"
#include "support/unreachable.hpp"

#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/sgd.hpp>

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
copies copies_of(std::string const& text) {
  copies seen;
  std::unique_ptr<kokkos_events> watcher;
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator near) {
    watched_together const watch{near, watcher};
    far_ranks comm{unreachable(near)};
    execution const exec;
    auto allreduce = oktopk::make_allreduce(exec, comm, text, {.length = length, .density = 0.01});
    oktopk::sgd optimizer(exec, allreduce, {.learning_rate = 0.5});
    Kokkos::View<float*, memory> const weights("test data", length);
    std::vector<Kokkos::View<float*, memory>> gradients;
    for (int step = 0; step < 3; ++step) {
      gradients.push_back(to_view(gradient_of(near.rank(), step)));
    }
    for (int step = 0; step < 2 * steps; ++step) {
      if (step == steps) {
        comm.reset();
        watch.begin();
      }
      optimizer.step(weights, gradients[static_cast<std::size_t>(step % 3)]);
    }
    seen.wire += comm.total().bytes_sent + comm.total().bytes_received;
    watch.end([&](kokkos_event const& event) {
      if (event.what == kokkos_event::deep_copy) {
        seen.bytes += event.bytes;
        seen.largest = std::max(seen.largest, event.bytes);
      }
    });
  });
  return seen;
}

} // namespace

TEST_CASE("dense: the bytes of every copy are seen") {
  copies const seen = copies_of("dense");
  CHECK(seen.largest == dense_bytes);
  CHECK(seen.bytes >= 2 * dense_bytes * ranks * steps); // to the wire and back
}

TEST_CASE("no more bytes are copied than travel, and that is much less than a dense vector") {
  for (char const* const text :
       {"ok_topk(partition=sampled(tau=2))",
        "ok_topk(local=reused(tau_prime=4), global=reused(tau_prime=4), partition=sampled(tau=2))",
        "paper_ok_topk(tau_prime=4, tau=2)", "topk_a", "topk_dsa", "gtopk"}) {
    CAPTURE(text);
    copies const seen = copies_of(text);
    CHECK(seen.bytes > 0); // it is staged
    CHECK(seen.bytes <= static_cast<std::uint64_t>(seen.wire) + numbers_bytes * ranks * steps);
    CHECK(seen.bytes < dense_bytes / 2 * ranks * steps);
    CHECK(seen.largest < dense_bytes / 4);
  }
}
