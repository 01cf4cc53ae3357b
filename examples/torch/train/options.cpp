// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.hpp"

#include "programs/numbers.hpp"

#include <oktopk/catalogue/catalogue.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace torch_training {
namespace {

constexpr std::string_view overlap_mark = "+overlap";

} // namespace

bool options::overlaps() const {
  return algorithm.size() >= overlap_mark.size() &&
         algorithm.compare(algorithm.size() - overlap_mark.size(), overlap_mark.size(), overlap_mark) == 0;
}

std::string options::scheme() const {
  return overlaps() ? algorithm.substr(0, algorithm.size() - overlap_mark.size()) : algorithm;
}

std::string options::shared_part() const {
  std::ostringstream line;
  line.precision(17);
  line << workload << ' ' << algorithm << ' ' << size << ' ' << batch << ' ' << iterations << ' ' << minutes << ' '
       << every << ' ' << density << ' ' << learning_rate << ' ' << momentum << ' ' << clip_norm << ' ' << warm_up
       << ' ' << bucket_mib << ' ' << seed << ' ' << xi << ' ' << words << ' ' << deadline;
  return line.str();
}

auto from_to(double least, double most) {
  return oktopk_programs::real([=](double number) { return number >= least && number <= most; },
                               fmt::format("no number of {} to {}", least, most));
}

options parse_options(std::vector<std::string> const& arguments) {
  using oktopk_programs::whole;
  options how;
  bool list = false;
  CLI::App app("Trains a network of torch on several ranks; the gradients are summed by an algorithm of oktopk.\n"
               "Run it under mpirun.",
               "train_torch");
  app.option_defaults()->always_capture_default(false);
  app.add_option("--workload", how.workload, "vgg16 (images), lstm or bert (text)")
      ->check(CLI::IsMember({"vgg16", "lstm", "bert"}));
  app.add_option("--algorithm", how.algorithm,
                 "of the catalogue, see --list; \"+overlap\" behind it: in buckets, while the backward pass runs");
  app.add_option("--size", how.size, "factor of the network's widths")->check(from_to(0.01, 8));
  app.add_option("--batch", how.batch, "examples of a rank and iteration")->transform(whole(1, 1 << 20));
  app.add_option("--iterations", how.iterations, "of the training")->transform(whole(1));
  app.add_option(
         "--minutes", how.minutes,
         "of the run in all in place of --iterations; a tenth of it at most for evaluations and xi, of a part of the "
         "test data where that is not enough")
      ->check(oktopk_programs::positive());
  app.add_option("--every", how.every, "iterations between two evaluations; more where --minutes leave no time")
      ->transform(whole(1));
  app.add_option("--density", how.density, "k / n of sparse schemes")->check(from_to(1e-6, 1));
  app.add_option("--learning-rate", how.learning_rate)->check(oktopk_programs::positive());
  app.add_option("--momentum", how.momentum, "with momentum correction")->check(from_to(0, 0.999));
  app.add_option("--clip-norm", how.clip_norm, "most norm of a rank's gradient in a bucket; 0: none")
      ->check(from_to(0, std::numeric_limits<double>::max()));
  app.add_option("--warm-up", how.warm_up, "iterations from dense to --density")->transform(whole(0));
  app.add_option("--bucket-mib", how.bucket_mib, "MiB of a bucket with +overlap")->check(oktopk_programs::positive());
  app.add_option("--seed", how.seed)->transform(whole(0));
  app.add_flag("--xi", how.xi, "measures the paper's xi in each row, whose step then takes longer");
  app.add_option("--images", how.images, "folder of Fashion-MNIST");
  app.add_option("--text", how.text, "file of plain text for lstm and bert");
  oktopk_programs::add_deadline(app, how.deadline);
  app.add_option("--words", how.words, "most words of the vocabulary; rarer ones are one")
      ->transform(whole(10, 1'000'000));
  app.add_option("--csv", how.csv, "file for a row each --every iterations");
  app.add_option("--course", how.course,
                 "file for a row each iteration, written as it ends: seconds, loss, words, what runs, switches");
  app.add_flag("--list", list, "lists algorithms and their options");
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (CLI::CallForHelp const&) {
    how.to_print = app.help();
  } catch (CLI::Error const& fault) {
    throw std::runtime_error(fault.what());
  }
  if (list) {
    how.to_print = oktopk::catalogue_text();
  }
  if (how.iterations > 0 && how.minutes > 0) {
    throw std::runtime_error("give --iterations or --minutes, not both");
  }
  return how;
}

} // namespace torch_training
