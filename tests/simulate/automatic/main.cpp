// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Runs `automatic` in simulated worlds whose ranks have clocks of their own: every seed stands for speeds, networks that
// change, what a rank does wrong and what breaks. Exits with 1 where ranks disagreed or another promise was not kept,
// and says how to see that again.

#include "simulate/automatic/seed.hpp"
#include "simulate/seed_watch.hpp"

#include <Kokkos_Core.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

std::chrono::steady_clock::time_point real_now() asm("__real__ZNSt6chrono3_V212steady_clock3nowEv");
std::chrono::steady_clock::time_point now_of_rank() asm("__wrap__ZNSt6chrono3_V212steady_clock3nowEv");

// What all code of this program calls for std::chrono::steady_clock::now().
std::chrono::steady_clock::time_point now_of_rank() {
  using clock = std::chrono::steady_clock;
  auto* const rank = oktopk_simulate::rank_clock::at_work;
  return rank == nullptr ? real_now()
                         : clock::time_point(std::chrono::duration_cast<clock::duration>(
                               std::chrono::duration<double>(rank->seconds())));
}

namespace {

using namespace oktopk_simulate;

class teller {
public:
  teller(std::string program, std::uint64_t seeds, bool verbose)
      : program_(std::move(program)), seeds_(seeds), verbose_(verbose) {}

  std::string command_of(std::uint64_t seed) const {
    return program_ + " --seeds 1 --first-seed " + std::to_string(seed) + " --verbose";
  }

  void add(automatic_scenario const& of, automatic_result const& result) {
    sum_ += result.done;
    if (result.wrong) {
      violations_ += 1;
      std::cout << "seed " << of.seed << ": [" << result.wrong->check << "] " << result.wrong->text << "\n  "
                << of.text() << (result.faults.empty() ? "" : "; ") << result.faults << "\n  " << command_of(of.seed)
                << std::endl;
    } else if (verbose_) {
      std::cout << "seed " << of.seed << ": " << of.text() << (result.faults.empty() ? "" : "; ") << result.faults
                << std::endl;
    }
    if (seconds() - last_ > 10) {
      last_ = seconds();
      std::cout << "... " << sums() << std::endl;
    }
  }

  /// Gives the program's exit status.
  int finish() const {
    std::cout << sums() << std::endl;
    return violations_ == 0 && sum_.seeds > 0 ? 0 : 1;
  }

private:
  static double seconds() { return std::chrono::duration<double>(real_now().time_since_epoch()).count(); }

  std::string sums() const {
    std::ostringstream text;
    text << sum_.seeds << " of " << seeds_ << " seeds, " << sum_.calls << " calls (" << sum_.apart
         << " that ranks timed differently), " << sum_.switches << " switches and " << sum_.changes
         << " changes of scheme, " << sum_.mistakes << " mistakes of one rank, " << sum_.faulty
         << " runs with a fault (" << sum_.broken << " broken), " << sum_.disagreements << " disagreements, "
         << violations_ << " violations, " << static_cast<std::int64_t>(seconds() - start_) << " s";
    return text.str();
  }

  std::string program_;
  std::uint64_t seeds_;
  bool verbose_;
  automatic_counts sum_;
  std::int64_t violations_ = 0;
  double start_ = seconds();
  double last_ = start_;
};

} // namespace

int main(int argc, char** argv) {
  std::uint64_t seeds = 10000;
  std::uint64_t first = 1;
  double seed_seconds = 100;
  bool verbose = false;
  CLI::App app{
      "Runs the automatic choice of oktopk in simulated worlds, and checks that ranks agree and lose nothing."};
  app.add_option("--seeds", seeds, "how many")->capture_default_str();
  app.add_option("--first-seed", first, "the first of them")->capture_default_str();
  app.add_option("--seed-seconds", seed_seconds, "seconds of processor time after which a seed counts as hanging")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--verbose", verbose, "says what every seed stands for");
  CLI11_PARSE(app, argc, argv);

  int no_arguments = 0; // not our own, which Kokkos would look through
  Kokkos::ScopeGuard const kokkos(no_arguments, nullptr);
  teller out(argv[0], seeds, verbose);
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    watch_seed(seed, seed_seconds, out.command_of(seed));
    automatic_scenario const of = draw_automatic(seed);
    out.add(of, run_automatic(of));
    end_watch();
  }
  return out.finish();
}
