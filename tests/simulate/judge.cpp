// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "simulate/judge.hpp"

#include <algorithm>
#include <string>

namespace oktopk_simulate {

using oktopk_fuzz::calls_differ_in;
using oktopk_fuzz::difference;
using oktopk_fuzz::same_bits;

namespace {

std::string of_rank(std::size_t rank) {
  return "rank " + std::to_string(rank) + ": ";
}

std::string seconds(std::chrono::nanoseconds time) {
  return std::to_string(std::chrono::duration<double>(time).count()) + " s";
}

template <class Value>
verdict judge_prefix(std::vector<story<Value>> const& plain, std::vector<story<Value>> const& other) {
  for (std::size_t rank = 0; rank < plain.size(); ++rank) {
    for (std::size_t call = 0; call < other[rank].calls.size(); ++call) {
      if (auto const text = calls_differ_in(plain[rank].calls[call], other[rank].calls[call]); !text.empty()) {
        return finding{"order",
                       of_rank(rank) + "call " + std::to_string(call) + " depends on the order of events: " + text};
      }
    }
  }
  return {};
}

template <class Value>
verdict judge_records(scenario const& of, oktopk_fuzz::fuzz_case const& what, std::vector<call_record<Value>> records,
                      std::string const& where) {
  bool threw = false;
  verdict wrong = oktopk_fuzz::check_call(oktopk_fuzz::seen_call<Value>(*of.about, what, std::move(records)), threw);
  if (wrong) {
    wrong->text = where + ": " + wrong->text;
  }
  return wrong;
}

// A rank that the communicator has let down is as it was before the call.
template <class Value>
verdict judge_state(story<Value> const& one, std::string const& who) {
  if (!one.broken_call) {
    return {};
  }
  call_record<Value> const& call = *one.broken_call;
  if (auto const text = difference(call.before, call.after); !text.empty()) {
    return finding{"state_moved", who + "another state after a call that failed: " + text};
  }
  if (call.input_changed || !same_bits(call.weights_before, call.weights_after)) {
    return finding{"input_changed", who + "a call that failed has changed its input or the weights"};
  }
  return {};
}

// Those that are left have called it once more.
template <class Value>
verdict judge_resumed(scenario const& of, std::vector<story<Value>> const& all, std::vector<bool> const& died) {
  std::vector<call_record<Value>> records;
  std::int64_t call = -1;
  auto const left = static_cast<int>(std::count(died.begin(), died.end(), false));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (died[rank]) {
      continue;
    }
    if (all[rank].resuming.code != oktopk::fault::none) {
      return finding{"survivors", of_rank(rank) + "cannot go on: " + all[rank].resuming.text};
    }
    if (all[rank].left != left) {
      return finding{"survivors", of_rank(rank) + "is one of " + std::to_string(all[rank].left) +
                                      " survivors, not of " + std::to_string(left)};
    }
    if (all[rank].resumed) {
      call = all[rank].resumed_at;
      records.push_back(*all[rank].resumed);
    }
  }
  if (records.empty()) {
    return {};
  }
  if (static_cast<int>(records.size()) != left) {
    return finding{"survivors", "not all survivors have gone on"};
  }
  oktopk_fuzz::fuzz_case what = of.what;
  what.ranks = left;
  return judge_records(of, what, std::move(records), "survivors, call " + std::to_string(call));
}

} // namespace

template <class Value>
verdict judge_calls(scenario const& of, std::vector<story<Value>> const& all) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].broken.code != oktopk::fault::none || all[rank].calls.size() != of.what.calls.size()) {
      return finding{"threw", of_rank(rank) + "without any fault: " + all[rank].broken.text};
    }
  }
  for (std::size_t call = 0; call < of.what.calls.size(); ++call) {
    std::vector<call_record<Value>> records;
    for (auto const& each : all) {
      records.push_back(each.calls[call]);
    }
    if (auto wrong = judge_records(of, of.what, std::move(records), "call " + std::to_string(call))) {
      return wrong;
    }
  }
  return {};
}

template <class Value>
verdict judge_order(std::vector<story<Value>> const& plain, std::vector<story<Value>> const& other) {
  for (std::size_t rank = 0; rank < plain.size(); ++rank) {
    if (other[rank].broken.code != oktopk::fault::none || other[rank].calls.size() != plain[rank].calls.size()) {
      return finding{"threw", of_rank(rank) + "in another order of events: " + other[rank].broken.text};
    }
  }
  return judge_prefix(plain, other);
}

template <class Value>
verdict judge_faults(scenario const& of, std::vector<story<Value>> const& plain, std::vector<story<Value>> const& all,
                     std::vector<bool> const& died, oktopk::in_process::simulated_run const& run,
                     std::chrono::nanoseconds deadline) {
  if (auto wrong = judge_prefix(plain, all)) {
    wrong->check = "wrong_sum";
    return wrong;
  }
  auto const first = std::find_if(run.strikes.begin(), run.strikes.end(),
                                  [&](auto const& each) { return of_fault(each.what, deadline) != consequence::none; });
  bool const may_break = first != run.strikes.end();
  bool must_break = std::any_of(run.strikes.begin(), run.strikes.end(), [&](auto const& each) {
    return of_fault(each.what, deadline) == consequence::certain;
  });
  // A rank may find what others cannot, and all must hear of it.
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    must_break = must_break || (may_break && !died[rank] && all[rank].broken.code != oktopk::fault::none);
  }
  bool const damaged =
      std::any_of(run.strikes.begin(), run.strikes.end(), [](auto const& each) { return damages(each.what.what); });
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    story<Value> const& one = all[rank];
    std::string const who = of_rank(rank);
    if (died[rank]) {
      continue;
    }
    if (!one.ended) {
      return finding{"lost_rank", who + "has not come to its end"};
    }
    if ((one.broken.code != oktopk::fault::none) != must_break) {
      return finding{must_break ? "no_error" : "error",
                     who + (must_break ? "has not heard of the fault" : one.broken.text)};
    }
    if (!must_break) {
      continue;
    }
    bool const told = one.broken.code == oktopk::fault::timed_out || one.broken.code == oktopk::fault::abandoned;
    if (!told && !damaged) {
      return finding{"other_error", who + one.broken.text};
    }
    auto latest = first->at + deadline * 3 / 2;
    for (auto const& each : run.strikes) { // who stands still hears of nothing, and where all did so nobody has told
      if (each.what.what == oktopk::in_process::mishap::stop && each.what.rank == static_cast<int>(rank)) {
        latest = std::max(latest, each.at + each.what.time + deadline * (run.strikes.size() == 1 ? 1 : 3) / 2);
      }
    }
    if (one.broken_at > latest) {
      return finding{"late", who + "has heard at " + seconds(one.broken_at) + " of what happened at " +
                                 seconds(first->at) + ": " + one.broken.text};
    }
    if (one.again.code != one.broken.code || !one.again.says("cannot be used any more") ||
        one.again_took > std::chrono::nanoseconds(0)) {
      return finding{"went_on", who + "after \"" + one.broken.text + "\": " + one.again.text};
    }
    if (auto wrong = judge_state(one, who)) {
      return wrong;
    }
  }
  // Where more than one thing has happened the survivors may have lost another one.
  return must_break && run.strikes.size() == 1 ? judge_resumed(of, all, died) : verdict();
}

template verdict judge_calls(scenario const&, std::vector<story<float>> const&);
template verdict judge_calls(scenario const&, std::vector<story<double>> const&);
template verdict judge_order(std::vector<story<float>> const&, std::vector<story<float>> const&);
template verdict judge_order(std::vector<story<double>> const&, std::vector<story<double>> const&);
template verdict judge_faults(scenario const&, std::vector<story<float>> const&, std::vector<story<float>> const&,
                              std::vector<bool> const&, oktopk::in_process::simulated_run const&,
                              std::chrono::nanoseconds);
template verdict judge_faults(scenario const&, std::vector<story<double>> const&, std::vector<story<double>> const&,
                              std::vector<bool> const&, oktopk::in_process::simulated_run const&,
                              std::chrono::nanoseconds);

} // namespace oktopk_simulate
