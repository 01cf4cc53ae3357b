// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/report.hpp"

#include "fuzz/shrink.hpp"

#include <unistd.h>

#include <iostream>
#include <sstream>
#include <utility>

namespace oktopk_fuzz {

std::string command_of(plan const& all, std::uint64_t number, limits const& within) {
  std::ostringstream text;
  text << all.program << " --seed " << all.seed << " --only " << all.subject_of(number).name << " --case " << number
       << (all.staged ? " --staged" : "");
  auto const say = [&](char const* name, std::int64_t value) {
    if (value >= 0) {
      text << " --" << name << " " << value;
    }
  };
  say("ranks", within.ranks);
  say("calls", within.calls);
  say("length", within.length);
  say("k", within.k);
  for (std::size_t i = 0; i < within.without.size(); ++i) {
    text << (i == 0 ? " --without " : ",") << within.without[i];
  }
  return text.str();
}

report::report(plan const& all) : all_(all), on_terminal_(isatty(STDERR_FILENO) == 1) {
}

double report::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void report::progress(counts const& of_this_worker) {
  auto const now = std::chrono::steady_clock::now();
  if (!on_terminal_ || now - last_ < std::chrono::milliseconds(200)) {
    return;
  }
  last_ = now;
  std::cerr << "\r" << static_cast<int>(seconds()) << " s: " << sum_.cases + of_this_worker.cases << " cases, "
            << sum_.calls + of_this_worker.calls << " calls, " << findings_ << " findings " << std::flush;
}

void report::found(work_done what) {
  findings_ += 1;
  facts const& about = all_.subject_of(what.at_case);
  std::string const key = what.wrong->check + " of " + about.name.substr(0, about.name.find('.'));
  int const times = ++times_[key];
  if (times > 3) {
    return; // counted, and listed at the end
  }
  limits within = all_.within;
  if (times == 1 && all_.shrinks) {
    within = shrink(all_, what);
  }
  fuzz_case const smaller = draw_case(about, all_.seed, what.at_case, all_.staged, within);
  std::cout << (on_terminal_ ? "\n" : "") << "FOUND [" << what.wrong->check << "] " << about.name << ", call "
            << what.at_call << ": " << what.wrong->text << "\n  case:  " << in_words(smaller)
            << "\n  again: " << command_of(all_, what.at_case, within) << std::endl;
}

int report::finish() const {
  std::cout << (on_terminal_ ? "\n" : "") << sum_.cases << " cases, " << sum_.calls << " calls, " << sum_.rank_calls
            << " calls of a rank, " << sum_.threw << " calls that threw and " << sum_.refusals
            << " objects, states and files that were refused as promised, " << findings_ << " findings, in "
            << static_cast<int>(seconds()) << " s\n";
  for (auto const& [key, times] : times_) {
    std::cout << "  " << times << " x " << key << "\n";
  }
  return findings_ == 0 ? 0 : 1;
}

} // namespace oktopk_fuzz
