// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "sgd/gradients.hpp"
#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"
#include "support/kokkos_events.hpp"

#include <oktopk/sgd.hpp>

#include <fstream>

#if defined(__GLIBC__)
#include <malloc.h>
#include <unistd.h>
#endif

using namespace oktopk_tests;
using oktopk::in_process_communicator;

namespace {

constexpr int unknowns = 400;
constexpr int rows = 60; // of each rank; fewer than the unknowns

/// A least-squares problem shared out over the ranks, with columns of uneven weight and noise in the right-hand side.
struct problem {
  explicit problem(int rank) : matrix(static_cast<std::size_t>(rows * unknowns)), wanted(rows) {
    auto const r = static_cast<std::uint64_t>(rank);
    for (std::size_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < unknowns; ++j) {
        double const weight = j % 5 == 0 ? 1.0 : 0.3;
        double const x = weight * (2 * fraction(noise(51, r, i, j)) - 1);
        matrix[i * unknowns + j] = static_cast<float>(x);
        sum += x * (2 * fraction(noise(52, j)) - 1);
      }
      wanted[i] = static_cast<float>(sum + 0.2 * (2 * fraction(noise(53, r, i)) - 1));
    }
  }

  /// The gradient of the mean squared error, and the error itself.
  double gradient(std::vector<float> const& weights, std::vector<float>& slope) const {
    slope.assign(unknowns, 0);
    double error = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      float const* const row = &matrix[i * unknowns];
      float difference = -wanted[i];
      for (std::size_t j = 0; j < unknowns; ++j) {
        difference += row[j] * weights[j];
      }
      error += static_cast<double>(difference) * static_cast<double>(difference) / rows;
      for (std::size_t j = 0; j < unknowns; ++j) {
        slope[j] += 2 * difference * row[j] / static_cast<float>(rows);
      }
    }
    return error;
  }

  std::vector<float> matrix;
  std::vector<float> wanted;
};

/// Mean squared error over all ranks before the first step and after the last.
std::vector<double> train(int ranks, int steps, std::string const& text) {
  std::vector<double> errors(2, 0);
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    problem const mine(comm.rank());
    any allreduce = over(comm, text, {.length = unknowns});
    oktopk::sgd optimizer(execution(), allreduce, {.learning_rate = 0.02});
    auto const weights = to_view(std::vector<float>(unknowns));
    std::vector<float> slope;
    for (int step = 0; step <= steps; ++step) {
      double const error = mine.gradient(to_vector(weights), slope);
      if (step == 0 || step == steps) {
        errors[step == 0 ? 0 : 1] += error / ranks;
      }
      if (step < steps) {
        optimizer.step(weights, Kokkos::View<float const*, memory>(to_view(slope)));
      }
    }
  });
  return errors;
}

#ifdef __has_feature
#define OKTOPK_TESTS_HAS_FEATURE(name) __has_feature(name)
#else
#define OKTOPK_TESTS_HAS_FEATURE(name) 0
#endif

/// Bytes of the heap in use, and of the process in memory; zero where the system does not say.
struct memory_in_use {
  std::size_t heap = 0;
  std::size_t resident = 0;

  static memory_in_use now() {
    memory_in_use use;
#if defined(__SANITIZE_ADDRESS__) || OKTOPK_TESTS_HAS_FEATURE(address_sanitizer)
    // It keeps what was freed, 256 MB of it, and tells of leaks itself: nothing to measure.
#elif defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    auto const heap = mallinfo2();
    use.heap = heap.uordblks + heap.hblkhd;
    std::ifstream statm("/proc/self/statm");
    std::size_t pages = 0;
    if (statm >> pages >> pages) {
      use.resident = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    }
#endif
    return use;
  }
};

} // namespace

TEST_CASE("training with one entry in twenty ends near where dense training ends") {
  auto const full = train(4, 1500, "dense");
  auto const sparse = train(4, 1500, "ok_topk(density=0.05)");
  CAPTURE(full[0], full[1], sparse[1]);
  CHECK(sparse[0] == full[0]);
  CHECK(full[1] < 0.01 * full[0]);
  CHECK(sparse[1] < full[1] + 0.01 * full[0]);
}

TEST_CASE("10,000 iterations on 4 ranks without growth of memory") {
  constexpr int ranks = 4;
  constexpr int iterations = 10000;
  constexpr int settled = 2000;
  constexpr std::size_t length = 2000;
  memory_in_use before;
  memory_in_use after;
  std::size_t allocations = 0;
  std::unique_ptr<kokkos_events> watcher;
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    std::vector<Kokkos::View<float const*, memory>> gradients;
    for (int i = 0; i < 7; ++i) {
      std::vector<float> gradient(length);
      whole_numbers{static_cast<std::uint64_t>(60 + i)}({comm.rank(), ranks, 0}, gradient);
      gradients.emplace_back(to_view(gradient));
    }
    any allreduce = over(comm, "ok_topk", {.length = length, .k = 40});
    oktopk::sgd optimizer(execution(), allreduce, {.learning_rate = 0.01});
    Kokkos::View<float*, memory> const weights("test data", length);
    for (int iteration = 0; iteration < iterations; ++iteration) {
      if (comm.rank() == 0 && iteration == settled) {
        before = memory_in_use::now();
      }
      if (comm.rank() == 0 && iteration == iterations - 100) { // the log of a hundred iterations does not count
        after = memory_in_use::now();
        watcher = std::make_unique<kokkos_events>();
      }
      optimizer.step(weights, gradients[static_cast<std::size_t>(iteration) % gradients.size()]);
    }
    if (watcher != nullptr) {
      for (auto const& event : watcher->take()) {
        allocations += event.what == kokkos_event::allocation ? 1 : 0;
      }
      watcher.reset();
    }
  });
  CAPTURE(before.heap, after.heap, before.resident, after.resident);
  CHECK(allocations == 0);
  // Room for what the run-time library does on its own; one word lost per call would be more.
  CHECK(after.heap <= before.heap + 16384);
  CHECK(after.resident <= before.resident + (1 << 20));
}
