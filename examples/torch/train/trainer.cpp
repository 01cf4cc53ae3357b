// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "trainer.hpp"

#include "workload.hpp"
#include "xi.hpp"

#include "programs/together.hpp"

#include <oktopk/torch.hpp>
#include <oktopk/training/density_schedule.hpp>

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
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

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
      : world_(std::move(world)), comm_(world_), how_(how),
        workload_(oktopk_programs::together(world_, "data", oktopk::fault::bad_file,
                                            [&] { return make_workload(how, world_.rank(), world_.size()); })),
        optimizer_(make_optimizer(how, workload_->module())), parallel_(made()) {
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
    bool goes_on = true;
    for (std::int64_t iteration = 1; goes_on; ++iteration) {
      bool const is_row = iteration % how_.every == 0 || iteration == how_.iterations;
      set_rates(iteration - 1);
      if (is_row && how_.xi) {
        xi_.attach(parallel_.buckets());
      }
      loss += step(iteration - 1);
      if (is_row) {
        goes_on = row(iteration, loss / static_cast<double>(iteration - last_row_));
        last_row_ = iteration;
        loss = 0;
      }
    }
  }

private:
  int count() { return static_cast<int>(parallel_.buckets().plan().buckets.size()); }

  oktopk::data_parallel<scheme> made() {
    oktopk::data_parallel_options with;
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
    if (selects_ && density != density_) {
      for (int bucket = 0; bucket < count(); ++bucket) {
        parallel_.buckets().set_density(bucket, density);
      }
    }
    density_ = density;
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
    oktopk::overlap_times const& times = parallel_.last_step();
    seconds_.all += all;
    seconds_.waits += wait_ended - backward_ended;
    seconds_.compute += all - (wait_ended - backward_ended);
    seconds_.communication += times.communication();
    // Without overlap the calls are made by the wait, before that of the buckets begins.
    seconds_.hidden += parallel_.buckets().overlaps() ? times.hidden() : 0;
    seconds_.hideable += parallel_.buckets().overlaps() ? times.hideable() : 0;
    return loss.item<double>();
  }

  // Rank 0 writes a row; gives whether training goes on.
  bool row(std::int64_t iteration, double loss) {
    double const words = comm_.total().words_sent();
    double const xi = how_.xi ? xi_.measure(parallel_.buckets(), world_) : 0;
    evaluation const mine = workload_->evaluate();
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
    bool const is_last = how_.iterations > 0 ? iteration >= how_.iterations : sums[3] / ranks >= 60 * how_.minutes;
    if (world_.rank() == 0) {
      std::printf("%7lld %9.1f %9.4f %9.4f %9.2f %12.0f\n", static_cast<long long>(iteration), sums[3] / ranks,
                  sums[0] / ranks, test_loss, 100 * accuracy, sums[1] / ranks);
      std::fflush(stdout);
      if (!how_.csv.empty()) {
        std::ofstream out(how_.csv, std::ios::app);
        out.precision(10);
        out << '"' << how_.algorithm << "\"," << world_.size() << ',' << how_.workload << ',' << parameters_ << ','
            << how_.batch << ',' << how_.density << ',' << iteration << ','
            << static_cast<double>(iteration) / static_cast<double>(workload_->iterations_of_an_epoch());
        for (int i = 3; i < 9; ++i) {
          out << ',' << sums[static_cast<std::size_t>(i)] / ranks;
        }
        out << ',' << sums[1] / ranks << ',' << sums[2] / ranks << ',' << in_update << ',' << sums[0] / ranks << ','
            << test_loss << ',' << accuracy << ',';
        if (how_.xi) {
          out << xi;
        }
        out << '\n';
        if (!out) {
          throw std::runtime_error("cannot write " + how_.csv.string());
        }
      }
    }
    return !is_last;
  }

  void heading() const {
    if (world_.rank() != 0) {
      return;
    }
    std::printf("%s with %s on %d ranks: %lld parameters, density %g\n%7s %9s %9s %9s %9s %12s\n",
                how_.workload.c_str(), how_.algorithm.c_str(), world_.size(), static_cast<long long>(parameters_),
                how_.density, "step", "seconds", "loss", "test loss", "right, %", "words");
    if (!how_.csv.empty()) {
      std::ofstream out(how_.csv);
      out << "algorithm,ranks,workload,parameters,batch,density,iteration,epoch,seconds,compute_seconds,wait_seconds,"
             "communication_seconds,hidden_seconds,hideable_seconds,words,local_selected,selected,loss,test_loss,"
             "accuracy,xi\n";
      if (!out) {
        throw std::runtime_error("cannot write " + how_.csv.string());
      }
    }
  }

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
  std::int64_t last_row_ = 0;
  xi_of_step xi_;
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
