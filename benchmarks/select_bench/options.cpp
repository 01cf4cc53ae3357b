// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.hpp"

#include "inputs.hpp"

#include <CLI/CLI.hpp>

#include <limits>

namespace select_bench {
namespace {

std::string joined(std::span<std::string_view const> names) {
  std::string text;
  for (std::string_view const each : names) {
    text += (text.empty() ? "" : ", ") + std::string(each);
  }
  return text;
}

} // namespace

command_line read_command_line(std::vector<std::string> const& arguments, std::span<std::string_view const> selectors) {
  command_line read;
  options& asked = read.asked;
  CLI::App app("Measures selection on one rank, beside passes that only read and write memory.", "select_bench");
  app.add_option("--length", asked.lengths, "Lengths of the gradient")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t(1), std::numeric_limits<std::int64_t>::max()))
      ->type_name("N[,N...]");
  app.add_option("--density", asked.densities, "Shares of the entries to select, in (0, 1]")
      ->delimiter(',')
      ->check(CLI::Range(std::numeric_limits<double>::min(), 1.0))
      ->type_name("D[,D...]");
  app.add_option("--input", asked.inputs,
                 "Distributions (" + joined(distributions) +
                     ") or files of raw little-endian\nfloat32, whose length takes the place of --length")
      ->delimiter(',')
      ->type_name("NAME|FILE[,...]");
  app.add_option("--selector", asked.selectors, "Only these of " + joined(selectors))
      ->delimiter(',')
      ->check(CLI::IsMember(std::vector<std::string>(selectors.begin(), selectors.end())))
      ->type_name("NAME[,NAME...]");
  app.add_option("--repetitions", asked.repetitions, "Runs of each, of which the median counts (default: 15)")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()))
      ->type_name("R");
  app.add_option("--processes", asked.processes, "Copies of this program that measure at the same time (default: 1)")
      ->check(CLI::Range(1, 256))
      ->type_name("P");
  app.add_option("--csv", asked.csv, "Write one row per selector, length, density and input to this file")
      ->type_name("FILE");
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (CLI::CallForHelp const&) {
    read.help = app.help();
  } catch (CLI::ParseError const& fault) {
    read.fault = fault.what();
  }
  return read;
}

} // namespace select_bench
