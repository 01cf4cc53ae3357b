// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Runs all algorithms in simulated worlds: every seed stands for an algorithm, its input, orders of events and, with
// --faults, for what goes wrong. Exits with 1 where a promise was not kept, and says how to see that again.

#include "simulate/scenario.hpp"
#include "simulate/seed_watch.hpp"
#include "support/replaced_clock.hpp"

#include <Kokkos_Core.hpp>

#include <CLI/CLI.hpp>

#include <iostream>
#include <numeric>
#include <optional>

namespace {

using namespace oktopk_simulate;

// Of the rank that is at work.
std::optional<std::chrono::steady_clock::time_point> now_of_rank() {
  using clock = std::chrono::steady_clock;
  auto* const rank = rank_clock::at_work;
  return rank == nullptr ? std::nullopt
                         : std::optional(clock::time_point(std::chrono::duration_cast<clock::duration>(
                               std::chrono::duration<double>(rank->seconds()))));
}

std::string command_of(plan const& all, std::uint64_t seed) {
  using oktopk_fuzz::text_of;
  double const deadline = std::chrono::duration<double>(all.deadline).count();
  return text_of(all.program, " --seeds 1 --first-seed ", seed, all.faults ? " --faults" : "",
                 all.damage ? " --damage" : "", all.checked ? " --checked" : "",
                 all.deadline == plan().deadline ? "" : text_of(" --deadline ", deadline),
                 all.only.empty() ? "" : " --only '" + all.only + "'");
}

// Gives whether all promises were kept.
bool run_one(plan const& all, std::uint64_t seed, double seconds, counts& done) {
  watch_seed(seed, seconds, command_of(all, seed));
  scenario const of = draw_scenario(all, seed);
  auto const wrong = run_seed(all, of, done);
  end_watch();
  if (wrong) {
    std::cout << "seed " << seed << ": [" << wrong->check << "] " << wrong->text << "\n  " << of.of->about.name << ": "
              << oktopk_fuzz::in_words(of.what) << "\n  " << command_of(all, seed) << std::endl;
  }
  return !wrong;
}

} // namespace

int main(int argc, char** argv) {
  plan all;
  all.clocks = oktopk_tests::can_replace_clock;
  oktopk_tests::replaced_clock = now_of_rank;
  all.program = argv[0];
  double deadline = std::chrono::duration<double>(all.deadline).count();
  double seed_seconds = 100; // a long seed takes 4, and under sanitizers 40
  std::vector<std::uint64_t> seeds;

  CLI::App app{"Runs the algorithms of oktopk in simulated worlds, and checks what is promised of them."};
  app.add_option("--seeds", all.seeds, "how many")->capture_default_str();
  app.add_option("--first-seed", all.first, "the first of them")->capture_default_str();
  app.add_flag("--faults", all.faults, "lets ranks die or stop, and messages be late, as each seed says");
  app.add_flag("--damage", all.damage,
               "faults, and messages that are lost, doubled or changed as well; that finds "
               "wrong sums unless the communicators are --checked");
  app.add_flag("--checked", all.checked, "communicators that seal their messages");
  app.add_option("--deadline", deadline, "virtual seconds that a wait may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--only", all.only, "algorithms with this in their names");
  app.add_option("--seed-seconds", seed_seconds, "seconds of processor time after which a seed counts as hanging")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--only-seeds", seeds, "these instead");
  CLI11_PARSE(app, argc, argv);
  all.deadline = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(deadline));

  all.faults = all.faults || all.damage;

  if (seeds.empty()) {
    seeds.resize(all.seeds);
    std::iota(seeds.begin(), seeds.end(), all.first);
  }

  // Not our own arguments, which Kokkos would look through.
  int no_arguments = 0;
  Kokkos::ScopeGuard const kokkos(no_arguments, nullptr);
  auto const start = std::chrono::steady_clock::now();
  counts sum;
  std::int64_t violations = 0;
  try {
    for (std::uint64_t const seed : seeds) {
      violations += run_one(all, seed, seed_seconds, sum) ? 0 : 1;
    }
  } catch (std::exception const& caught) {
    std::cerr << all.program << ": " << caught.what() << "\n";
    return 2;
  }
  std::cout << sum.seeds << " seeds, " << sum.calls << " calls, " << sum.events << " events, " << sum.faulty
            << " runs with faults (" << sum.broken << " broken, " << sum.resumed << " resumed by survivors), "
            << sum.changes << " changes of a chosen scheme, " << violations << " violations, "
            << std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start).count()
            << " s" << std::endl;
  return violations == 0 && sum.seeds > 0 ? 0 : 1;
}
