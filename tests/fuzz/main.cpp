// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Tries all algorithms with inputs, options and states drawn from a seed, and checks what the documentation
// promises. Exits with 1 where a promise was not kept.

#include "fuzz/mutation.hpp"
#include "fuzz/worker.hpp"

#include <CLI/CLI.hpp>
#include <Kokkos_Core.hpp>

#include <chrono>
#include <iostream>

namespace {

using namespace oktopk_fuzz;

// Worker after worker: each goes on behind the case in which the last one found something. A finding comes with the
// command that shows it again.
int run(plan const& all) {
  auto const start = std::chrono::steady_clock::now();
  auto const seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  int findings = 0;
  std::set<std::string> shrunk; // one of each promise and kind of algorithm
  for (plan rest = all; rest.cases > 0 && seconds() < all.seconds;) {
    work_done done = work(rest, all.seconds - seconds());
    if (!done.wrong) {
      break;
    }
    findings += 1;
    rest.cases -= done.at_case + 1 - rest.first;
    rest.first = done.at_case + 1;
    plan smaller = all;
    std::string const& name = all.subject_of(done.at_case).about.name;
    if (all.shrinks && shrunk.insert(done.wrong->check + " of " + name.substr(0, name.find('('))).second) {
      smaller.within = shrink(all, done);
    }
    std::cout << "FOUND [" << done.wrong->check << "] " << name << ": " << done.wrong->text
              << "\n  case:  " << in_words(smaller.drawn(done.at_case))
              << "\n  again: " << command_of(smaller, done.at_case) << std::endl;
  }
  counts const& sum = work_in_all();
  std::cout << sum.cases << " cases, " << sum.calls << " calls, " << sum.rank_calls << " calls of a rank, " << sum.threw
            << " calls that threw and " << sum.refusals << " objects and states that were refused as promised, "
            << findings << " findings, in " << static_cast<int>(seconds()) << " s\n";
  return findings == 0 ? 0 : 1;
}

// Puts each mutation into cases of a run that has no findings, and sees that it becomes one.
int self_test(plan const& all) {
  // Not our own arguments, which Kokkos would look through.
  int no_arguments = 0;
  Kokkos::ScopeGuard const kokkos(no_arguments, nullptr);
  bool all_found = true;
  counts done;
  for (auto const& [name, put_in] : mutations) {
    if (name == "crashes" || name == "hangs") {
      continue;
    }
    int had_it = 0;
    int found = 0;
    for (std::uint64_t i = 0; had_it < 20 && i < all.cases; ++i) {
      subject const& of = all.subject_of(i);
      bool const may_round = of.about.is_dense() || of.about.promised.full_sums; // which a neighbour is within
      if (!(of.about.knows_update() || of.about.is_dense()) || (may_round && name == "flips_bit") ||
          run_case(of, all.drawn(i), done).wrong) { // a real one
        continue;
      }
      case_result const result = run_case(of, all.drawn(i), done, name);
      had_it += result.mutated ? 1 : 0;
      found += result.mutated && result.wrong ? 1 : 0;
    }
    std::cout << name << ": found in " << found << " of " << had_it << " cases" << std::endl;
    all_found = all_found && had_it > 0 && found == had_it;
  }
  return all_found ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  plan all;
  all.program = argv[0];
  std::string only;
  std::int64_t one_case = -1;
  std::vector<std::string> within;
  bool test_itself = false;

  CLI::App app{"Tries all algorithms of oktopk with what is drawn from a seed, and checks what is promised."};
  app.add_option("--seed", all.seed, "what everything is drawn from")->capture_default_str();
  app.add_option("--cases", all.cases, "cases to run; until interrupted unless this or --seconds is given");
  app.add_option("--seconds", all.seconds, "seconds after which no more cases are begun");
  app.add_option("--only", only, "subjects with this in their names; after = the one of this name");
  app.add_flag("--staged", all.staged, "a communicator that reaches no memory, so that all that travels is copied");
  app.add_option("--case", one_case, "run one case again, and say what it is");
  app.add_option("--within", within,
                 "makes cases smaller: ranks=N, calls=N, length=N, k=N; without replica, damage, refusal, sgd, "
                 "poison, feedback, for each that is named")
      ->delimiter(',');
  app.add_option("--case-seconds", all.case_seconds, "seconds of processor time after which a case counts as hanging")
      ->capture_default_str();
  app.add_flag("!--no-shrink", all.shrinks, "leave cases with findings as they are");
  app.add_flag("--self-test", test_itself, "put mutations in and see that they are found");
  app.add_option("--mutation", all.on_purpose, "put in this defect")->check(CLI::IsMember(mutations));
  CLI11_PARSE(app, argc, argv);

  for (std::string const& each : within) {
    auto const equals = each.find('=');
    all.within[each.substr(0, equals)] = equals == std::string::npos ? 0 : std::stoll(each.substr(equals + 1));
  }
  all.chosen = chosen_of(subjects(), only);
  if (all.chosen.empty()) {
    std::cerr << argv[0] << ": there is no such subject\n";
    return 2;
  }
  if (one_case >= 0) {
    all.first = static_cast<std::uint64_t>(one_case);
    all.cases = 1;
    std::cout << all.subject_of(all.first).about.name << ": " << in_words(all.drawn(all.first)) << "\n";
  }
  return test_itself ? self_test(all) : run(all);
}
