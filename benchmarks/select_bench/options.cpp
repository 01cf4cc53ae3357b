// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.hpp"

#include "inputs.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace select_bench {
namespace {

std::string joined(std::span<std::string_view const> names) {
  std::string text;
  for (std::string_view const each : names) {
    text += (text.empty() ? "" : ", ") + std::string(each);
  }
  return text;
}

std::string fault_of(options const& asked, std::span<std::string_view const> selectors) {
  for (std::int64_t const length : asked.lengths) {
    if (length < 1) {
      return "--length must be at least 1, not " + std::to_string(length);
    }
  }
  for (double const density : asked.densities) {
    if (!(density > 0 && density <= 1)) {
      return "--density must be over 0 and at most 1, not " + std::to_string(density);
    }
  }
  for (std::string const& each : asked.selectors) {
    if (std::find(selectors.begin(), selectors.end(), each) == selectors.end()) {
      return "--selector does not know \"" + each + "\"; it knows " + joined(selectors);
    }
  }
  if (asked.repetitions < 1) {
    return "--repetitions must be at least 1, not " + std::to_string(asked.repetitions);
  }
  if (asked.processes < 1 || asked.processes > 256) {
    return "--processes must be between 1 and 256, not " + std::to_string(asked.processes);
  }
  return {};
}

} // namespace

command_line read_command_line(std::vector<std::string> const& arguments, std::span<std::string_view const> selectors) {
  command_line read;
  options& asked = read.asked;
  CLI::App app("Measures selection on one rank, beside passes that only read and write memory.", "select_bench");
  app.add_option("--length", asked.lengths, "Lengths of the gradient")->delimiter(',')->type_name("N[,N...]");
  app.add_option("--density", asked.densities, "Shares of the entries to select, in (0, 1]")
      ->delimiter(',')
      ->type_name("D[,D...]");
  app.add_option("--input", asked.inputs,
                 "Distributions (" + joined(distributions) +
                     ") or files of raw little-endian\nfloat32, whose length takes the place of --length")
      ->delimiter(',')
      ->type_name("NAME|FILE[,...]");
  app.add_option("--selector", asked.selectors, "Only these of " + joined(selectors))
      ->delimiter(',')
      ->type_name("NAME[,NAME...]");
  app.add_option("--repetitions", asked.repetitions, "Runs of each, of which the median counts (default: 15)")
      ->type_name("R");
  app.add_option("--processes", asked.processes, "Copies of this program that measure at the same time (default: 1)")
      ->type_name("P");
  app.add_option("--csv", asked.csv, "Write one row per selector, length, density and input to this file")
      ->type_name("FILE");
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (CLI::CallForHelp const&) {
    read.help = app.help();
    return read;
  } catch (CLI::ParseError const& fault) {
    read.fault = fault.what();
    return read;
  }
  read.fault = fault_of(asked, selectors);
  return read;
}

} // namespace select_bench
