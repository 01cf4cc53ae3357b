// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "trainer.hpp"

#include "time_plan.hpp"
#include "workload.hpp"
#include "xi.hpp"

#include "programs/course.hpp"
#include "programs/progress.hpp"
#include "programs/together.hpp"

#include <oktopk/torch.hpp>
#include <oktopk/training/density.hpp>

#include <fmt/format.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace torch_training {
namespace {

using clock_type = std::chrono::steady_clock;

double since(clock_type::time_point begin) {
  return std::chrono::duration<double>(clock_type::now() - begin).count();
}

/// Seconds of a rank, summed over iterations.
struct seconds {
  double all = 0;
  double compute = 0;       ///< forward and backward pass, optimizer
  double waits = 0;         ///< for buckets, with nothing else to do
  double communication = 0; ///< of all calls, selection included
  double hidden = 0;        ///< of calls, behind the backward pass
  double hideable = 0;      ///< the most that could have been
  double evaluations = 0;
};

std::unique_ptr<torch::optim::Optimizer> make_optimizer(options const& how, torch::nn::Module& module) {
  if (how.workload == "bert") {
    return std::make_unique<torch::optim::AdamW>(
        module.parameters(), torch::optim::AdamWOptions(how.learning_rate).betas({0.9, 0.999}).weight_decay(0.01));
  }
  // Momentum stands before the allreduce: momentum correction.
  return std::make_unique<torch::optim::SGD>(module.parameters(), how.learning_rate);
}

class trainer {
public:
  trainer(oktopk::mpi_communicator world, options const& how)
      : began_(clock_type::now()), world_(std::move(world)), comm_(world_), how_(how),
        workload_(oktopk_programs::together(world_, "data", oktopk::fault::bad_file,
                                            [&] { return make_workload(how, world_.rank(), world_.size()); })),
        optimizer_(make_optimizer(how, workload_->module())), parallel_(made()),
        course_(
            oktopk_programs::together(world_, "--course", oktopk::fault::bad_file,
                                      [&] { return oktopk_programs::course(world_.rank() == 0 ? how.course : ""); })),
        plan_(60 * how.minutes, how.every, workload_->test_parts()), progress_(world_.rank() == 0, how.iterations) {
    for (torch::Tensor const& each : workload_->module().parameters()) {
      parameters_ += each.numel();
    }
    for (int bucket = 0; bucket < count(); ++bucket) {
      auto const& of = parallel_.buckets().allreduce(bucket);
      selects_ = selects_ || of.k() < of.length();
    }
  }

  void run() {
    heading();
    comm_.reset();
    double loss = 0;
    for (time_plan::decision now; !now.last;) {
      iteration_ += 1;
      // With minutes a row is decided on behind its step.
      bool const has_xi = how_.xi && (how_.iterations == 0 ? plan_.asks_at(iteration_) : row_of_iterations().row);
      set_rates(iteration_ - 1);
      if (has_xi) {
        xi_.attach(parallel_.buckets());
        xi_of_this_step_.reset();
      }
      loss += step(iteration_ - 1);
      progress_.advance(place("training"));
      now = how_.iterations > 0 ? row_of_iterations() : row_of_time();
      if (now.row) {
        row(now.parts, has_xi, loss / static_cast<double>(iteration_ - last_row_));
        last_row_ = iteration_;
        loss = 0;
      } else if (has_xi) {
        xi_of_step::detach(parallel_.buckets());
      }
    }
  }

private:
  int count() { return static_cast<int>(parallel_.buckets().plan().buckets.size()); }

  oktopk::data_parallel<scheme> made() {
    oktopk::data_parallel<scheme>::options with;
    with.density = how_.density;
    with.buckets.overlap = how_.overlaps();
    with.order_from_first_step = false; // the networks have their parameters in order, and all steps count alike
    // Each bucket is clipped by itself: then the buckets are the same without overlap.
    bool const in_buckets = how_.overlaps() || how_.clip_norm > 0;
    with.buckets.plan.bucket_bytes = in_buckets ? std::llround(how_.bucket_mib * 1024 * 1024) : std::int64_t(1) << 60;
    with.buckets.feedback.momentum = how_.momentum;
    with.buckets.feedback.clip_norm = how_.clip_norm;
    auto const make = [this, name = how_.scheme()](oktopk::bucket const& of) {
      return make_scheme(comm_, name, of.length, of.density);
    };
    return {workload_->module(), comm_, make, with};
  }

  // The learning rate goes down to zero where the end is known, but for the LSTM; the density down to its own.
  void set_rates(std::int64_t iteration) {
    if (how_.iterations > 0 && how_.workload != "lstm") {
      double const left = 1 - static_cast<double>(iteration) / static_cast<double>(how_.iterations);
      for (auto& group : optimizer_->param_groups()) {
        group.options().set_lr(how_.learning_rate * left);
      }
    }
    oktopk::density_schedule const schedule{.density = how_.density, .warm_up = how_.warm_up};
    double const density = schedule.at(iteration);
    if (selects_ && how_.warm_up > 0 && density != density_) {
      for (int bucket = 0; bucket < count(); ++bucket) {
        parallel_.buckets().set_density(bucket, density);
      }
    }
    density_ = density;
  }

  time_plan::decision row_of_iterations() const {
    bool const last = iteration_ == how_.iterations;
    return {last || iteration_ % how_.every == 0, last, workload_->test_parts()};
  }

  time_plan::decision row_of_time() {
    if (!plan_.asks_at(iteration_)) {
      return {};
    }
    if (iteration_ == 1) {
      evaluate(1);
      if (how_.xi) {
        xi();
      }
    }
    // The same numbers on all ranks: those of the slowest.
    std::array<double, 5> slowest{since(began_), seconds_.all, seconds_.evaluations, part_seconds_, xi_seconds_};
    world_.allreduce(std::span<double>(slowest), oktopk::reduction::max, oktopk::phase::control);
    return plan_.update(iteration_, {slowest[0], slowest[1], slowest[2], slowest[3], slowest[4]});
  }

  // Of the last step, to which it was attached.
  double xi() {
    if (!xi_of_this_step_) {
      auto const began = clock_type::now();
      xi_of_this_step_ = xi_.measure(parallel_.buckets(), world_);
      xi_seconds_ = since(began);
      seconds_.evaluations += xi_seconds_;
    }
    return *xi_of_this_step_;
  }

  evaluation evaluate(std::int64_t parts) {
    auto const began = clock_type::now();
    evaluation const mine = workload_->evaluate(parts, [&] { progress_.show(place("evaluating")); });
    double const seconds = since(began);
    seconds_.evaluations += seconds;
    part_seconds_ = seconds / static_cast<double>(parts);
    return mine;
  }

  std::string place(char const* what) const {
    return fmt::format("{}, {} with {}{}", what, how_.workload, how_.algorithm,
                       how_.iterations > 0 ? std::string()
                                           : fmt::format(", iteration {}, {:.0f} of {:.0f} s", iteration_,
                                                         since(began_), 60 * how_.minutes));
  }

  double step(std::int64_t iteration) {
    auto const began = clock_type::now();
    optimizer_->zero_grad();
    torch::Tensor const loss = workload_->loss(iteration);
    loss.backward();
    double const backward_ended = since(began);
    parallel_.wait();
    double const wait_ended = since(began);
    optimizer_->step();
    double const all = since(began);
    auto const& times = parallel_.last_step();
    seconds_.all += all;
    seconds_.waits += wait_ended - backward_ended;
    seconds_.compute += all - (wait_ended - backward_ended);
    seconds_.communication += times.communication();
    // Without overlap the calls are made by the wait, before that of the buckets begins.
    seconds_.hidden += parallel_.buckets().overlaps() ? times.hidden() : 0;
    seconds_.hideable += parallel_.buckets().overlaps() ? times.hideable() : 0;
    double const value = loss.item<double>();
    double const words = comm_.total().words_sent();
    std::vector<scheme*> buckets;
    for (int bucket = 0; bucket < count(); ++bucket) {
      buckets.push_back(&parallel_.buckets().allreduce(bucket));
    }
    course_.add(iteration + 1, all, value, words - words_, buckets);
    words_ = words;
    return value;
  }

  // Rank 0 writes a row.
  void row(std::int64_t parts, bool has_xi, double loss) {
    double const words = comm_.total().words_sent();
    double const distance = has_xi ? xi() : 0;
    evaluation const mine = evaluate(parts);
    double selected = 0;
    double in_update = 0;
    for (int bucket = 0; bucket < count(); ++bucket) {
      auto const& last = parallel_.buckets().allreduce(bucket).last_call();
      selected += static_cast<double>(last.local_selected);
      in_update += static_cast<double>(last.global_selected);
    }
    std::array<double, 12> sums{loss,
                                words,
                                selected,
                                seconds_.all,
                                seconds_.compute,
                                seconds_.waits,
                                seconds_.communication,
                                seconds_.hidden,
                                seconds_.hideable,
                                mine.loss,
                                mine.right,
                                mine.examples};
    world_.allreduce(std::span<double>(sums), oktopk::reduction::sum, oktopk::phase::control);
    double const ranks = world_.size();
    double const test_loss = sums[9] / sums[11];
    double const accuracy = sums[10] / sums[11];
    if (world_.rank() == 0) {
      progress_.wipe();
      std::printf("%7lld %9.1f %9.4f %9.4f %9.2f %7.0f %12.0f\n", static_cast<long long>(iteration_), sums[3] / ranks,
                  sums[0] / ranks, test_loss, 100 * accuracy, sums[11], sums[1] / ranks);
      std::fflush(stdout);
      if (!how_.csv.empty()) {
        std::ofstream out(how_.csv, std::ios::app);
        out.precision(10);
        out << '"' << how_.algorithm << "\"," << world_.size() << ',' << how_.workload << ',' << parameters_ << ','
            << how_.batch << ',' << how_.density << ',' << iteration_ << ','
            << static_cast<double>(iteration_) / static_cast<double>(workload_->iterations_of_an_epoch());
        for (int i = 3; i < 9; ++i) {
          out << ',' << sums[static_cast<std::size_t>(i)] / ranks;
        }
        out << ',' << sums[1] / ranks << ',' << sums[2] / ranks << ',' << in_update << ',' << sums[0] / ranks << ','
            << test_loss << ',' << accuracy << ',';
        if (has_xi) {
          out << distance;
        }
        out << ',' << sums[11] << '\n';
        if (!out.flush()) {
          throw std::runtime_error("cannot write " + how_.csv.string());
        }
      }
    }
  }

  void heading() const {
    if (world_.rank() != 0) {
      return;
    }
    std::printf("%s with %s on %d ranks: %lld parameters, density %g\n%7s %9s %9s %9s %9s %7s %12s\n",
                how_.workload.c_str(), how_.algorithm.c_str(), world_.size(), static_cast<long long>(parameters_),
                how_.density, "step", "seconds", "loss", "test loss", "right, %", "tested", "words");
    if (!how_.csv.empty()) {
      std::ofstream out(how_.csv);
      out << "algorithm,ranks,workload,parameters,batch,density,iteration,epoch,seconds,compute_seconds,wait_seconds,"
             "communication_seconds,hidden_seconds,hideable_seconds,words,local_selected,selected,loss,test_loss,"
             "accuracy,xi,tested\n";
      if (!out.flush()) {
        throw std::runtime_error("cannot write " + how_.csv.string());
      }
    }
  }

  clock_type::time_point began_;
  oktopk::mpi_communicator world_;
  communicator comm_;
  options how_;
  std::unique_ptr<workload> workload_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  oktopk::data_parallel<scheme> parallel_;
  std::int64_t parameters_ = 0;
  bool selects_ = false;
  double density_ = 0;
  seconds seconds_;
  double part_seconds_ = 0; ///< of the last evaluation, for a part of the test data
  std::int64_t iteration_ = 0;
  std::int64_t last_row_ = 0;
  double words_ = 0; ///< sent before this iteration
  oktopk_programs::course course_;
  time_plan plan_;
  oktopk_programs::progress progress_;
  xi_of_step xi_;
  std::optional<double> xi_of_this_step_;
  double xi_seconds_ = 0; // as measured last
};

} // namespace

void train(oktopk::mpi_communicator world, options const& how) {
  oktopk_programs::together(world, "output", oktopk::fault::bad_file, [&] {
    if (world.rank() == 0 && !how.csv.empty()) {
      if (!std::ofstream(how.csv, std::ios::app)) { // told before the data are read
        throw std::runtime_error("cannot write " + how.csv.string());
      }
    }
  });
  trainer(world, how).run();
}

} // namespace torch_training
