// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace fashion {

namespace {

void require(bool holds, std::string const& sentence) {
  if (!holds) {
    throw std::runtime_error(sentence + " (see --help)");
  }
}

template <class T>
std::string with_value(std::string const& option, T const& value, std::string const& rule) {
  std::ostringstream text;
  text << option << " " << value << ": " << rule;
  return text.str();
}

// The shortest text that stands for this number and no other.
std::string exact(double x) {
  std::array<char, 32> text{};
  auto const end = std::to_chars(text.data(), text.data() + text.size(), x).ptr;
  return {text.data(), end};
}

std::string listed(std::vector<std::string> const& names) {
  std::string text;
  for (std::string const& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

constexpr std::string_view codecs[] = {"identity", "bfloat16", "block_float", "zfp"};

bool takes_codec(std::string const& algorithm) {
  return algorithm == "ring_chunked" || algorithm == "recursive_doubling";
}

bool has_rate(std::string const& codec) {
  return codec == "block_float" || codec == "zfp";
}

void check_codec(options const& o) {
  if (o.codec.empty()) {
    require(!o.rate, "--rate: needs a --codec that has one, block_float or zfp");
    require(o.codec_level.empty(), "--codec-level: needs a --codec");
    return;
  }
  require(std::find(std::begin(codecs), std::end(codecs), o.codec) != std::end(codecs),
          "--codec " + o.codec + ": there are " + listed({std::begin(codecs), std::end(codecs)}));
#ifndef FASHION_WITH_ZFP
  require(o.codec != "zfp", "--codec zfp: this program was built without libzfp");
#endif
  require(takes_codec(o.algorithm),
          "--codec " + o.codec + ": is for ring_chunked and recursive_doubling, not for " + o.algorithm);
  require(!o.rate || has_rate(o.codec), "--rate: is for block_float and zfp, " + o.codec + " has none to choose");
  require(!o.rate || (*o.rate >= 4 && *o.rate <= 16),
          with_value("--rate", o.rate.value_or(default_rate), "must be from 4 to 16"));
  require(o.codec_level.empty() || o.codec_level == "collective" || o.codec_level == "message",
          "--codec-level " + o.codec_level + ": there are collective, message");
}

void check(options const& o, std::vector<std::string> const& algorithms) {
  require(std::find(algorithms.begin(), algorithms.end(), o.algorithm) != algorithms.end(),
          "--algorithm " + o.algorithm + ": there are " + listed(algorithms));
  check_codec(o);
  require(o.density > 0 && o.density <= 1, with_value("--density", o.density, "must be in (0, 1]"));
  // The upper ends also catch numbers too large to read, which CLI11 clamps.
  require(o.epochs >= 1 && o.epochs <= 1'000'000, with_value("--epochs", o.epochs, "must be from 1 to 1000000"));
  // The upper end is what a matrix product takes as its number of rows.
  require(o.batch >= 1 && o.batch <= std::numeric_limits<int>::max(),
          with_value("--batch", o.batch, "must be at least 1, and less than 2^31"));
  require(std::isfinite(o.learning_rate) && o.learning_rate > 0,
          with_value("--lr", o.learning_rate, "must be positive and finite"));
  require(o.seed >= 0 && o.seed < std::numeric_limits<std::int64_t>::max(),
          with_value("--seed", o.seed, "must be from 0 to 2^63 - 2"));
  require(o.dump.empty() == o.dump_at.empty(), "--dump DIR and --dump-at ITERATION go together");
  for (std::int64_t const iteration : o.dump_at) {
    require(iteration >= 1, with_value("--dump-at", iteration, "iterations are counted from 1"));
  }
}

} // namespace

std::string options::label() const {
  if (codec.empty()) {
    return algorithm;
  }
  return algorithm + "_" + codec + (has_rate(codec) ? std::to_string(rate.value_or(default_rate)) : "") +
         (codec_level == "message" ? "_message" : "");
}

std::string options::shared_part() const {
  if (!help.empty()) {
    return "--help";
  }
  std::ostringstream text;
  text << "algorithm " << label() << ", density " << exact(density) << ", epochs " << epochs << ", batch " << batch
       << ", lr " << exact(learning_rate) << ", seed " << seed << ", dump at";
  for (std::int64_t const iteration : dump_at) {
    text << ' ' << iteration;
  }
  text << (log.empty() ? "" : ", logged");
  return text.str();
}

options parse_options(int argc, char const* const* argv, std::vector<std::string> const& algorithms) {
  options o;
  CLI::App app("Trains a network of 1.86 million parameters on Fashion-MNIST, data-parallel over MPI ranks.",
               "train_fashion_mnist");
  app.add_option("--algorithm", o.algorithm, "How gradients are summed: " + listed(algorithms))->capture_default_str();
  app.add_option("--density", o.density, "Share of the gradient to exchange, in (0, 1]; dense schemes ignore it")
      ->capture_default_str();
  app.add_option("--codec", o.codec,
                 "What ring_chunked and recursive_doubling code their messages with: identity, bfloat16, block_float, "
                 "zfp; nothing unless given");
  app.add_option("--rate", o.rate, "Bits a value of block_float and zfp, from 4 to 16; 8 unless given");
  app.add_option("--codec-level", o.codec_level,
                 "Where they code: once a collective, unless given, or once a message: collective, message");
  app.add_option("--epochs", o.epochs, "Passes over the training images")->capture_default_str();
  app.add_option("--batch", o.batch, "Images per rank and iteration")->capture_default_str();
  app.add_option("--lr", o.learning_rate,
                 "Peak learning rate: half an epoch of warm-up, then a cosine down to a twentieth")
      ->capture_default_str();
  app.add_option("--seed", o.seed, "Of the initial weights and the order of the images")->capture_default_str();
  app.add_option("--data", o.data, "Folder with the four .gz files of Fashion-MNIST")->capture_default_str();
  app.add_option("--dump", o.dump, "Folder for accumulator.ITERATION.RANK.f32: raw little-endian float32");
  app.add_option("--dump-at", o.dump_at, "Iterations to dump, counted from 1, separated by commas")->delimiter(',');
  app.add_option("--csv", o.csv, "File for a table with a row per epoch");
  app.add_option("--summary", o.summary, "File for the result in one line of key=value");
  app.add_option("--log", o.log, "File for a table with a row per iteration: how many entries were selected");
  try {
    app.parse(argc, argv);
  } catch (CLI::CallForHelp const&) {
    o.help = app.help();
    return o;
  } catch (CLI::ParseError const& failure) {
    require(false, failure.what());
  }
  check(o, algorithms);
  return o;
}

} // namespace fashion
