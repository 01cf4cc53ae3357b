// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "simulate/scenario.hpp"

#include "fuzz/checks/checks.hpp"
#include "fuzz/subjects.hpp"
#include "simulate/trace.hpp"

#include <oktopk/comm/in_process.hpp>
#include <oktopk/comm/simulation.hpp>

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

namespace oktopk_simulate {

namespace {

using oktopk::in_process::fault_plan;
using oktopk::in_process::simulated_run;
using oktopk::in_process::simulation;
using oktopk_fuzz::calls_differ_in;
using oktopk_fuzz::difference;
using oktopk_fuzz::finding;
using oktopk_fuzz::same_bits;
using oktopk_fuzz::verdict;

std::string of_rank(std::size_t rank) {
  return "rank " + std::to_string(rank) + ": ";
}

std::string seconds(std::chrono::nanoseconds time) {
  return std::to_string(std::chrono::duration<double>(time).count()) + " s";
}

template <class Value>
verdict check_prefix(std::vector<trace<Value>> const& plain, std::vector<trace<Value>> const& other) {
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
verdict check_records(scenario const& of, oktopk_fuzz::fuzz_case const& what, std::vector<call_record<Value>> records,
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
verdict check_state(trace<Value> const& one, std::string const& who) {
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
verdict check_resumed(scenario const& of, std::vector<trace<Value>> const& all, std::vector<bool> const& died) {
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
  return check_records(of, what, std::move(records), "survivors, call " + std::to_string(call));
}

// Every call of a world without faults keeps its promises: conservation, the same bits on all ranks, and the rest.
template <class Value>
verdict check_traces(scenario const& of, std::vector<trace<Value>> const& all) {
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
    if (auto wrong = check_records(of, of.what, std::move(records), "call " + std::to_string(call))) {
      return wrong;
    }
  }
  return {};
}

// Another order of events has changed nothing.
template <class Value>
verdict check_order(std::vector<trace<Value>> const& plain, std::vector<trace<Value>> const& other) {
  for (std::size_t rank = 0; rank < plain.size(); ++rank) {
    if (other[rank].broken.code != oktopk::fault::none || other[rank].calls.size() != plain[rank].calls.size()) {
      return finding{"threw", of_rank(rank) + "in another order of events: " + other[rank].broken.text};
    }
  }
  return check_prefix(plain, other);
}

// After a fault: what returned is right, every survivor has heard of the fault in time and is as before the call, and
// those that are left can go on.
template <class Value>
verdict check_faults(scenario const& of, std::vector<trace<Value>> const& plain, std::vector<trace<Value>> const& all,
                     std::vector<bool> const& died, oktopk::in_process::simulated_run const& run,
                     std::chrono::nanoseconds deadline) {
  if (auto wrong = check_prefix(plain, all)) {
    wrong->check = "wrong_sum";
    return wrong;
  }
  auto const first = std::find_if(run.injections.begin(), run.injections.end(),
                                  [&](auto const& each) { return of_fault(each.what, deadline) != consequence::none; });
  bool const may_break = first != run.injections.end();
  bool must_break = std::any_of(run.injections.begin(), run.injections.end(), [&](auto const& each) {
    return of_fault(each.what, deadline) == consequence::certain;
  });
  // A rank may find what others cannot, and all must hear of it.
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    must_break = must_break || (may_break && !died[rank] && all[rank].broken.code != oktopk::fault::none);
  }
  bool const damaged = std::any_of(run.injections.begin(), run.injections.end(),
                                   [](auto const& each) { return damages(each.what.what); });
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    trace<Value> const& one = all[rank];
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
    bool const heard = one.broken.code == oktopk::fault::timed_out || one.broken.code == oktopk::fault::abandoned;
    if (!heard && !damaged) {
      return finding{"other_error", who + one.broken.text};
    }
    auto latest = first->at + deadline * 3 / 2;
    for (auto const& each : run.injections) { // who stands still hears of nothing, and where all did so nobody has told
      if (each.what.what == oktopk::in_process::injected_fault::stop && each.what.rank == static_cast<int>(rank)) {
        latest = std::max(latest, each.at + each.what.time + deadline * (run.injections.size() == 1 ? 1 : 3) / 2);
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
    if (auto wrong = check_state(one, who)) {
      return wrong;
    }
  }
  // Where more than one thing has happened the survivors may have lost another one.
  return must_break && run.injections.size() == 1 ? check_resumed(of, all, died) : verdict();
}

template verdict check_faults(scenario const&, std::vector<trace<double>> const&, std::vector<trace<double>> const&,
                              std::vector<bool> const&, oktopk::in_process::simulated_run const&,
                              std::chrono::nanoseconds);
template <class Value>
std::vector<oktopk_fuzz::subject<Value>> const& subjects_of(plan const& all) {
  if constexpr (std::is_same_v<Value, float>) {
    return all.checked ? checked_subjects() : oktopk_fuzz::subjects<float>();
  } else {
    return oktopk_fuzz::subjects<Value>();
  }
}

template <class Value>
struct world {
  std::vector<trace<Value>> traces;
  std::vector<bool> died;
  simulated_run run;
  verdict wrong; ///< what a rank threw that nobody expects
};

template <class Value>
world<Value> run_world(plan const& all, scenario const& of, std::optional<simulation> simulated) {
  world<Value> made;
  made.traces.resize(static_cast<std::size_t>(of.what.ranks));
  oktopk::in_process::options how;
  if (simulated) {
    simulated->result = &made.run;
    how.simulated = *simulated;
  }
  auto const& subject = oktopk_fuzz::named(subjects_of<Value>(all), of.about->name);
  auto const thrown = oktopk::in_process::run_and_collect(
      of.what.ranks,
      [&](oktopk::in_process_communicator comm) {
        life<Value>(subject, of.what, comm, made.traces[static_cast<std::size_t>(comm.rank())])(all.deadline);
      },
      how);
  made.wrong = note_deaths(thrown, made.died);
  return made;
}

template <class Value>
seed_result run_of(plan const& all, scenario const& of) {
  seed_result result;
  result.done.seeds = 1;
  auto const calls = static_cast<std::int64_t>(of.what.calls.size());
  auto const plain = run_world<Value>(all, of, {});
  result.wrong = plain.wrong ? plain.wrong : check_traces(of, plain.traces);
  std::vector<std::int64_t> messages;
  for (std::uint64_t order = 0; order < 2 && !result.wrong; ++order) {
    auto const other = run_world<Value>(all, of, simulation{.seed = oktopk_fuzz::mixed({of.seed, order})});
    result.wrong = other.wrong ? other.wrong : check_order(plain.traces, other.traces);
    result.done.calls += calls;
    result.done.events += other.run.events;
    messages = other.run.messages;
  }
  if (result.wrong || !all.faults) {
    return result;
  }
  fault_plan const faults = draw_faults(all, of, messages);
  result.faults = faults.text();
  auto const faulty = run_world<Value>(all, of, simulation{.seed = oktopk_fuzz::mixed({of.seed, 2}), .faults = faults});
  result.wrong = faulty.wrong ? faulty.wrong
                              : check_faults(of, plain.traces, faulty.traces, faulty.died, faulty.run, all.deadline);
  result.done.events += faulty.run.events;
  result.done.faulty = faulty.run.injections.empty() ? 0 : 1;
  std::size_t longest = 0;
  for (auto const& each : faulty.traces) {
    result.done.broken = each.broken.code != oktopk::fault::none ? 1 : result.done.broken;
    result.done.resumed = each.resumed ? 1 : result.done.resumed;
    longest = std::max(longest, each.calls.size());
  }
  result.done.calls += static_cast<std::int64_t>(longest) + result.done.resumed;
  return result;
}

} // namespace

seed_result run_seed(plan const& all, scenario const& of) {
  return of.about->value_bytes == 4 ? run_of<float>(all, of) : run_of<double>(all, of);
}

} // namespace oktopk_simulate
