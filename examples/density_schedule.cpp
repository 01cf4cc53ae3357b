// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A density schedule, with figures of every stage: training starts with a quarter of the gradient and ends with 1 %, as
// in Deep Gradient Compression (Lin et al., ICLR 2018).
//
// `set_k` changes k between two calls; residual, thresholds and regions go on, so nothing is lost. `last_call` tells
// how a call went, and `counted` counts the words that a rank has sent. The program fails when entries are lost, or
// when a stage sends more than its bound.

#include <oktopk/allreduce.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/error_feedback.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using space = Kokkos::DefaultExecutionSpace;
using vector = Kokkos::View<float*, space>;
using counted = oktopk::counted<oktopk::in_process_communicator>;

constexpr int ranks = 4;
constexpr int length = 20'000;
constexpr int steps_of_a_stage = 10;

/// Large where the ranks agree, and some noise of each rank's own.
void compute_gradient(space const& exec, int rank, int step, vector const& gradient) {
  Kokkos::parallel_for(
      "gradient", Kokkos::RangePolicy<space>(exec, 0, length), KOKKOS_LAMBDA(int i) {
        int const noise = (i * 7919 + rank * 104729 + step * 1299709) % 1000;
        gradient(i) = 1.0F / static_cast<float>(1 + (i + step) % 500) + 0.0001F * static_cast<float>(noise - 500);
      });
}

double sum_of(vector const& values) {
  auto const on_host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), values);
  double sum = 0;
  for (std::size_t i = 0; i < on_host.extent(0); ++i) {
    sum += static_cast<double>(on_host(i));
  }
  return sum;
}

/// One rank's part of the training; adds what went in and what came out, and tells whether every bound held.
bool train(oktopk::in_process_communicator const& ranks_of_process, double& went_in, double& came_out) {
  space const exec;
  counted comm(ranks_of_process);
  vector const gradient("gradient", length);
  vector const average("average", length);
  bool within_bounds = true;

  oktopk::ok_topk allreduce(exec, comm, {.length = length, .density = 0.25});
  oktopk::error_feedback feedback(allreduce);
  int step = 0;
  for (double const density : {0.25, 0.0625, 0.015625, 0.01}) {
    allreduce.set_k(std::lround(density * length)); // collective
    for (int i = 0; i < steps_of_a_stage; ++i, ++step) {
      compute_gradient(exec, comm.rank(), step, gradient);
      comm.reset();
      feedback.average(feedback(gradient), average);
      went_in += sum_of(gradient);
      came_out += sum_of(average);
      within_bounds = within_bounds && comm.total().words_sent() <= allreduce.bound_words();
    }
    if (comm.rank() == 0) {
      auto const& last = allreduce.last_call();
      std::printf(
          "step %2d: k = %4lld, %5lld entries in the update, %6.0f words sent (bound %.0f), %.2f ms in selection\n",
          step, static_cast<long long>(allreduce.k()), static_cast<long long>(last.global_selected),
          comm.total().words_sent(), allreduce.bound_words(), 1000 * last.select_seconds);
    }
  }
  auto const residual = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), feedback.residual());
  for (std::size_t i = 0; i < residual.extent(0); ++i) {
    came_out += static_cast<double>(residual(i));
  }
  return within_bounds;
}

} // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos(argc, argv);
  double went_in = 0;
  double came_out = 0;
  bool right = true;
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
    right = train(comm, went_in, came_out) && right; // ranks of a process take turns on one thread
  });
  std::printf("sum of all gradients %.4f, of all averages and residuals %.4f\n", went_in, came_out);
  right = right && std::fabs(went_in - came_out) < 1e-3 * std::fabs(went_in);
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
