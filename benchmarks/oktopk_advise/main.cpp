// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Predicts the time of every scheme for a length, a density, ranks and a network, before anything is bought or built.

#include "programs/arguments.hpp"
#include "programs/numbers.hpp"
#include "programs/options.hpp"
#include "programs/pending_file.hpp"

#include <CLI/CLI.hpp>
#include <Kokkos_Core.hpp>
#include <fmt/core.h>
#include <oktopk/catalogue/automatic.hpp>
#include <oktopk/catalogue/machine_model.hpp>
#include <oktopk/comm/self.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/training/bucket_engine.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace oktopk_advise {
namespace {

using space = Kokkos::DefaultExecutionSpace;
using oktopk::machine_model;
using oktopk::catalogue::forecast;

constexpr std::int64_t longest = std::numeric_limits<std::int32_t>::max();

struct options {
  std::int64_t length = 0;
  double density = 0.01;
  int ranks = 0;
  double rate_mbit = 0;
  double latency_us = 0;
  std::string machine;
  std::string save_machine;
  std::string tensors;
  double bucket_mib = 25;
  oktopk::detail::allowed_sums sums = oktopk::detail::allowed_sums::unrounded;
};

std::int64_t selected(options const& asked, std::int64_t length) {
  auto const k = std::llround(asked.density * static_cast<double>(length));
  return std::min(length, std::max<std::int64_t>(k, 1));
}

machine_model machine_of(options const& asked, std::int64_t length) {
  machine_model machine;
  if (!asked.machine.empty()) {
    std::ifstream in(asked.machine);
    if (!in) {
      throw std::runtime_error(asked.machine + " cannot be read");
    }
    try {
      machine = oktopk::machine_model::load(in);
    } catch (oktopk::error const& found) {
      throw std::runtime_error(asked.machine + ": " + found.sentence());
    }
  } else {
    machine_model const usual;
    machine = oktopk::machine_model::measure<float, std::int32_t>(space(), oktopk::self_communicator(), length,
                                                                  selected(asked, length));
    machine.latency = usual.latency;
    machine.beside = usual.latency / 10;
    machine.seconds_per_byte = usual.seconds_per_byte;
  }
  if (asked.latency_us > 0) {
    machine.latency = 1e-6 * asked.latency_us;
    machine.beside = std::min(machine.beside, machine.latency);
  }
  machine.seconds_per_byte = asked.rate_mbit > 0 ? 8e-6 / asked.rate_mbit : machine.seconds_per_byte;
  return machine;
}

std::vector<forecast> forecasts(options const& asked, machine_model const& machine, std::int64_t length) {
  auto all = oktopk::catalogue::forecast_all<space, float, std::int32_t>(
      {.length = length, .k = selected(asked, length)}, asked.ranks);
  std::erase_if(all, [&](forecast const& each) { return !oktopk::detail::is_allowed(each, asked.sums); });
  for (forecast& each : all) {
    each.predicted = machine.seconds(each.cost, each.format);
  }
  return all;
}

forecast fastest(std::vector<forecast> const& all) {
  return *std::min_element(all.begin(), all.end(),
                           [](auto const& a, auto const& b) { return a.predicted < b.predicted; });
}

struct tensor {
  std::string name;
  std::int64_t length = 0;
};

std::vector<tensor> read_tensors(std::string const& file) {
  std::ifstream in(file);
  if (!in) {
    throw std::runtime_error(file + " cannot be read");
  }
  std::vector<tensor> list;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    number += 1;
    std::istringstream words(line);
    tensor next;
    std::string length;
    std::string more;
    if (line.find_first_not_of(" \t\r") == line.npos) {
      continue;
    }
    words >> next.name >> length;
    next.length = static_cast<std::int64_t>(oktopk_programs::whole_number_in(length).value_or(0));
    if ((words >> more) || next.length < 1 || next.length > longest) {
      throw std::runtime_error(
          fmt::format("{}, line {}: \"{}\" is not a name and a length of 1 to {}", file, number, line, longest));
    }
    list.push_back(std::move(next));
  }
  if (in.bad()) { // a folder, for one
    throw std::runtime_error(file + " cannot be read");
  }
  if (list.empty()) {
    throw std::runtime_error(file + " names no tensor");
  }
  return list;
}

void print_plan(options const& asked, machine_model const& machine, std::vector<tensor> const& tensors) {
  std::vector<std::int64_t> lengths;
  for (tensor const& each : tensors) {
    lengths.push_back(each.length);
  }
  oktopk::detail::bucket_options how;
  how.bucket_bytes = std::max<std::int64_t>(1, std::llround(asked.bucket_mib * 1024 * 1024));
  auto const plan = oktopk::detail::plan_buckets(lengths, sizeof(float), how);
  double total = 0;
  fmt::print("bucket  tensors        length  predicted ms  scheme\n");
  for (std::size_t i = 0; i < plan.buckets.size(); ++i) {
    auto const& each = plan.buckets[i];
    forecast const best = fastest(forecasts(asked, machine, each.length));
    total += best.predicted;
    fmt::print("{:6}  {:7}  {:12}  {:12.4g}  {}  # {} to {}\n", i, each.tensors.size(), each.length,
               1e3 * best.predicted, best.text, tensors[static_cast<std::size_t>(each.tensors.front())].name,
               tensors[static_cast<std::size_t>(each.tensors.back())].name);
  }
  fmt::print("{} buckets, {:.4g} ms predicted one after another\n", plan.buckets.size(), 1e3 * total);
}

void run(options const& asked) {
  std::vector<tensor> const tensors = asked.tensors.empty() ? std::vector<tensor>() : read_tensors(asked.tensors);
  std::int64_t length = asked.length;
  for (tensor const& each : tensors) {
    length = std::max(length, each.length);
  }
  machine_model const machine = machine_of(asked, length);
  fmt::print("{} values at density {} over {} ranks, {:.4g} Mbit/s, {:.4g} us\n", length, asked.density, asked.ranks,
             8e-6 / machine.seconds_per_byte, 1e6 * machine.latency);
  if (tensors.empty()) {
    std::fputs(oktopk::detail::table_of(forecasts(asked, machine, length)).c_str(), stdout);
  } else {
    print_plan(asked, machine, tensors);
  }
  if (!asked.save_machine.empty()) {
    std::ostringstream text;
    text << machine;
    if (std::error_code ignored; std::filesystem::is_regular_file(asked.save_machine, ignored) ||
                                 !std::filesystem::exists(asked.save_machine, ignored)) {
      oktopk_programs::write_whole(asked.save_machine, text.str());
    } else if (std::ofstream out(asked.save_machine); !(out << text.str()).flush()) { // /dev/stdout, for one
      throw std::runtime_error(asked.save_machine + " cannot be written");
    }
  }
}

int run_program(int argc, char** argv) {
  oktopk_programs::arguments arguments(argc, argv);
  options asked;
  CLI::App app("Predicts how long each scheme takes, the fastest first", "oktopk_advise");
  auto* const length =
      app.add_option("--length", asked.length, "Values of a gradient")->transform(oktopk_programs::whole(1, longest));
  app.add_option("--density", asked.density, "Share of the entries to select")
      ->check(oktopk_programs::fault_of_density)
      ->capture_default_str();
  app.add_option("--ranks", asked.ranks, "Number of ranks")->required()->transform(oktopk_programs::whole(1, 1 << 20));
  app.add_option("--rate", asked.rate_mbit, "Mbit/s of each rank (default: the machine's, or 1000)")
      ->check(oktopk_programs::positive());
  app.add_option("--latency", asked.latency_us, "Microseconds of a message (default: the machine's, or 50)")
      ->check(oktopk_programs::positive());
  app.add_option("--machine", asked.machine,
                 "What --save-machine or a program has written\n(default: this processor is measured, alone)")
      ->type_name("FILE");
  app.add_option("--save-machine", asked.save_machine, "Where to write the machine")->type_name("FILE");
  app.add_option(
         "--tensors", asked.tensors,
         "A name and a length a line, in the order in which\ngradients become ready: prints buckets and their schemes")
      ->type_name("FILE")
      ->excludes(length);
  app.add_option("--bucket-mib", asked.bucket_mib, "MiB of a bucket of --tensors")
      ->check(oktopk_programs::positive())
      ->capture_default_str();
  std::map<std::string, oktopk::detail::allowed_sums> const names{
      {"unrounded", oktopk::detail::allowed_sums::unrounded},
      {"exact", oktopk::detail::allowed_sums::exact},
      {"rounded", oktopk::detail::allowed_sums::rounded}};
  app.add_option("--sums", asked.sums, "Schemes to choose from: unrounded, exact (the bits of ok_topk), rounded")
      ->transform(CLI::CheckedTransformer(names))
      ->default_str("unrounded");
  app.set_version_flag("--version", oktopk_programs::version_text("oktopk_advise"), "Print the version");
  try {
    std::vector<std::string> own(arguments.own().rbegin(), arguments.own().rend());
    app.parse(own);
    if (asked.length == 0 && asked.tensors.empty()) {
      throw CLI::RequiredError("--length or --tensors");
    }
  } catch (CLI::CallForHelp const&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (CLI::CallForVersion const& version) {
    std::printf("%s\n", version.what());
    return 0;
  } catch (CLI::ParseError const& fault) {
    oktopk_programs::complain("oktopk_advise", fault.what());
    return 2;
  }
  if (std::string const fault = arguments.initialize_kokkos(); !fault.empty()) {
    Kokkos::finalize();
    oktopk_programs::complain("oktopk_advise", fault);
    return 2;
  }
  try {
    run(asked);
  } catch (std::exception const& fault) {
    Kokkos::finalize();
    oktopk_programs::complain("oktopk_advise", fault.what());
    return 1;
  }
  Kokkos::finalize();
  return 0;
}

} // namespace
} // namespace oktopk_advise

int main(int argc, char** argv) {
  return oktopk_programs::status_of_output("oktopk_advise", oktopk_advise::run_program(argc, argv));
}
