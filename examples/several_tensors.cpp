// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A network of several tensors: all parameters lie in one flat vector, and each tensor is a view of its part.
//
// One call for the whole network is faster than one a tensor: the k entries go where they are large, small tensors cost
// no messages of their own, and the control words are sent once. Four ranks in one process train a network of four
// tensors to tell whether a point lies in a ring. The program fails when it does not learn to.

#include <oktopk/allreduce.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/sgd.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using space = Kokkos::DefaultHostExecutionSpace; // the loops over samples below run on the host
using vector = Kokkos::View<float*, space>;
using matrix = Kokkos::View<float**, Kokkos::LayoutRight, space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

constexpr int hidden = 32;
constexpr int samples = 200; // of each rank
constexpr int steps = 1500;

/// The tensors of the network, one after the other in a flat vector that must outlive them.
struct tensors {
  static constexpr int length = hidden * 2 + hidden + hidden + 1;
  matrix first;      // hidden x 2
  matrix first_bias; // hidden x 1
  matrix second;     // 1 x hidden
  matrix second_bias;

  explicit tensors(vector const& flat)
      : first(flat.data(), hidden, 2), first_bias(first.data() + first.size(), hidden, 1),
        second(first_bias.data() + first_bias.size(), 1, hidden), second_bias(second.data() + second.size(), 1, 1) {}
};

/// Forward and backward pass over a rank's samples: the mean gradient goes into `gradient`; gives the share of samples
/// that the network has right.
double compute_gradient(int rank, tensors const& weights, vector const& flat_gradient) {
  Kokkos::deep_copy(flat_gradient, 0.0F);
  tensors const gradient(flat_gradient);
  int right = 0;
  for (int s = 0; s < samples; ++s) {
    float const angle = 2.4F * static_cast<float>(s * 4 + rank);
    float const radius = 1.5F * std::sqrt((static_cast<float>(s) + 0.5F) / samples);
    float const x[2] = {radius * std::cos(angle), radius * std::sin(angle)};
    float const wanted = radius > 0.6F && radius < 1.2F ? 1.0F : 0.0F;
    float active[hidden];
    float sum = weights.second_bias(0, 0);
    for (int h = 0; h < hidden; ++h) {
      active[h] = std::tanh(weights.first(h, 0) * x[0] + weights.first(h, 1) * x[1] + weights.first_bias(h, 0));
      sum += weights.second(0, h) * active[h];
    }
    float const found = 1.0F / (1.0F + std::exp(-sum));
    right += (found > 0.5F) == (wanted > 0.5F) ? 1 : 0;
    float const slope = (found - wanted) / samples; // of the cross-entropy
    gradient.second_bias(0, 0) += slope;
    for (int h = 0; h < hidden; ++h) {
      gradient.second(0, h) += slope * active[h];
      float const inner = slope * weights.second(0, h) * (1 - active[h] * active[h]);
      gradient.first_bias(h, 0) += inner;
      gradient.first(h, 0) += inner * x[0];
      gradient.first(h, 1) += inner * x[1];
    }
  }
  return static_cast<double>(right) / samples;
}

/// Trains on one rank; gives the share of its samples that the network has right in the end.
double train(oktopk::in_process_communicator const& comm) {
  vector const flat_weights("weights", tensors::length);
  vector const flat_gradient("gradient", tensors::length);
  tensors const weights(flat_weights);
  for (int h = 0; h < hidden; ++h) { // the same on all ranks
    auto const turn = static_cast<float>(h);
    weights.first(h, 0) = 2.0F * std::cos(turn);
    weights.first(h, 1) = 2.0F * std::sin(turn);
    weights.first_bias(h, 0) = 0.1F * turn - 1.6F;
    weights.second(0, h) = h % 2 == 0 ? 0.3F : -0.3F;
  }

  oktopk::ok_topk allreduce(space(), comm, {.length = tensors::length, .density = 0.1});
  oktopk::sgd optimizer(allreduce, {.learning_rate = 1.0});
  double right = 0;
  for (int step = 0; step < steps; ++step) {
    right = compute_gradient(comm.rank(), weights, flat_gradient);
    optimizer.step(flat_weights, flat_gradient); // one call for all tensors
  }
  return right;
}

} // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos(argc, argv);
  std::vector<double> right(4);
  oktopk::in_process::run(
      4, [&](oktopk::in_process_communicator comm) { right[static_cast<std::size_t>(comm.rank())] = train(comm); });
  bool learned = true;
  for (double const share : right) {
    learned = learned && share > 0.9;
  }
  std::printf("%.1f %% of the samples of rank 0 are right after %d steps\n", 100 * right[0], steps);
  return learned ? EXIT_SUCCESS : EXIT_FAILURE;
}
