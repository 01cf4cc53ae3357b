// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// An optimizer of your own: Adam on averages of a sparse allreduce.
//
// `oktopk::error_feedback` takes the gradient of a rank and gives the sums that all ranks get; the rest of the gradient
// waits in the residual. `average` writes these sums, divided by the number of ranks, into a dense vector, and Adam
// takes it for its gradient. Four ranks in one process minimise a loss whose slopes differ by a factor of 1000 between
// the weights, which plain SGD does not manage. The program fails when a weight is wrong or differs between ranks.

#include <oktopk/allreduce.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/error_feedback.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using space = Kokkos::DefaultExecutionSpace;
using vector = Kokkos::View<float*, space>;

constexpr int features = 200;
constexpr int steps = 1500;

KOKKOS_INLINE_FUNCTION float true_weight(int feature) {
  return static_cast<float>(feature % 7) - 3.0F;
}

/// The gradient of a rank's loss, sum of scale_f (w_f - true_f)^2 / 2. Ranks see the same minimum through other scales.
void compute_gradient(space const& exec, int rank, vector const& weights, vector const& gradient) {
  Kokkos::parallel_for(
      "gradient", Kokkos::RangePolicy<space>(exec, 0, features), KOKKOS_LAMBDA(int f) {
        float const scale = (f % 2 == 0 ? 1.0F : 0.001F) * static_cast<float>(1 + (f + rank) % 3);
        gradient(f) = scale * (weights(f) - true_weight(f));
      });
}

/// Adam (Kingma and Ba, ICLR 2015), Algorithm 1.
class adam {
public:
  explicit adam(float rate) : rate_(rate), mean_("mean", features), square_("square", features) {}

  void step(space const& exec, vector const& weights, vector const& gradient) {
    constexpr float beta_1 = 0.9F;
    constexpr float beta_2 = 0.999F;
    steps_ += 1;
    float const rate = rate_ * std::sqrt(1 - std::pow(beta_2, steps_)) / (1 - std::pow(beta_1, steps_));
    vector const mean = mean_;
    vector const square = square_;
    Kokkos::parallel_for(
        "adam", Kokkos::RangePolicy<space>(exec, 0, features), KOKKOS_LAMBDA(int f) {
          mean(f) = beta_1 * mean(f) + (1 - beta_1) * gradient(f);
          square(f) = beta_2 * square(f) + (1 - beta_2) * gradient(f) * gradient(f);
          weights(f) -= rate * mean(f) / (std::sqrt(square(f)) + 1e-8F);
        });
  }

private:
  float rate_;
  float steps_ = 0;
  vector mean_;
  vector square_;
};

/// Trains on one rank; gives the largest error of a weight.
double train(oktopk::in_process_communicator const& comm) {
  space const exec;
  vector const weights("weights", features);
  vector const gradient("gradient", features);
  vector const average("average", features);

  oktopk::ok_topk allreduce(exec, comm, {.length = features, .density = 0.1});
  oktopk::error_feedback feedback(allreduce);
  adam optimizer(0.05F);
  for (int step = 0; step < steps; ++step) {
    compute_gradient(exec, comm.rank(), weights, gradient);
    auto const& update = feedback(gradient); // collective: residual + gradient in, sums of all ranks out
    feedback.average(update, average);       // update / P, and 0 where there is none
    optimizer.step(exec, weights, average);
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
    right = right && error == errors[0] && error < 0.05; // the same bits on all ranks
  }
  std::printf("largest error of a weight after %d steps of Adam: %g\n", steps, errors[0]);
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
