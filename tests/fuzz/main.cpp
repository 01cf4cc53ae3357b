// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Tries all algorithms with inputs, options, states and files drawn from a seed, and checks what the documentation
// promises. Exits with 1 where a promise was not kept.

#include "fuzz/plan.hpp"
#include "fuzz/report.hpp"
#include "fuzz/self_test.hpp"
#include "fuzz/subjects.hpp"
#include "fuzz/worker.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>

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

sabotage sabotage_named(std::string const& name) {
  if (name == "crashes") {
    return sabotage::crashes;
  }
  if (name == "hangs") {
    return sabotage::hangs;
  }
  for (named_sabotage const& each : all_sabotage) {
    if (name == each.name) {
      return each.what;
    }
  }
  return sabotage::none;
}

// Worker after worker: each goes on behind the case in which the last one found something.
int run(plan all) {
  report out(all);
  auto const start = std::chrono::steady_clock::now();
  std::uint64_t const end = all.cases > std::numeric_limits<std::uint64_t>::max() - all.first
                                ? std::numeric_limits<std::uint64_t>::max()
                                : all.first + all.cases;
  plan rest = all;
  while (rest.first < end) {
    double const left = all.seconds - std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (left <= 0) {
      break;
    }
    rest.cases = end - rest.first;
    work_done const done = work(rest, left, false, [&](counts const& so_far) { out.progress(so_far); });
    out.add(done.done);
    if (!done.wrong) {
      break;
    }
    out.found(done);
    rest.first = done.at_case + 1;
  }
  return out.finish();
}

} // namespace

int main(int argc, char** argv) {
  plan all;
  all.program = argv[0];
  std::string only;
  std::string on_purpose;
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
                 "leaves out some of: twin, damage, file, refusal, sgd, options, poison, feedback")
      ->delimiter(',');
  app.add_option("--case-seconds", all.case_seconds, "seconds of processor time after which a case counts as hanging")
      ->capture_default_str();
  app.add_flag("!--no-shrink", all.shrinks, "leave cases with findings as they are");
  app.add_flag("--here", here, "run in this process, for a debugger; stops at the first finding");
  app.add_flag("--list", list, "name all subjects");
  app.add_flag("--self-test", test_itself, "put defects in on purpose and see that they are found");
  app.add_option("--sabotage", on_purpose, "put in this kind of defect");
  CLI11_PARSE(app, argc, argv);

  all.subjects = chosen_subjects(only);
  all.on_purpose = sabotage_named(on_purpose);
  if (all.subjects.empty() || (!on_purpose.empty() && all.on_purpose == sabotage::none)) {
    std::cerr << argv[0] << ": there is no such subject or defect\n";
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
    std::cout << all.subject_of(all.first).name << ": "
              << in_words(draw_case(all.subject_of(all.first), all.seed, all.first, all.staged, all.within)) << "\n";
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
