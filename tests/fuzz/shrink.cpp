// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/shrink.hpp"

#include <algorithm>
#include <chrono>

namespace oktopk_fuzz {

namespace {

class shrinking {
public:
  shrinking(plan all, work_done& found) : one_(std::move(all)), found_(found) {
    one_.first = found.at_case;
    one_.cases = 1;
    one_.case_seconds = std::min(one_.case_seconds, 20.0);
  }

  limits run() {
    if (!still_fails(one_.within)) {
      return one_.within; // not the same again by itself
    }
    drop_events();
    if (found_.at_call >= 0) {
      try_with([&](limits& within) { within.calls = found_.at_call + 1; });
    }
    lower(&limits::ranks, now().ranks);
    lower(&limits::length, now().how.length);
    lower(&limits::k, now().k);
    lower(&limits::calls, static_cast<int>(now().calls.size()));
    lower(&limits::ranks, now().ranks);
    drop_events();
    return one_.within;
  }

private:
  fuzz_case now() const {
    return draw_case(one_.subject_of(one_.first), one_.seed, one_.first, one_.staged, one_.within);
  }

  bool still_fails(limits const& within) {
    if (std::chrono::steady_clock::now() - start_ > std::chrono::seconds(30)) {
      return false;
    }
    plan tried = one_;
    tried.within = within;
    // All case numbers are of the same subject as before only where the list is the same.
    work_done again = work(tried, 60, true, nullptr);
    if (!again.wrong || again.wrong->check != found_.wrong->check) {
      return false;
    }
    again.done = found_.done;
    found_ = again;
    return true;
  }

  template <class Change>
  bool try_with(Change const& change) {
    limits changed = one_.within;
    change(changed);
    if (!still_fails(changed)) {
      return false;
    }
    one_.within = changed;
    return true;
  }

  void drop_events() {
    for (char const* each : {"twin", "damage", "file", "refusal", "options", "poison", "sgd", "feedback"}) {
      auto const& gone = one_.within.without;
      if (std::find(gone.begin(), gone.end(), each) == gone.end()) {
        try_with([&](limits& within) { within.without.emplace_back(each); });
      }
    }
  }

  // The least number down to 1 for which it still fails, if it fails for all above.
  template <class Number>
  void lower(Number limits::*which, Number from) {
    Number most = from;
    Number least = 0; // passes, as far as is known
    while (most - least > 1) {
      Number const middle = static_cast<Number>(least + (most - least) / 2);
      if (try_with([&](limits& within) { within.*which = middle; })) {
        most = middle;
      } else {
        least = middle;
      }
    }
    // Small numbers may fail where middle ones do not.
    for (Number each = 1; each < std::min<Number>(most, 5); ++each) {
      if (try_with([&](limits& within) { within.*which = each; })) {
        break;
      }
    }
  }

  plan one_;
  work_done& found_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

} // namespace

limits shrink(plan const& all, work_done& found) {
  return shrinking(all, found).run();
}

} // namespace oktopk_fuzz
