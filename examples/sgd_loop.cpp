// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Training with `oktopk::sgd` (Algorithm 2 of the paper): four ranks in one process fit a linear model by least
// squares.
//
// Each rank has its own samples. In each step it computes the gradient of its own loss, and `sgd` does the rest: it
// adds the residual, exchanges about 5 % of the entries and moves the weights. The weights stay the same on all ranks.
// The program fails when the weights do not come near the true ones.

#include <oktopk/allreduce.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/sgd.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using space = Kokkos::DefaultExecutionSpace;
using vector = Kokkos::View<float*, space>;
using matrix = Kokkos::View<float**, space>;

constexpr int features = 200;
constexpr int samples = 400; // of each rank
constexpr int steps = 600;

/// The model that made the samples.
KOKKOS_INLINE_FUNCTION float true_weight(int feature) {
  return static_cast<float>(feature % 7) - 3.0F;
}

/// A number in [-1, 1) that looks random and is the same in every run.
KOKKOS_INLINE_FUNCTION float noise(std::uint32_t number) {
  number = (number ^ (number >> 16)) * 0x45d9f3bU;
  number = (number ^ (number >> 16)) * 0x45d9f3bU;
  return static_cast<float>((number ^ (number >> 16)) & 0xffffU) / 32768.0F - 1.0F;
}

void draw_samples(space const& exec, int rank, matrix const& inputs, vector const& outputs) {
  Kokkos::parallel_for(
      "samples", Kokkos::RangePolicy<space>(exec, 0, samples), KOKKOS_LAMBDA(int s) {
        outputs(s) = 0;
        for (int f = 0; f < features; ++f) {
          inputs(s, f) = noise(static_cast<std::uint32_t>((rank * samples + s) * features + f));
          outputs(s) += true_weight(f) * inputs(s, f);
        }
      });
}

/// The gradient of the mean of (prediction - output)^2 / 2 over this rank's samples.
void compute_gradient(space const& exec, matrix const& inputs, vector const& outputs, vector const& weights,
                      vector const& errors, vector const& gradient) {
  Kokkos::parallel_for(
      "errors", Kokkos::RangePolicy<space>(exec, 0, samples), KOKKOS_LAMBDA(int s) {
        errors(s) = -outputs(s);
        for (int f = 0; f < features; ++f) {
          errors(s) += weights(f) * inputs(s, f);
        }
      });
  Kokkos::parallel_for(
      "gradient", Kokkos::RangePolicy<space>(exec, 0, features), KOKKOS_LAMBDA(int f) {
        gradient(f) = 0;
        for (int s = 0; s < samples; ++s) {
          gradient(f) += errors(s) * inputs(s, f) / samples;
        }
      });
}

/// Trains on one rank; gives the largest error of a weight.
double train(oktopk::in_process_communicator const& comm) {
  space const exec;
  matrix const inputs("inputs", samples, features);
  vector const outputs("outputs", samples);
  vector const errors("errors", samples);
  vector const weights("weights", features); // zero, and the same on all ranks
  vector const gradient("gradient", features);
  draw_samples(exec, comm.rank(), inputs, outputs);

  auto const length = static_cast<std::int64_t>(weights.extent(0)); // extents have no sign, and braces do not narrow
  oktopk::ok_topk allreduce(exec, comm, {.length = length, .density = 0.05});
  oktopk::sgd optimizer(exec, allreduce, {.learning_rate = 0.2});
  for (int step = 0; step < steps; ++step) {
    compute_gradient(exec, inputs, outputs, weights, errors, gradient);
    optimizer.step(weights, gradient); // collective
  }

  auto const trained = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), weights);
  double largest = 0;
  for (int f = 0; f < features; ++f) {
    largest = std::fmax(largest, std::fabs(static_cast<double>(trained(f) - true_weight(f))));
  }
  return largest;
}

} // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos(argc, argv);
  std::vector<double> errors(4);
  oktopk::in_process::run(
      4, [&](oktopk::in_process_communicator comm) { errors[static_cast<std::size_t>(comm.rank())] = train(comm); });
  bool right = true;
  for (double const error : errors) {
    right = right && error == errors[0] && error < 1e-3; // the same bits on all ranks
  }
  std::printf("largest error of a weight after %d steps: %g\n", steps, errors[0]);
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
