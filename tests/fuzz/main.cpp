// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Tries all algorithms with inputs, options, states and files drawn from a seed, and checks what the documentation
// promises. Exits with 1 where a promise was not kept.

#include "fuzz/subjects.hpp"
#include "fuzz/worker.hpp"

#include <CLI/CLI.hpp>
#include <Kokkos_Core.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>

namespace {

using namespace oktopk_fuzz;

// The one of this name; or all that have it in their names.
std::vector<facts> chosen_subjects(std::string const& only) {
  std::vector<facts> chosen;
  for (facts const& each : all_facts()) {
    if (each.name == only) {
      return {each};
    }
    if (each.name.find(only) != std::string::npos) {
      chosen.push_back(each);
    }
  }
  return chosen;
}

// A finding, with the command that shows it again.
void print(plan all, work_done what, bool shrinks) {
  if (shrinks) {
    all.within = shrink(all, what);
  }
  std::cout << "FOUND [" << what.wrong->check << "] " << all.subject_of(what.at_case).name << ", call " << what.at_call
            << ": " << what.wrong->text << "\n  case:  " << in_words(all.drawn(what.at_case))
            << "\n  again: " << command_of(all, what.at_case) << std::endl;
}

// Worker after worker: each goes on behind the case in which the last one found something.
int run(plan const& all) {
  auto const start = std::chrono::steady_clock::now();
  auto const seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  counts sum;
  int findings = 0;
  std::map<std::string, int> times; // by check and kind of algorithm
  for (plan rest = all; rest.cases > 0 && seconds() < all.seconds;) {
    work_done const done = work(rest, all.seconds - seconds(), false);
    sum += done.done;
    if (!done.wrong) {
      break;
    }
    findings += 1;
    std::string const& name = all.subject_of(done.at_case).name;
    int const now = ++times[done.wrong->check + " of " + name.substr(0, name.find('.'))];
    if (now <= 3) { // later ones are counted, and listed at the end
      print(all, done, now == 1 && all.shrinks);
    }
    rest.cases -= done.at_case + 1 - rest.first;
    rest.first = done.at_case + 1;
  }
  std::cout << sum.cases << " cases, " << sum.calls << " calls, " << sum.rank_calls << " calls of a rank, " << sum.threw
            << " calls that threw and " << sum.refusals << " objects, states and files that were refused as promised, "
            << findings << " findings, in " << static_cast<int>(seconds()) << " s\n";
  for (auto const& [key, count] : times) {
    std::cout << "  " << count << " x " << key << "\n";
  }
  return findings == 0 ? 0 : 1;
}

// Puts each mutation into cases of a run that has no findings, and sees that it becomes one.
int self_test(plan const& all) {
  // Not our own arguments, which Kokkos would look through.
  int no_arguments = 0;
  Kokkos::ScopeGuard const kokkos(no_arguments, nullptr);
  bool all_found = true;
  for (auto const& [name, what] : mutations) {
    int had_it = 0;
    int found = 0;
    for (std::uint64_t i = 0; had_it < 20 && i < all.cases && what < mutation::crashes; ++i) {
      facts const& about = all.subject_of(i);
      if ((what == mutation::flips_bit && about.kind == family::dense) // whose sums may round in any order
          || run_case(about, all.drawn(i)).wrong) {                    // a real one
        continue;
      }
      case_result const result = run_case(about, all.drawn(i), what);
      had_it += result.done.mutated > 0 ? 1 : 0;
      found += result.done.mutated > 0 && result.wrong ? 1 : 0;
    }
    if (what < mutation::crashes) {
      std::cout << name << ": found in " << found << " of " << had_it << " cases" << std::endl;
      all_found = all_found && had_it > 0 && found == had_it;
    }
  }
  return all_found ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  plan all;
  all.program = argv[0];
  std::string only;
  std::int64_t one_case = -1;
  bool list = false;
  bool here = false;
  bool test_itself = false;

  CLI::App app{"Tries all algorithms of oktopk with what is drawn from a seed, and checks what is promised."};
  app.add_option("--seed", all.seed, "what everything is drawn from")->capture_default_str();
  app.add_option("--cases", all.cases, "cases to run; until interrupted unless this or --seconds is given");
  app.add_option("--seconds", all.seconds, "seconds after which no more cases are begun");
  app.add_option("--only", only, "the subject of this name, or those with this in their names");
  app.add_flag("--staged", all.staged, "a communicator that reaches no memory, so that all that travels is copied");
  app.add_option("--case", one_case, "run one case again, and say what it is");
  app.add_option("--ranks", all.within.ranks, "so many ranks, whatever is drawn");
  app.add_option("--calls", all.within.calls, "at most so many calls");
  app.add_option("--length", all.within.length, "gradients of this length");
  app.add_option("--k", all.within.k, "this k");
  app.add_option("--without", all.within.without,
                 "leaves out some of: replica, damage, file, refusal, sgd, options, poison, feedback")
      ->delimiter(',');
  app.add_option("--case-seconds", all.case_seconds, "seconds of processor time after which a case counts as hanging")
      ->capture_default_str();
  app.add_flag("!--no-shrink", all.shrinks, "leave cases with findings as they are");
  app.add_flag("--here", here, "run in this process, for a debugger; stops at the first finding");
  app.add_flag("--list", list, "name all subjects");
  app.add_flag("--self-test", test_itself, "put mutations in and see that they are found");
  app.add_option("--mutation", all.on_purpose, "put in this defect")->transform(CLI::Transformer(mutations));
  CLI11_PARSE(app, argc, argv);

  all.subjects = chosen_subjects(only);
  if (all.subjects.empty()) {
    std::cerr << argv[0] << ": there is no such subject\n";
    return 2;
  }
  if (list) {
    for (facts const& each : all.subjects) {
      std::cout << each.name << "\n";
    }
    return 0;
  }
  if (one_case >= 0) {
    all.first = static_cast<std::uint64_t>(one_case);
    all.cases = 1;
    std::cout << all.subject_of(all.first).name << ": " << in_words(all.drawn(all.first)) << "\n";
  }
  if (test_itself) {
    return self_test(all);
  }
  if (here) {
    work_done const done = work_here(all);
    if (done.wrong) {
      std::cout << "case " << done.at_case << ", call " << done.at_call << ": [" << done.wrong->check << "] "
                << done.wrong->text << "\n";
    }
    return done.wrong ? 1 : 0;
  }
  return run(all);
}
