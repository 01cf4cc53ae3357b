// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Runs all algorithms in simulated worlds: every seed stands for an algorithm, its input, orders of events and, with
// --faults, for what goes wrong. Exits with 1 where a promise was not kept, and says how to see that again.

#include "simulate/scenario.hpp"
#include "simulate/seed_watch.hpp"

#include <Kokkos_Core.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace {

using namespace oktopk_simulate;
using clock_type = std::chrono::steady_clock;

double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

std::string command_of(plan const& all, std::uint64_t seed) {
  std::ostringstream text;
  text << all.program << " --seeds 1 --first-seed " << seed << (all.faults ? " --faults" : "")
       << (all.damage ? " --damage" : "") << (all.checked ? " --checked" : "");
  if (all.deadline != plan().deadline) {
    text << " --deadline " << std::chrono::duration<double>(all.deadline).count();
  }
  if (!all.only.empty()) {
    text << " --only " << all.only;
  }
  return text.str();
}

class teller {
public:
  explicit teller(plan const& all) : all_(all) {}

  void add(scenario const& of, seed_result const& result) {
    sum_ += result.done;
    if (result.wrong) {
      violations_ += 1;
      std::cout << "seed " << of.seed << ": [" << result.wrong->check << "] " << result.wrong->text << "\n  "
                << of.text() << "\n";
      if (!result.faults.empty()) {
        std::cout << "  " << result.faults << "\n";
      }
      std::cout << "  " << command_of(all_, of.seed) << std::endl;
    } else if (all_.verbose) {
      std::cout << "seed " << of.seed << ": " << of.text() << (result.faults.empty() ? "" : "; ") << result.faults
                << std::endl;
    }
    if (seconds_since(last_) > 10) {
      last_ = clock_type::now();
      std::cout << "... " << sums() << std::endl;
    }
  }

  /// Gives the program's exit status.
  int finish() const {
    std::cout << sums() << std::endl;
    return violations_ == 0 && sum_.seeds > 0 ? 0 : 1;
  }

private:
  std::string sums() const {
    std::ostringstream text;
    text << sum_.seeds << " seeds, " << sum_.calls << " calls, " << sum_.events << " events, " << sum_.faulty
         << " runs with faults (" << sum_.broken << " broken, " << sum_.resumed << " resumed by survivors), "
         << violations_ << " violations, " << static_cast<std::int64_t>(seconds_since(start_)) << " s";
    return text.str();
  }

  plan const& all_;
  counts sum_;
  std::int64_t violations_ = 0;
  clock_type::time_point start_ = clock_type::now();
  clock_type::time_point last_ = start_;
};

void run_one(plan const& all, std::uint64_t seed, double seconds, teller& out) {
  watch_seed(seed, seconds, command_of(all, seed));
  scenario const of = draw_scenario(all, seed);
  out.add(of, run_seed(all, of));
  end_watch();
}

// One seed a line, "faults" behind it where it needs them; what follows # is for people.
void run_file(plan all, std::string const& name, double seconds, teller& out) {
  std::ifstream file(name);
  if (!file) {
    throw std::invalid_argument("there is no file " + name);
  }
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::uint64_t seed = 0;
    std::string faults;
    if (words >> seed) {
      words >> faults;
      all.faults = faults == "faults";
      run_one(all, seed, seconds, out);
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  plan all;
  all.program = argv[0];
  double deadline = std::chrono::duration<double>(all.deadline).count();
  double seed_seconds = 100; // a long seed takes 4, and under sanitizers 40
  std::string regressions;

  CLI::App app{"Runs the algorithms of oktopk in simulated worlds, and checks what is promised of them."};
  app.add_option("--seeds", all.seeds, "how many")->capture_default_str();
  app.add_option("--first-seed", all.first, "the first of them")->capture_default_str();
  app.add_flag("--faults", all.faults, "lets ranks die or stop, and messages be late, as each seed says");
  app.add_flag("--damage", all.damage,
               "faults, and messages that are lost, doubled or changed as well; that finds "
               "wrong sums unless the communicators are --checked");
  app.add_flag("--checked", all.checked, "communicators that seal their messages, and the algorithms made for them");
  app.add_option("--deadline", deadline, "virtual seconds that a wait may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--only", all.only, "algorithms with this in their names");
  app.add_option("--seed-seconds", seed_seconds, "seconds of processor time after which a seed counts as hanging")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--regressions", regressions, "a file of seeds to run instead");
  app.add_flag("--verbose", all.verbose, "says what every seed stands for");
  CLI11_PARSE(app, argc, argv);
  all.deadline = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(deadline));

  all.faults = all.faults || all.damage;

  // Not our own arguments, which Kokkos would look through.
  int no_arguments = 0;
  Kokkos::ScopeGuard const kokkos(no_arguments, nullptr);
  teller out(all);
  try {
    if (!regressions.empty()) {
      run_file(all, regressions, seed_seconds, out);
    } else {
      for (std::uint64_t i = 0; i < all.seeds; ++i) {
        run_one(all, all.first + i, seed_seconds, out);
      }
    }
  } catch (std::exception const& caught) {
    std::cerr << all.program << ": " << caught.what() << "\n";
    return 2;
  }
  return out.finish();
}
