// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.hpp"

#include "programs/arguments.hpp"
#include "programs/numbers.hpp"
#include "programs/options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <stdexcept>

namespace fashion {

std::string options::shared_part() const {
  return fmt::format("{} {}, dump at {}, checkpoint {} every {}", text, training_part(), fmt::join(dump_at, " "),
                     checkpoint.string(), every) +
         fmt::format(", deadline {}", deadline);
}

std::string options::training_part() const {
  return fmt::format("algorithm {}, density {}, epochs {}, batch {}, lr {}, seed {}, log {}", algorithm, density,
                     epochs, batch, learning_rate, seed, !log.empty());
}

options parse_options(std::vector<std::string> const& arguments) {
  options o;
  CLI::App app("Trains a network of 1.86 million parameters on Fashion-MNIST, data-parallel over MPI ranks.",
               "train_fashion_mnist");
  using oktopk_programs::whole;
  app.add_flag_callback(
      "--list", [] { throw CLI::Success(); }, "Print all algorithms and their options");
  app.set_version_flag("--version", oktopk_programs::version_text("train_fashion_mnist"), "Print the version");
  app.add_option("--algorithm", o.algorithm, "How gradients are summed; --list tells all")->capture_default_str();
  app.add_option("--density", o.density, "Share of the gradient to exchange; dense schemes ignore it")
      ->check(oktopk_programs::fault_of_density)
      ->capture_default_str();
  app.add_option("--epochs", o.epochs, "Passes over the training images")
      ->transform(whole(1, 1'000'000))
      ->capture_default_str();
  // The upper end is what a matrix product takes as its number of rows.
  app.add_option("--batch", o.batch, "Images per rank and iteration")
      ->transform(whole(1, std::numeric_limits<int>::max()))
      ->capture_default_str();
  app.add_option("--lr", o.learning_rate,
                 "Peak learning rate: half an epoch of warm-up, then a cosine down to a twentieth")
      ->check(oktopk_programs::positive())
      ->capture_default_str();
  app.add_option("--seed", o.seed, "Of the initial weights and the order of the images")
      ->transform(whole(0, std::numeric_limits<std::int64_t>::max() - 1))
      ->capture_default_str();
  app.add_option("--data", o.data, "Folder with the four .gz files of Fashion-MNIST")->capture_default_str();
  auto* const dump =
      app.add_option("--dump", o.dump, "Folder for accumulator.ITERATION.RANK.f32: raw little-endian float32");
  auto* const dump_at =
      app.add_option("--dump-at", o.dump_at, "Iterations to dump, counted from 1, separated by commas")
          ->delimiter(',')
          ->transform(whole(1));
  dump->needs(dump_at);
  dump_at->needs(dump);
  auto* const checkpoint =
      app.add_option("--checkpoint", o.checkpoint, "File to go on from where it exists, and to keep the training in");
  app.add_option("--every", o.every, "Iterations from one checkpoint to the next; without it one after each epoch")
      ->transform(whole(1))
      ->needs(checkpoint);
  oktopk_programs::add_deadline(app, o.deadline);
  app.add_option("--csv", o.csv, "File for a table with a row per epoch");
  app.add_option("--summary", o.summary, "File for the result in one line of key=value");
  app.add_option("--log", o.log, "File for a table with a row per iteration: how many entries were selected");
  app.add_option("--course", o.course,
                 "File for a row per iteration, written as it ends: seconds, loss, words, what runs, switches");
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (CLI::CallForHelp const&) {
    o.text = app.help();
  } catch (CLI::CallForVersion const& version) {
    o.text = version.what() + std::string("\n");
  } catch (CLI::Success const&) {
    o.text = list_text();
  } catch (CLI::ParseError const& failure) {
    throw std::runtime_error(std::string(failure.what()) + " (see --help)");
  }
  return o;
}

} // namespace fashion
