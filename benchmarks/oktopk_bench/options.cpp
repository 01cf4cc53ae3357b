// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.hpp"

#include "entries.hpp"
#include "input.hpp"

#include "programs/arguments.hpp"
#include "programs/numbers.hpp"
#include "programs/options.hpp"

#include <oktopk/catalogue/option_reader.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace oktopk_bench {
namespace {

// Each algorithm once; whether the catalogue knows them, making them tells.
std::string fault_of_algorithms(std::string const& list) {
  auto names = oktopk::detail::split_list(list);
  std::sort(names.begin(), names.end());
  auto const twice = std::adjacent_find(names.begin(), names.end());
  if (names.empty()) {
    return "names nothing";
  }
  return twice == names.end() ? std::string() : "names \"" + *twice + "\" twice";
}

std::string fault_of_patterns(std::string const& list) {
  try {
    for (std::string const& pattern : patterns_in(list)) {
      path_of_rank(pattern, 0);
    }
    return {};
  } catch (local_fault const& fault) {
    return fault.what();
  }
}

constexpr std::int64_t most_steps = 1'000'000'000;

void declare(CLI::App& app, options& asked) {
  app.add_option_function<std::string>(
         "--algorithm", [&](std::string const& list) { asked.algorithms = oktopk::detail::split_list(list); },
         "Schemes to measure, such as ring,ok_topk(local_select=reused, tau=32); --list tells all")
      ->check(fault_of_algorithms)
      ->type_name("NAME[(KEY=VALUE,...)][,...]");
  auto* const source = app.add_option_group("Gradients")->require_option(1);
  source->add_option("--length", asked.length, "Length of a synthetic gradient")->transform(oktopk_programs::whole(1));
  source
      ->add_option_function<std::vector<std::string>>(
          "--input",
          [&](std::vector<std::string> const& lists) {
            for (std::string const& list : lists) {
              auto const patterns = patterns_in(list);
              asked.inputs.insert(asked.inputs.end(), patterns.begin(), patterns.end());
            }
          },
          "Gradient files instead: .npy, or raw little-endian\nfloat32; {rank} in the path stands for the rank, "
          "{rank:02}\nfor two digits; several are successive iterations,\nrepeated where --steps asks for more")
      ->check(fault_of_patterns)
      ->type_name("PATTERN[,PATTERN...]");
  auto* const size = app.add_option_group("Selection")->require_option(1);
  size->add_option("--density", asked.density, "Share of the entries to select, in (0, 1]")
      ->check(oktopk_programs::fault_of_density);
  size->add_option("--k", asked.k, "Number of entries to select")->transform(oktopk_programs::whole(0));
  app.add_option("--steps", asked.steps, "Steps to measure (default: 10, or one for each pattern)")
      ->transform(oktopk_programs::whole(1, most_steps));
  app.add_option("--warmup", asked.warmup, "Steps before these that are not measured (default: 0)")
      ->transform(oktopk_programs::whole(0, most_steps));
  app.add_option("--seed", asked.seed, "Seed of the synthetic gradients (default: 1)")
      ->transform(oktopk_programs::whole_unsigned(0, std::numeric_limits<std::uint64_t>::max()));
  app.add_option("--operation", asked.operation,
                 "allreduce of gradients (default), or sparse_sum:\nof vectors that are sparse already, by the schemes "
                 "sparse_sum,\n"
                 "gather_and_sum and all that are dense")
      ->check(CLI::IsMember({"allreduce", "sparse_sum"}));
  app.add_option("--skew", asked.skew, "How entries of sparse_sum lie: zipf (default), uniform, blocks")
      ->check(entries_source::fault_of_skew);
  app.add_option("--width", asked.width, "Values of an entry of sparse_sum (default: 1)")
      ->transform(oktopk_programs::whole(1, 1 << 20));
  app.add_option("--csv", asked.csv, "Write one row per algorithm and step to this file")->type_name("FILE");
  app.add_option("--dump", asked.dump, "Write each algorithm's last result to this folder")->type_name("DIR");
  auto* const in_process =
      app.add_option("--in-process", asked.in_process, "Run P ranks inside this process, without MPI")
          ->transform(oktopk_programs::whole(1, 1024))
          ->type_name("P");
  oktopk_programs::add_deadline(app, asked.deadline);
  auto* const checked =
      app.add_flag("--checked", asked.checked, "Seal every message with a checksum, which the receiver verifies");
  app.add_flag("--over-tcp", asked.over_tcp, "MPI starts the ranks, and oktopk/tcp.hpp moves what is measured")
      ->excludes(in_process)
      ->excludes(checked);
  app.add_flag("--verify,!--no-verify", asked.verify, "Compare the results with an independent reference (default)");
  app.add_flag("--control", asked.control, "List messages and words of the last step by purpose");
  app.add_flag("--quality", asked.quality, "Compare the results with the dense sum: the paper's xi, share captured");
}

} // namespace

std::int64_t options::measured_steps() const {
  return steps.value_or(inputs.empty() ? 10 : static_cast<std::int64_t>(inputs.size()));
}

std::int64_t options::entries_of(std::int64_t all) const {
  std::int64_t const share = density ? std::llround(*density * static_cast<double>(all)) : 0;
  return k.value_or(std::min(all, std::max<std::int64_t>(share, 1)));
}

command_line read_command_line(std::vector<std::string> const& arguments, std::string const& list) {
  command_line read;
  for (std::string const& argument : arguments) {
    read.line += " " + argument;
  }
  CLI::App app("Measures sparse and dense allreduce: time, words on the wire, balance.", "oktopk_bench");
  app.add_flag_callback(
      "--list", [&] { throw CLI::Success(); }, "Print all algorithms and their options");
  app.set_version_flag("--version", oktopk_programs::version_text("oktopk_bench"), "Print the version");
  declare(app, read.asked);
  app.get_option("--algorithm")->required();
  // CLI11 takes the arguments last first.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (CLI::CallForHelp const&) {
    read.text = app.help();
  } catch (CLI::CallForVersion const& version) {
    read.text = version.what() + std::string("\n");
  } catch (CLI::Success const&) {
    read.text = list;
  } catch (CLI::ParseError const& fault) {
    if (app.count("--list") > 0 && dynamic_cast<CLI::RequiredError const*>(&fault) != nullptr) {
      read.text = list; // CLI11 2.6 asks for what is required before it calls back
      return read;
    }
    // CLI11 complains of what is missing first, and names what it does not know last first. A value alone may be left
    // over because an option before it took another for its own.
    auto const unknown = app.remaining();
    bool const first =
        dynamic_cast<CLI::ExtrasError const*>(&fault) != nullptr ||
        std::any_of(unknown.begin(), unknown.end(), [](auto const& each) { return each.starts_with('-'); });
    read.fault = first ? "not expected:" : fault.what();
    for (std::size_t i = 0; first && i < unknown.size(); ++i) {
      read.fault += " " + unknown[i];
    }
  }
  if (read.asked.operation == "sparse_sum" && read.fault.empty() && read.text.empty() &&
      (!read.asked.length || !read.asked.density || read.asked.checked || read.asked.over_tcp || read.asked.quality ||
       !read.asked.dump.empty())) {
    read.fault = "--operation sparse_sum goes with --length and --density, and without --checked, --over-tcp, "
                 "--quality and --dump";
  }
#ifndef OKTOPK_BENCH_WITH_MPI
  if (read.asked.over_tcp && read.fault.empty() && read.text.empty()) {
    read.fault = "this program was built without MPI: there is no --over-tcp";
  }
#endif
#ifndef OKTOPK_BENCH_WITH_XXHASH
  if (read.asked.checked && read.fault.empty() && read.text.empty()) {
    read.fault = "this program was built without xxHash, which --checked needs (Debian: libxxhash-dev)";
  }
#endif
  return read;
}

} // namespace oktopk_bench
