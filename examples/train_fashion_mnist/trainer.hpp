// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "accumulator_dump.hpp"
#include "allreduce.hpp"
#include "checkpoints.hpp"
#include "dataset.hpp"
#include "image_order.hpp"
#include "learning_rate.hpp"
#include "measurements.hpp"
#include "network.hpp"
#include "options.hpp"
#include "report.hpp"
#include "selection_log.hpp"
#include "together.hpp"

#include "programs/course.hpp"
#include "programs/pending_file.hpp"
#include "programs/progress.hpp"

#include <oktopk/comm/collectives.hpp>
#include <oktopk/core/checkpoint.hpp>
#include <oktopk/sgd.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace fashion {

/// Data-parallel SGD with one allreduce algorithm, from initial weights to the last line of the report.
class trainer {
public:
  /// Collective.
  trainer(execution const& exec, oktopk::mpi_communicator const& world, options const& how, rank_data const& data,
          allreduce& scheme)
      : exec_(exec), world_(world), how_(how), data_(data), allreduce_(scheme),
        iterations_per_epoch_(data.training.whole / world_.size() / how.batch), facts_(describe()),
        optimizer_(exec, scheme, {.learning_rate = how.learning_rate}), dump_(world_, how.dump, how.dump_at),
        log_(!how.log.empty()),
        course_(together(world_, "--course",
                         [&] { return oktopk_programs::course(world_.rank() == 0 ? how.course : ""); })),
        checkpoints_(world_, how.checkpoint,
                     how.every > 0 ? how.every : std::max<std::int64_t>(iterations_per_epoch_, 1),
                     fmt::format("{}, {} training images", how.training_part(), data.training.whole)) {
    together(world_, "sizes", [this] { check_sizes(); });
    together(world_, "memory", [this] { allocate(); });
    optimizer_.before_allreduce([this](const_vector accumulator) { dump_(iteration_, accumulator); });
  }

  trainer(trainer const&) = delete;
  trainer& operator=(trainer const&) = delete;

  /// Collective. The whole run.
  void run() {
    bool const speaks = world_.rank() == 0;
    report out(how_, facts_);
    go_on(out);
    oktopk_programs::progress bar(speaks, how_.epochs * iterations_per_epoch_ - iteration_);
    if (speaks) {
      out.heading();
      if (iteration_ > 0) {
        fmt::print("goes on after iteration {} of {}\n", iteration_, how_.epochs * iterations_per_epoch_);
      }
    }
    begun_ = clock::now();
    for (std::int64_t epoch = iteration_ / iterations_per_epoch_ + 1; epoch <= how_.epochs; ++epoch) {
      train_epoch(epoch, bar, out);
      measurements const all = epoch_.over_ranks(world_);
      epoch_ = {};
      double const accuracy = test_accuracy();
      bar.wipe();
      if (speaks) {
        out.epoch(epoch, all, accuracy);
      }
      if (checkpoints_.due(iteration_)) {
        save(out);
      }
    }
    double const total = out.seconds_before() + seconds(begun_, clock::now());
    log_.gather(world_);
    together(world_, "output", [&] {
      if (speaks) {
        out.close(total);
        log_.write(how_.log, allreduce_.k());
      }
    });
  }

private:
  using clock = std::chrono::steady_clock;
  using host_vector = Kokkos::View<float const*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  static double seconds(clock::time_point from, clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
  }

  run_facts describe() const {
    double const ranks = world_.size();
    auto const k = static_cast<double>(allreduce_.k());
    return {.algorithm = how_.algorithm,
            .ranks = world_.size(),
            .length = allreduce_.length(),
            .selects = allreduce_.k() < allreduce_.length(),
            .k = allreduce_.k(),
            .lower_bound_words = 2 * k * (ranks - 1) / ranks};
  }

  void check_sizes() const {
    if (iterations_per_epoch_ == 0) {
      throw std::runtime_error(fmt::format("--batch {}: a rank has only {} training images", how_.batch,
                                           data_.training.whole / world_.size()));
    }
    std::int64_t const last = iterations_per_epoch_ * how_.epochs;
    for (std::int64_t const iteration : how_.dump_at) {
      if (iteration > last) {
        throw std::runtime_error(fmt::format("--dump-at {}: the run ends with iteration {}", iteration, last));
      }
    }
  }

  void allocate() {
    auto const length = static_cast<std::size_t>(allreduce_.length());
    parameters_ = vector("fashion::parameters", length);
    gradient_ = vector("fashion::gradient", length);
    network_ = std::make_unique<network>(std::max(how_.batch, test_batch));
    training_order_ = in_order(exec_, data_.training.size());
    test_order_ = in_order(exec_, data_.test.size());
    network::initialise(exec_, parameters_, how_.seed);
    log_.reserve(how_.epochs * iterations_per_epoch_);
  }

  // From where it is: the last checkpoint, or the beginning.
  void go_on(report& out) {
    auto const saved = checkpoints_.newest();
    if (!saved) {
      return;
    }
    auto const optimizer = together(world_, "--checkpoint", [&] {
      if (saved->iteration > how_.epochs * iterations_per_epoch_ || saved->parameters.size() != parameters_.extent(0) ||
          saved->local.size() != saved->global.size()) {
        throw std::runtime_error("the checkpoint " + how_.checkpoint.string() + " is of another network or data");
      }
      std::istringstream in(std::string(saved->optimizer.begin(), saved->optimizer.end()));
      return oktopk::load<oktopk::sgd<allreduce>::state_type>(in);
    });
    optimizer_.restore(optimizer);
    Kokkos::deep_copy(exec_, parameters_, host_vector(saved->parameters.data(), saved->parameters.size()));
    exec_.fence();
    iteration_ = saved->iteration;
    epoch_ = saved->epoch;
    out.go_on_from(saved->history);
    log_.go_on_from(saved->local, saved->global);
  }

  void save(report const& out) {
    auto const host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), parameters_);
    checkpoints_.save({.iteration = iteration_,
                       .parameters = {host.data(), host.data() + host.extent(0)},
                       .optimizer = oktopk::detail::checkpoint_of(optimizer_.state()),
                       .epoch = epoch_,
                       .history = out.history(out.seconds_before() + seconds(begun_, clock::now())),
                       .local = log_.local(),
                       .global = log_.global()});
  }

  void train_epoch(std::int64_t epoch, oktopk_programs::progress& bar, report const& out) {
    shuffle(exec_, training_order_, how_.seed, epoch);
    for (std::int64_t step = iteration_ % iterations_per_epoch_; step < iterations_per_epoch_; ++step) {
      optimizer_.set_learning_rate(learning_rate(how_.learning_rate, iteration_, iterations_per_epoch_, how_.epochs));
      iteration_ += 1;
      measurements const one = train_step(step * how_.batch);
      epoch_.add(one);
      bar.advance(fmt::format("epoch {}/{}, loss {:.3f}", epoch, how_.epochs, one.loss));
      // After the last step of an epoch comes its test, and then the checkpoint.
      if (step + 1 < iterations_per_epoch_ && checkpoints_.due(iteration_)) {
        save(out);
      }
    }
  }

  measurements train_step(std::int64_t first) {
    auto const start = clock::now();
    double const loss =
        network_->backward(exec_, parameters_, data_.training, training_order_, first, how_.batch, gradient_);
    exec_.fence();
    communicator& counted = *allreduce_.comm().target<communicator>();
    counted.reset();
    optimizer_.step(parameters_, gradient_);
    double const all = seconds(start, clock::now());
    auto const& call = allreduce_.last_call();
    double const words = counted.total().words_sent();
    double const bound = allreduce_.bound_words();
    log_.add(call.local_selected, call.global_selected);
    course_.add(iteration_, all, loss, words, std::vector{&allreduce_});
    // What is neither selection nor exchange is computation: the network, and the sums over residual and weights.
    return {.iterations = 1,
            .loss = loss,
            .compute_seconds = all - call.select_seconds - call.exchange_seconds,
            .selection_seconds = call.select_seconds,
            .communication_seconds = call.exchange_seconds,
            .words = words,
            .most_words = words,
            .bound_words = bound,
            .over_bound = words > bound ? 1 : 0,
            .modelled = counted.modelled() > 0};
  }

  // The share of all ranks' test images that are labelled correctly; the weights are the same on all ranks.
  double test_accuracy() {
    std::int64_t correct = 0;
    for (std::int64_t first = 0; first < data_.test.size(); first += network_->capacity()) {
      std::int64_t const count = std::min(network_->capacity(), data_.test.size() - first);
      correct += network_->correct(exec_, parameters_, data_.test, test_order_, first, count);
    }
    oktopk::collective_workspace workspace;
    oktopk::allreduce_integers(world_, std::span(&correct, 1), oktopk::reduction::sum, oktopk::phase::control,
                               workspace);
    return static_cast<double>(correct) / static_cast<double>(data_.test.whole);
  }

  static constexpr std::int64_t test_batch = 250;

  execution exec_;
  oktopk::mpi_communicator world_;
  options const& how_;
  rank_data const& data_;
  allreduce& allreduce_;
  std::int64_t iterations_per_epoch_;
  std::int64_t iteration_ = 0; // the one under way, counted from 1
  clock::time_point begun_;
  run_facts facts_;
  oktopk::sgd<allreduce> optimizer_;
  accumulator_dump dump_;
  selection_log log_;
  oktopk_programs::course course_;
  checkpoints checkpoints_;
  measurements epoch_; // of the epoch under way
  std::unique_ptr<network> network_;
  vector parameters_;
  vector gradient_;
  order_view training_order_;
  order_view test_order_;
};

} // namespace fashion
