// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/worker.hpp"

#include "support/processor_time.hpp"

#include <Kokkos_Core.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <stdexcept>

namespace oktopk_fuzz {

namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

/// What a worker tells its parent.
struct report {
  counts done;              ///< of all workers
  std::uint64_t number = 0; ///< of the case under way
  bool found = false;
  char check[200] = {};
  char text[2000] = {};
};

// In memory of both.
report& shared_report() {
  static void* const memory = mmap(nullptr, sizeof(report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  static report* const made = memory == MAP_FAILED ? nullptr : new (memory) report;
  return made == nullptr ? throw std::runtime_error("there is no memory for several processes") : *made;
}

void run_cases(plan const& all, double seconds, report& out) {
  // Not our own arguments, which Kokkos would look through.
  int no_arguments = 0;
  Kokkos::ScopeGuard const kokkos(no_arguments, nullptr);
  auto const start = clock::now();
  for (std::uint64_t i = 0; i < all.cases && !out.found && seconds_since(start) < seconds; ++i) {
    out.number = all.first + i;
    oktopk_tests::limit_processor_time(all.case_seconds);
    case_result const result = run_case(all.subject_of(out.number), all.drawn(out.number), out.done, all.on_purpose);
    oktopk_tests::limit_processor_time(0);
    if (result.wrong) {
      std::strncpy(out.check, result.wrong->check.c_str(), sizeof(out.check) - 1);
      std::strncpy(out.text, result.wrong->text.c_str(), sizeof(out.text) - 1);
      out.found = true;
    }
  }
}

std::string content_of(std::FILE* file) {
  std::string all;
  std::rewind(file);
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) {
    all += static_cast<char>(c);
  }
  return all;
}

// The line in which a sanitizer says what and where it was, from the name of the file on; empty where there is none.
std::string line_of_sanitizer(std::string const& text) {
  for (char const* mark : {": runtime error: ", "SUMMARY: "}) {
    if (auto const at = text.find(mark); at != std::string::npos) {
      std::size_t const begin = text.rfind('\n', at) + 1; // 0 in the first line
      std::string const line = text.substr(begin, text.find('\n', at) - begin);
      auto const path = line.rfind("/include/oktopk/");
      return path == std::string::npos ? line : line.substr(path + 1);
    }
  }
  return {};
}

// What the end of a process that has found nothing says; nothing where it ended well. Crashes in other places are other
// checks.
verdict wrong_end(int status, double case_seconds, std::string const& complaints) {
  if (!WIFSIGNALED(status) && WEXITSTATUS(status) == 0) {
    return {};
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF) {
    return finding{"hang", text_of("it took more than ", case_seconds, " s of processor time")};
  }
  std::string const where = line_of_sanitizer(complaints);
  std::string const place = where.substr(0, where.find(':', where.find(':') + 1)); // file and line
  std::string const how = WIFSIGNALED(status) ? text_of("died of signal ", strsignal(WTERMSIG(status)))
                                              : text_of("ended with status ", WEXITSTATUS(status));
  return finding{where.empty() ? "crash" : "crash at " + place, how + (where.empty() ? "" : ": " + where)};
}

} // namespace

work_done work(plan const& all, double seconds, bool quiet) {
  report& out = shared_report();
  out = report{.done = out.done};
  std::cout.flush(); // or the child would print it, too
  std::FILE* const complaints = std::tmpfile();
  pid_t const child = complaints == nullptr ? -1 : fork();
  if (child < 0) {
    throw std::runtime_error("no process can be started");
  }
  if (child == 0) {
    dup2(fileno(complaints), STDERR_FILENO);
    run_cases(all, seconds, out);
    if (out.found) {
      _exit(0); // what a failed case leaves behind is no leak
    }
    std::exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::string const said = content_of(complaints);
  std::fclose(complaints);
  verdict const wrong = out.found ? finding{out.check, out.text} : wrong_end(status, all.case_seconds, said);
  if (wrong && !out.found && !quiet) {
    std::cerr << said.substr(0, 6000) << std::flush;
  }
  return {wrong, out.number};
}

counts const& work_in_all() {
  return shared_report().done;
}

std::string command_of(plan const& all, std::uint64_t number) {
  std::ostringstream text;
  text << all.program << " --seed " << all.seed << " --only '=" << all.subject_of(number).about.name << "' --case "
       << number << (all.staged ? " --staged" : "");
  char const* before = " --within ";
  for (auto const& [name, limit] : all.within) {
    text << std::exchange(before, ",") << name << "=" << limit;
  }
  return text.str();
}

limits shrink(plan all, work_done& found) {
  auto const start = clock::now();
  counts const done = shared_report().done;
  all.first = found.at_case;
  all.cases = 1;
  all.case_seconds = std::min(all.case_seconds, 20.0);
  auto const fails = [&](limits const& changed) {
    plan tried = all;
    tried.within = changed;
    work_done const again = seconds_since(start) > 30 ? work_done() : work(tried, 60, true);
    bool const same = again.wrong && again.wrong->check == found.wrong->check;
    if (same) {
      found = again;
      all.within = changed;
    }
    return same;
  };
  auto const fails_with = [&](char const* name, std::int64_t limit) {
    limits changed = all.within;
    changed[name] = limit;
    return fails(changed);
  };
  bool smaller = fails(all.within); // else it is not the same again by itself
  while (std::exchange(smaller, false)) {
    for (char const* each : {"replica", "damage", "refusal", "poison", "sgd", "feedback"}) {
      smaller = (!all.within.contains(each) && fails_with(each, 0)) || smaller;
    }
    fuzz_case const what = all.drawn(all.first);
    auto const calls = static_cast<std::int64_t>(what.calls.size());
    for (auto const& [name, now] :
         {std::pair("calls", calls), {"ranks", what.ranks}, {"length", what.how.length}, {"k", what.k}}) {
      for (std::int64_t const less : {std::int64_t(1), std::int64_t(2), std::int64_t(3), std::int64_t(4), now / 16,
                                      now / 4, now / 2, now - now / 4, now - 1}) {
        if (less > 0 && less < now && fails_with(name, less)) { // the least of some smaller numbers that fails
          smaller = true;
          break;
        }
      }
    }
  }
  shared_report().done = done;
  return all.within;
}

} // namespace oktopk_fuzz
