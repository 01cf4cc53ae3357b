// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/worker.hpp"

#include "support/processor_time.hpp"

#include <Kokkos_Core.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <new>
#include <sstream>
#include <stdexcept>

namespace oktopk_fuzz {

namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

/// What a worker tells its parent: memory of both.
struct report {
  std::uint64_t number = 0; ///< of the case under way
  counts done;              ///< before it
  bool found = false;
  int at_call = -1;
  char check[200] = {};
  char text[2000] = {};

  work_done taken() const { return {done, found ? verdict(finding{check, text}) : verdict(), number, at_call}; }
};

void run_cases(plan const& all, double seconds, report& out) {
  // Not our own arguments, which Kokkos would look through.
  int no_arguments = 0;
  Kokkos::ScopeGuard const kokkos(no_arguments, nullptr);
  auto const start = clock::now();
  for (std::uint64_t i = 0; i < all.cases && seconds_since(start) < seconds; ++i) {
    out.number = all.first + i;
    oktopk_tests::limit_processor_time(all.case_seconds);
    case_result const result = run_case(all.subject_of(out.number), all.drawn(out.number), all.on_purpose);
    oktopk_tests::limit_processor_time(0);
    out.done += result.done;
    if (result.wrong) {
      std::strncpy(out.check, result.wrong->check.c_str(), sizeof(out.check) - 1);
      std::strncpy(out.text, result.wrong->text.c_str(), sizeof(out.text) - 1);
      out.at_call = result.at_call;
      out.found = true;
      return;
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

// What the end of a process that has found nothing says; nothing where it ended well.
verdict wrong_end(int status, double case_seconds, std::string const& complaints) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF) {
    return finding{"hang",
                   "it took more than " + std::to_string(static_cast<int>(case_seconds)) + " s of processor time"};
  }
  if (!WIFSIGNALED(status) && WEXITSTATUS(status) == 0) {
    return {};
  }
  std::string const where = line_of_sanitizer(complaints);
  std::string const place = where.substr(0, where.find(':', where.find(':') + 1)); // file and line
  std::string const how = WIFSIGNALED(status) ? std::string("died of signal ") + strsignal(WTERMSIG(status))
                                              : "ended with status " + std::to_string(WEXITSTATUS(status));
  return finding{where.empty() ? "crash" : "crash at " + place, how + (where.empty() ? "" : ": " + where)};
}

} // namespace

work_done work(plan const& all, double seconds, bool quiet) {
  void* const memory = mmap(nullptr, sizeof(report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  std::FILE* const complaints = std::tmpfile();
  std::cout.flush(); // or the child would print it, too
  auto* const out = memory == MAP_FAILED ? nullptr : new (memory) report;
  pid_t const child = out == nullptr || complaints == nullptr ? -1 : fork();
  if (child < 0) {
    throw std::runtime_error("no process can be started");
  }
  if (child == 0) {
    dup2(fileno(complaints), STDERR_FILENO);
    run_cases(all, seconds, *out);
    if (out->found) {
      _exit(0); // what a failed case leaves behind is no leak
    }
    std::exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  work_done result = out->taken();
  if (!result.wrong) {
    std::string const said = content_of(complaints);
    result.wrong = wrong_end(status, all.case_seconds, said);
    if (result.wrong && !quiet) {
      std::cerr << said.substr(0, 6000) << std::flush;
    }
  }
  std::fclose(complaints);
  munmap(memory, sizeof(report));
  return result;
}

work_done work_here(plan const& all) {
  report out;
  run_cases(all, all.seconds, out);
  return out.taken();
}

std::string command_of(plan const& all, std::uint64_t number) {
  std::ostringstream text;
  text << all.program << " --seed " << all.seed << " --only " << all.subject_of(number).name << " --case " << number
       << (all.staged ? " --staged" : "");
  for (auto const& [name, value] : {std::pair<char const*, std::int64_t>("ranks", all.within.ranks),
                                    {"calls", all.within.calls},
                                    {"length", all.within.length},
                                    {"k", all.within.k}}) {
    if (value >= 0) {
      text << " --" << name << " " << value;
    }
  }
  for (std::size_t i = 0; i < all.within.without.size(); ++i) {
    text << (i == 0 ? " --without " : ",") << all.within.without[i];
  }
  return text.str();
}

limits shrink(plan all, work_done& found) {
  auto const start = clock::now();
  all.first = found.at_case;
  all.cases = 1;
  all.case_seconds = std::min(all.case_seconds, 20.0);
  auto const fails_with = [&](limits const& changed) {
    plan tried = all;
    tried.within = changed;
    work_done again = seconds_since(start) > 30 ? work_done() : work(tried, 60, true);
    if (!again.wrong || again.wrong->check != found.wrong->check) {
      return false;
    }
    again.done = found.done;
    found = again;
    all.within = changed;
    return true;
  };
  auto const lower = [&](auto limits::*which, std::int64_t now) { // the least of some smaller numbers that fails
    for (std::int64_t const less : {std::int64_t(1), std::int64_t(2), std::int64_t(3), std::int64_t(4), now / 16,
                                    now / 4, now / 2, now - now / 4, now - 1}) {
      limits changed = all.within;
      changed.*which = static_cast<std::remove_reference_t<decltype(changed.*which)>>(less);
      if (less > 0 && less < now && fails_with(changed)) {
        return true;
      }
    }
    return false;
  };
  bool smaller = fails_with(all.within); // else it is not the same again by itself
  while (smaller) {
    smaller = false;
    for (char const* each : {"replica", "damage", "file", "refusal", "options", "poison", "sgd", "feedback"}) {
      limits changed = all.within;
      auto& gone = changed.without;
      if (std::find(gone.begin(), gone.end(), each) == gone.end()) {
        gone.emplace_back(each);
        smaller = fails_with(changed) || smaller;
      }
    }
    fuzz_case const now = all.drawn(all.first);
    smaller = lower(&limits::calls, static_cast<std::int64_t>(now.calls.size())) || smaller;
    smaller = lower(&limits::ranks, now.ranks) || smaller;
    smaller = lower(&limits::length, now.how.length) || smaller;
    smaller = lower(&limits::k, now.k) || smaller;
  }
  return all.within;
}

} // namespace oktopk_fuzz
