// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Saving a training and going on with it: on as many ranks as before, on fewer, and on more.
//
// Four ranks in one process train for a while and save. Others load what was saved and go on. The program fails when
// four ranks do not go on with the same bits, when 3 or 6 ranks lose something that was held back, or when a file that
// is missing is not the same error on every rank.

#include <oktopk/algorithm/concept.hpp>
#include <oktopk/allreduce.hpp>
#include <oktopk/comm/agreement.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

namespace {

/// Each rank writes a file of its own. Collective, between two steps. Where it fails on one rank, what was saved before is
/// still there on all.
template <class Optimizer, oktopk::communicator Comm>
void save_state(Optimizer const& optimizer, Comm comm, std::string const& name) {
  std::string const own = name + "." + std::to_string(comm.rank());
  oktopk::agreement written("save_state");
  try {
    std::ofstream file(own + ".new", std::ios::binary);
    oktopk::save(file, optimizer.state()); // throws where the disk is full
    file.close();                          // some file systems say it only here
    if (!file) {
      throw oktopk::error(oktopk::fault::bad_file, "the disk does not take the state");
    }
  } catch (std::exception const& failed) {
    written.note(oktopk::fault::bad_file, failed.what());
  }
  written.check_on(comm); // one rank's fault is the same error on all ranks
  oktopk::agreement renamed("save_state");
  std::error_code failed;
  std::filesystem::rename(own + ".new", own, failed);
  renamed.note(oktopk::fault::bad_file, failed ? failed.message() : "");
  renamed.check_on(comm);
}

/// Goes on from the files that `saved_by` ranks have written. Collective, before the first step.
template <class Optimizer, oktopk::communicator Comm>
void load_state(Optimizer& optimizer, Comm comm, std::string const& name, int saved_by) {
  using state_type = typename Optimizer::state_type;
  using value_type = typename Optimizer::value_type;
  auto const saved_state = [&](int rank) {
    std::ifstream file(name + "." + std::to_string(rank), std::ios::binary);
    return oktopk::load<state_type>(file);
  };
  state_type state;
  oktopk::agreement outcome("load_state");
  try {
    state = saved_state(comm.rank() < saved_by ? comm.rank() : 0);
    if (comm.rank() >= saved_by) { // more ranks than files: all of rank 0's state but what is a rank's own
      std::fill(state.residual.begin(), state.residual.end(), 0);
      std::fill(state.velocity.begin(), state.velocity.end(), 0);
    }
    for (int rank = comm.rank() + comm.size(); rank < saved_by; rank += comm.size()) { // fewer ranks than files
      state_type const other = saved_state(rank);
      for (std::size_t i = 0; i < other.residual.size(); ++i) {
        state.residual.at(i) += other.residual[i];
      }
    }
    if (comm.size() != saved_by) {
      for (auto& value : state.residual) { // the weights move by update / P, and this P is another one
        value *= static_cast<value_type>(comm.size()) / static_cast<value_type>(saved_by);
      }
      state = oktopk::for_other_ranks(state);
    }
  } catch (std::exception const& failed) {
    outcome.note(oktopk::fault::bad_file, failed.what());
  }
  outcome.check_on(comm); // else the others would wait in `restore` for a rank whose file is bad
  optimizer.restore(state);
}

using space = Kokkos::DefaultExecutionSpace;
using vector = Kokkos::View<float*, space>;

constexpr int length = 1000;
std::string const folder = "restart_example";

/// What a rank has at an end of its program.
struct outcome {
  std::vector<float> weights = std::vector<float>(length);
  std::vector<float> residual_at_start;
  std::vector<float> residual;
  std::string error;
};

/// The gradient of (weights - target)^2 / 2, of another size on each rank.
void compute_gradient(space const& exec, vector const& weights, int rank, vector const& gradient) {
  float const size = 1.0F + 0.1F * static_cast<float>(rank);
  Kokkos::parallel_for(
      "gradient", Kokkos::RangePolicy<space>(exec, 0, length),
      KOKKOS_LAMBDA(int i) { gradient(i) = size * (weights(i) - static_cast<float>(i % 10)); });
}

/// Trains from some weights, and from the files of `loaded` ranks unless there are none; saves in the end if asked to.
outcome train(oktopk::in_process_communicator const& comm, std::vector<float> const& from, int loaded, int steps,
              bool save) {
  space const exec;
  outcome mine;
  vector const weights("weights", length);
  vector const gradient("gradient", length);
  Kokkos::View<float const*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>> const start(from.data(),
                                                                                                     length);
  Kokkos::deep_copy(weights, start);
  oktopk::ok_topk allreduce(exec, comm, {.length = length, .density = 0.05});
  oktopk::sgd optimizer(exec, allreduce, {.learning_rate = 0.02});
  try {
    if (loaded > 0) {
      load_state(optimizer, comm, folder + "/state", loaded);
    }
    mine.residual_at_start = optimizer.state().residual;
    for (int step = 0; step < steps; ++step) {
      compute_gradient(exec, weights, comm.rank(), gradient);
      optimizer.step(weights, gradient);
    }
    if (save) {
      save_state(optimizer, comm, folder + "/state");
    }
  } catch (oktopk::error const& caught) {
    mine.error = caught.what();
  }
  mine.residual = optimizer.state().residual;
  Kokkos::deep_copy(
      Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(mine.weights.data(), length),
      weights);
  return mine;
}

std::vector<outcome> train_on(int ranks, std::vector<float> const& from, int loaded, int steps, bool save = false) {
  std::vector<outcome> all(static_cast<std::size_t>(ranks));
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
    all[static_cast<std::size_t>(comm.rank())] = train(comm, from, loaded, steps, save);
  });
  return all;
}

/// How far what all ranks hold back would move a weight.
double held_back(std::vector<outcome> const& all, std::vector<float> outcome::*residual, std::size_t i) {
  double sum = 0;
  for (outcome const& each : all) {
    sum += (each.*residual)[i];
  }
  return sum / static_cast<double>(all.size());
}

double largest_error(std::vector<float> const& weights) {
  double largest = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    largest = std::fmax(largest, std::fabs(weights[i] - static_cast<double>(i % 10)));
  }
  return largest;
}

/// Whether nothing is lost from 4 ranks to so many, and the training comes to its end there.
bool goes_on_with(int ranks, std::vector<outcome> const& before) {
  auto const after = train_on(ranks, before[0].weights, 4, 1000);
  bool right = true;
  for (std::size_t i = 0; i < length; ++i) {
    right = right && std::fabs(held_back(before, &outcome::residual, i) -
                               held_back(after, &outcome::residual_at_start, i)) < 1e-5;
  }
  for (outcome const& each : after) {
    right = right && each.error.empty() && each.weights == after[0].weights && largest_error(each.weights) < 0.1;
  }
  std::printf("%d ranks: the largest error of a weight goes from %.2f to %.2f\n", ranks,
              largest_error(before[0].weights), largest_error(after[0].weights));
  return right;
}

} // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos(argc, argv);
  std::filesystem::create_directory(folder);
  std::vector<float> const zeros(length);
  auto const uninterrupted = train_on(4, zeros, 0, 60);
  auto const before = train_on(4, zeros, 0, 30, true);
  auto const same = train_on(4, before[0].weights, 4, 30);
  bool right = before[0].error.empty() && same[0].weights == uninterrupted[0].weights;
  right = goes_on_with(4, before) && right;
  right = goes_on_with(3, before) && right;
  right = goes_on_with(6, before) && right;
  std::filesystem::remove(folder + "/state.2");
  auto const without = train_on(3, before[0].weights, 4, 1);
  for (outcome const& each : without) {
    right = right && each.error == without[0].error && each.error.find("rank 2: ") != std::string::npos;
  }
  std::printf("without a file: %s\n", without[0].error.c_str());
  std::filesystem::remove_all(folder);
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
