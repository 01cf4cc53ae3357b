// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace oktopk_bench {
namespace {

constexpr int most_ranks_in_process = 1024;

std::string joined(std::span<std::string_view const> names) {
  std::string text;
  for (std::string_view const each : names) {
    text += (text.empty() ? "" : ", ") + std::string(each);
  }
  return text;
}

std::vector<std::string> split(std::string const& list) {
  std::vector<std::string> parts;
  std::istringstream text(list);
  for (std::string part; std::getline(text, part, ',');) {
    parts.push_back(part);
  }
  return parts;
}

void declare(CLI::App& app, options& asked, std::string const& known) {
  app.add_option_function<std::string>(
         "--algorithm", [&](std::string const& list) { asked.algorithms = split(list); },
         "Schemes to measure: " + known)
      ->required()
      ->type_name("NAME[,NAME...]");
  app.add_option("--length", asked.length, "Length of a synthetic gradient")->type_name("N");
  app.add_option_function<std::string>(
         "--input", [&](std::string const& list) { asked.inputs = split(list); },
         "Gradient files instead: raw little-endian float32,\n{rank} in the path stands for the rank; several are\n"
         "successive iterations, repeated where --steps asks for more")
      ->type_name("PATTERN[,PATTERN...]");
  app.add_option("--density", asked.density, "Share of the entries to select, in (0, 1]")->type_name("D");
  app.add_option("--k", asked.k, "Number of entries to select")->type_name("K");
  app.add_option("--steps", asked.steps, "Steps to measure (default: 10, or one for each pattern)")->type_name("S");
  app.add_option("--warmup", asked.warmup, "Steps before these that are not measured (default: 0)")->type_name("W");
  app.add_option("--local-select", asked.local_select, "Local selection of ok_topk: exact (default), reused")
      ->type_name("NAME");
  app.add_option("--global-select", asked.global_select, "Global selection of ok_topk: exact (default), reused")
      ->type_name("NAME");
  app.add_option("--partition", asked.partition, "Regions of ok_topk: uniform, balanced, evened (default)")
      ->type_name("NAME");
  app.add_option("--tau", asked.tau, "Steps from one repartition to the next (default: 64)")->type_name("T");
  app.add_option("--tau-prime", asked.tau_prime, "Steps a reused threshold holds (default: 32)")->type_name("T");
  app.add_option("--codec", asked.codec,
                 "What ring_chunked and recursive_doubling code their messages with:\nidentity, bfloat16, block_float, "
                 "zfp (default: nothing)")
      ->type_name("NAME");
  app.add_option("--rate", asked.rate, "Bits a value of block_float and zfp, 4 to 16 (default: 8)")->type_name("BITS");
  app.add_option(
         "--codec-level", asked.codec_level,
         "Where they code: once a collective (default), or once a message, the\nnaive form: collective, message")
      ->type_name("NAME");
  app.add_option("--seed", asked.seed, "Seed of the synthetic gradients (default: 1)")->type_name("SEED");
  app.add_option("--csv", asked.csv, "Write one row per algorithm and step to this file")->type_name("FILE");
  app.add_option("--dump", asked.dump, "Write each algorithm's last result to this folder")->type_name("DIR");
  app.add_option("--in-process", asked.in_process, "Run P ranks inside this process, without MPI")->type_name("P");
  app.add_flag_callback(
      "--no-verify", [&] { asked.verify = false; }, "Do not compare the results with an independent reference");
  app.add_flag("--quality", asked.quality, "Compare the results with the dense sum: the paper's xi, share captured");
}

std::string not_one_of(std::string const& option, std::string const& given, std::string const& known) {
  return option + " does not know \"" + given + "\"; it knows " + known;
}

std::string below(std::string const& option, std::int64_t given, std::int64_t least) {
  return option + " must be at least " + std::to_string(least) + ", not " + std::to_string(given);
}

constexpr std::string_view known_codecs[] = {"identity", "bfloat16", "block_float", "zfp"};

bool has_rate(std::string const& codec) {
  return codec == "block_float" || codec == "zfp";
}

std::string fault_of_codec(options const& asked) {
  if (asked.codec.empty()) {
    if (asked.rate) {
      return "--rate needs a --codec that has one: block_float or zfp";
    }
    return asked.codec_level ? "--codec-level needs a --codec" : std::string();
  }
  if (std::find(std::begin(known_codecs), std::end(known_codecs), asked.codec) == std::end(known_codecs)) {
    return not_one_of("--codec", asked.codec, joined(known_codecs));
  }
#ifndef OKTOPK_BENCH_WITH_ZFP
  if (asked.codec == "zfp") {
    return "--codec zfp is not in this program, which was built without libzfp";
  }
#endif
  if (std::none_of(asked.algorithms.begin(), asked.algorithms.end(), takes_codec)) {
    return "--codec is for ring_chunked and recursive_doubling, neither of which --algorithm names";
  }
  if (asked.rate && !has_rate(asked.codec)) {
    return "--rate is for block_float and zfp: " + asked.codec + " has no rate to choose";
  }
  if (asked.rate && (*asked.rate < 4 || *asked.rate > 16)) {
    return "--rate must be from 4 to 16, not " + std::to_string(*asked.rate);
  }
  if (asked.codec_level && *asked.codec_level != "collective" && *asked.codec_level != "message") {
    return not_one_of("--codec-level", *asked.codec_level, "collective and message");
  }
  return {};
}

// The faults that a single option can have.
std::string fault_of_one(options const& asked, std::span<std::string_view const> known_algorithms) {
  if (asked.algorithms.empty()) {
    return "--algorithm names nothing; it knows " + joined(known_algorithms);
  }
  for (auto each = asked.algorithms.begin(); each != asked.algorithms.end(); ++each) {
    if (std::find(known_algorithms.begin(), known_algorithms.end(), *each) == known_algorithms.end()) {
      return not_one_of("--algorithm", *each, joined(known_algorithms));
    }
    if (std::find(asked.algorithms.begin(), each, *each) != each) {
      return "--algorithm names \"" + *each + "\" twice";
    }
  }
  if (asked.local_select != "exact" && asked.local_select != "reused") {
    return not_one_of("--local-select", asked.local_select, "exact and reused");
  }
  if (asked.global_select != "exact" && asked.global_select != "reused") {
    return not_one_of("--global-select", asked.global_select, "exact and reused");
  }
  if (asked.partition != "uniform" && asked.partition != "balanced" && asked.partition != "evened") {
    return not_one_of("--partition", asked.partition, "uniform, balanced and evened");
  }
  if (std::string const fault = fault_of_codec(asked); !fault.empty()) {
    return fault;
  }
  for (std::string const& pattern : asked.inputs) {
    if (pattern.find("{rank}") == std::string::npos) {
      return "--input \"" + pattern + "\" has no {rank} in it, so all ranks would read one file";
    }
  }
  if (asked.length && *asked.length < 1) {
    return below("--length", *asked.length, 1);
  }
  if (asked.k && *asked.k < 0) {
    return below("--k", *asked.k, 0);
  }
  if (asked.density && !(*asked.density > 0 && *asked.density <= 1)) {
    std::ostringstream given;
    given << *asked.density;
    return "--density must be over 0 and at most 1, not " + given.str();
  }
  if (asked.steps && *asked.steps < 1) {
    return below("--steps", *asked.steps, 1);
  }
  if (asked.warmup < 0) {
    return below("--warmup", asked.warmup, 0);
  }
  if (asked.tau && *asked.tau < 1) {
    return below("--tau", *asked.tau, 1);
  }
  if (asked.tau_prime && *asked.tau_prime < 1) {
    return below("--tau-prime", *asked.tau_prime, 1);
  }
  if (asked.in_process && (*asked.in_process < 1 || *asked.in_process > most_ranks_in_process)) {
    return "--in-process must be between 1 and " + std::to_string(most_ranks_in_process) + ", not " +
           std::to_string(*asked.in_process);
  }
  return {};
}

std::string fault_of_pairs(options const& asked) {
  if (asked.density.has_value() == asked.k.has_value()) {
    return asked.k ? "--density and --k exclude each other" : "one of --density and --k is needed";
  }
  bool const reuses = asked.local_select == "reused" || asked.global_select == "reused";
  if (reuses && asked.partition != "evened") {
    return "--partition " + asked.partition + " goes with exact selections only";
  }
  if (asked.length.has_value() != asked.inputs.empty()) {
    return asked.length ? "--length and --input exclude each other" : "one of --length and --input is needed";
  }
  if (asked.k && asked.length && *asked.k > *asked.length) {
    return "--k " + std::to_string(*asked.k) + " exceeds --length " + std::to_string(*asked.length);
  }
  return {};
}

} // namespace

bool takes_codec(std::string_view algorithm) {
  return algorithm == "ring_chunked" || algorithm == "recursive_doubling";
}

std::string label(std::string const& algorithm, options const& asked) {
  if (asked.codec.empty() || !takes_codec(algorithm)) {
    return algorithm;
  }
  return algorithm + "_" + asked.codec + (has_rate(asked.codec) ? std::to_string(asked.rate.value_or(8)) : "") +
         (asked.codec_level == "message" ? "_message" : "");
}

std::int64_t options::measured_steps() const {
  return steps.value_or(inputs.empty() ? 10 : static_cast<std::int64_t>(inputs.size()));
}

std::int64_t options::entries_of(std::int64_t all) const {
  std::int64_t const share = density ? std::llround(*density * static_cast<double>(all)) : 0;
  return k.value_or(std::min(all, std::max<std::int64_t>(share, 1)));
}

command_line read_command_line(std::vector<std::string> const& arguments,
                               std::span<std::string_view const> known_algorithms) {
  command_line read;
  CLI::App app("Measures sparse and dense allreduce: time, words on the wire, balance.", "oktopk_bench");
  declare(app, read.asked, joined(known_algorithms));
  // CLI11 takes the arguments last first.
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
  read.fault = fault_of_one(read.asked, known_algorithms);
  if (read.fault.empty()) {
    read.fault = fault_of_pairs(read.asked);
  }
  return read;
}

std::string describe(options const& asked) {
  std::ostringstream text;
  text.precision(17);
  auto const optional = [&](char const* name, auto const& value) {
    if (value) {
      text << " --" << name << ' ' << *value;
    }
  };
  auto const list = [&](char const* name, std::vector<std::string> const& values) {
    for (std::string const& each : values) {
      text << " --" << name << ' ' << each;
    }
  };
  list("algorithm", asked.algorithms);
  optional("length", asked.length);
  list("input", asked.inputs);
  optional("density", asked.density);
  optional("k", asked.k);
  text << " --steps " << asked.measured_steps() << " --warmup " << asked.warmup;
  text << " --local-select " << asked.local_select << " --global-select " << asked.global_select;
  text << " --partition " << asked.partition;
  optional("tau", asked.tau);
  optional("tau-prime", asked.tau_prime);
  text << (asked.codec.empty() ? "" : " --codec " + asked.codec);
  optional("rate", asked.rate);
  optional("codec-level", asked.codec_level);
  text << " --seed " << asked.seed << (asked.csv.empty() ? "" : " --csv " + asked.csv)
       << (asked.dump.empty() ? "" : " --dump " + asked.dump) << (asked.verify ? "" : " --no-verify")
       << (asked.quality ? " --quality" : "");
  return text.str();
}

} // namespace oktopk_bench
