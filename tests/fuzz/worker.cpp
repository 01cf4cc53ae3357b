// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/worker.hpp"

#include <Kokkos_Core.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

namespace oktopk_fuzz {

namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

/// What a worker tells its parent: memory of both.
struct told {
  std::atomic<std::uint64_t> number = 0; ///< of the case under way
  std::atomic<std::uint64_t> begun = 0;  ///< cases begun
  counts done;                           ///< before it
  bool found = false;
  int at_call = -1;
  char check[200] = {};
  char text[2000] = {};
};

class told_memory {
public:
  told_memory() {
    void* const at = mmap(nullptr, sizeof(told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
      throw std::bad_alloc();
    }
    told_ = new (at) told;
  }
  ~told_memory() { munmap(told_, sizeof(told)); }
  told_memory(told_memory const&) = delete;
  told_memory& operator=(told_memory const&) = delete;

  told& operator*() const { return *told_; }
  told* operator->() const { return told_; }

private:
  told* told_;
};

void run_cases(plan const& all, double seconds, told& tell) {
  // Not our own arguments, which Kokkos would look through.
  int no_arguments = 0;
  Kokkos::ScopeGuard const kokkos(no_arguments, nullptr);
  auto const start = clock::now();
  for (std::uint64_t i = 0; i < all.cases && seconds_since(start) < seconds; ++i) {
    std::uint64_t const number = all.first + i;
    tell.number = number;
    tell.begun += 1;
    facts const& about = all.subject_of(number);
    fuzz_case const what = draw_case(about, all.seed, number, all.staged, all.within);
    case_result const result = run_case(about, what, all.on_purpose);
    tell.done += result.done;
    if (result.wrong) {
      std::strncpy(tell.check, result.wrong->check.c_str(), sizeof(tell.check) - 1);
      std::strncpy(tell.text, result.wrong->text.c_str(), sizeof(tell.text) - 1);
      tell.at_call = result.at_call;
      tell.found = true;
      return;
    }
  }
}

/// What a child writes to its standard error.
class heard {
public:
  heard() : file_(std::tmpfile(), &std::fclose) {
    if (!file_) {
      throw std::runtime_error("there is no room for a temporary file");
    }
  }

  /// In the child.
  void listen() const { dup2(fileno(file_.get()), STDERR_FILENO); }

  /// All that was written.
  std::string text() const {
    std::string all;
    char some[4096];
    std::rewind(file_.get());
    while (std::size_t const count = std::fread(some, 1, sizeof(some), file_.get())) {
      all.append(some, count);
    }
    return all;
  }

private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

// The line in which a sanitizer says what and where it was, from the name of the file on; empty where there is none.
std::string told_by_sanitizer(std::string const& text) {
  for (char const* mark : {": runtime error: ", "SUMMARY: "}) {
    auto const at = text.find(mark);
    if (at == std::string::npos) {
      continue;
    }
    std::size_t const begin = text.rfind('\n', at) == std::string::npos ? 0 : text.rfind('\n', at) + 1;
    std::string line = text.substr(begin, text.find('\n', at) - begin);
    auto const path = line.rfind("/include/oktopk/");
    return path == std::string::npos ? line : line.substr(path + 1);
  }
  return {};
}

// Processor time of a child, which others on a busy machine do not take away; 0 where it has just ended.
double processor_seconds(pid_t child) {
  clockid_t its_clock{};
  timespec now{};
  if (clock_getcpuclockid(child, &its_clock) == 0) {
    clock_gettime(its_clock, &now);
  }
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Waits for a child of ours; ends it where a case takes too long. Gives its status, and whether it was ended.
int wait_for(pid_t child, told const& tell, double most_seconds, std::function<void(counts const&)> const& progress,
             bool& ended) {
  std::uint64_t begun = 0;
  double since = 0;
  int status = 0;
  for (int naps = 0; waitpid(child, &status, WNOHANG) == 0; ++naps) {
    if (tell.begun != begun) {
      begun = tell.begun;
      since = processor_seconds(child);
    } else if (!ended && processor_seconds(child) - since > most_seconds) {
      ended = true;
      kill(child, SIGKILL);
    }
    usleep(naps < 100 ? 500 : 20'000);
    if (progress) {
      progress(tell.done);
    }
  }
  return status;
}

} // namespace

work_done work(plan const& all, double seconds, bool quiet, std::function<void(counts const&)> const& progress) {
  told_memory const tell;
  heard const complaints;
  std::cout.flush(); // or the child would print it, too
  pid_t const child = fork();
  if (child < 0) {
    throw std::runtime_error("no process can be started");
  }
  if (child == 0) {
    complaints.listen();
    run_cases(all, seconds, *tell);
    if (tell->found) {
      _exit(0); // what a failed case leaves behind is no leak
    }
    std::exit(0);
  }
  bool ended = false;
  int const status = wait_for(child, *tell, all.case_seconds, progress, ended);
  work_done result;
  result.done = tell->done;
  result.at_case = tell->number;
  if (tell->found) {
    result.wrong = finding{tell->check, tell->text};
    result.at_call = tell->at_call;
  } else if (ended) {
    result.wrong = finding{"hang", "it took more than " + std::to_string(static_cast<int>(all.case_seconds)) +
                                       " s of processor time"};
  } else if (WIFSIGNALED(status) || WEXITSTATUS(status) != 0) {
    std::string const all_said = complaints.text();
    std::string const where = told_by_sanitizer(all_said);
    std::string const how = WIFSIGNALED(status) ? std::string("died of signal ") + strsignal(WTERMSIG(status))
                                                : "ended with status " + std::to_string(WEXITSTATUS(status));
    std::string const place = where.substr(0, where.find(':', where.find(':') + 1)); // file and line
    result.wrong = finding{where.empty() ? "crash" : "crash at " + place, how + (where.empty() ? "" : ": " + where)};
    if (!quiet) {
      std::cerr << all_said.substr(0, 6000) << std::flush;
    }
  }
  return result;
}

work_done work_here(plan const& all) {
  told tell;
  run_cases(all, all.seconds, tell);
  work_done result;
  result.done = tell.done;
  result.at_case = tell.number;
  result.at_call = tell.at_call;
  if (tell.found) {
    result.wrong = finding{tell.check, tell.text};
  }
  return result;
}

} // namespace oktopk_fuzz
