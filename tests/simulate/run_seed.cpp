// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "simulate/trace.hpp"

#include "fuzz/checks/checks.hpp"

#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/self.hpp>

#include <algorithm>

namespace oktopk_simulate {

namespace {

using oktopk::in_process::fault_plan;
using oktopk::in_process::injected_fault;
using oktopk::in_process::simulated_run;
using oktopk::in_process::simulation;
using oktopk_fuzz::check_at;
using oktopk_fuzz::check_each;
using oktopk_fuzz::expect;
using oktopk_fuzz::mixed;

struct world {
  std::vector<trace> traces;
  std::vector<bool> died;
  simulated_run run;
};

// Throws what a rank threw that nobody expects.
world run_world(plan const& all, scenario const& of, std::optional<simulation> simulated, counts& done) {
  world made;
  made.traces.resize(static_cast<std::size_t>(of.what.ranks));
  if (of.measures) { // what objects of this thread measured before is forgotten: this is for another number of ranks
    oktopk::make_allreduce(Kokkos::DefaultHostExecutionSpace(), oktopk::self_communicator(), "automatic",
                           {.length = 1, .k = 1});
  }
  oktopk::in_process::options how;
  if (simulated) {
    simulated->result = &made.run;
    how.simulated = *simulated;
  }
  auto const thrown = oktopk::in_process::run_and_collect(
      of.what.ranks,
      [&](oktopk::in_process_communicator comm) {
        life(of, comm, made.traces[static_cast<std::size_t>(comm.rank())])(all.deadline);
      },
      how);
  rank_clock::at_work = nullptr;
  if (auto const wrong = note_deaths(thrown, made.died)) {
    throw oktopk_fuzz::finding(*wrong);
  }
  done.events += made.run.events;
  return made;
}

// What a rank could complete does not depend on the order of events; `until`: before that.
void check_prefix(world const& plain, world const& other, char const* check,
                  std::chrono::nanoseconds until = std::chrono::nanoseconds::max()) {
  check_each(other.traces, [&](trace const& one, std::size_t rank) {
    for (std::size_t call = 0; call < one.calls.size() && one.ended_at[call] < until; ++call) {
      check_at("call " + std::to_string(call),
               [&] { oktopk_fuzz::expect_same(check, plain.traces[rank].calls[call], one.calls[call]); });
    }
  });
}

// Every call has been made.
void check_whole(scenario const& of, world const& made) {
  check_each(made.traces, [&](trace const& one, std::size_t) {
    expect(!one.is_broken() && one.calls.size() == of.what.calls.size(), "threw",
           "without any fault: ", one.broken.text);
  });
}

// Every call that all ranks have completed keeps its promises: conservation, the same bits on all ranks, and the rest.
void check_calls(scenario const& of, world const& plain) {
  std::size_t completed = of.what.calls.size();
  for (trace const& each : plain.traces) {
    completed = std::min(completed, each.calls.size());
  }
  for (std::size_t call = 0; call < completed; ++call) {
    std::vector<call_record> records;
    for (trace const& each : plain.traces) {
      records.push_back(each.calls[call]);
    }
    check_at("call " + std::to_string(call), [&] {
      oktopk_fuzz::check_call({of.of->about, of.what, std::move(records)});
    });
  }
}

// A rank that the communicator has let down is as it was before the call, and has no further use of it.
void check_broken(trace const& one) {
  expect(one.again.code == one.broken.code && one.again.says("cannot be used any more") &&
             one.again_took == std::chrono::nanoseconds(0),
         "went_on", "after \"", one.broken.text, "\": ", one.again.text);
  if (one.broken_call) {
    call_record const& call = *one.broken_call;
    oktopk_fuzz::expect_same("state_moved", call.before, call.after);
    expect(!call.input_changed && oktopk_fuzz::same_bits(call.weights_before, call.weights_after), "input_changed",
           "a call that failed has changed its input or the weights");
  }
}

// Those that are left have called it once more.
void check_resumed(scenario const& of, world const& made) {
  std::vector<call_record> records;
  auto const left = static_cast<int>(std::count(made.died.begin(), made.died.end(), false));
  check_each(made.traces, [&](trace const& one, std::size_t rank) {
    if (!made.died[rank]) {
      expect(one.resuming.code == oktopk::fault::none, "survivors", "it cannot go on: ", one.resuming.text);
      expect(one.left == left, "survivors", "it is one of ", one.left, " survivors, not of ", left);
      if (one.resumed) {
        records.push_back(*one.resumed);
      }
    }
  });
  if (!records.empty()) {
    expect(static_cast<int>(records.size()) == left, "survivors", "not all survivors have gone on");
    oktopk_fuzz::fuzz_case what = of.what;
    what.ranks = left;
    check_at("survivors", [&] { oktopk_fuzz::check_call({of.of->about, what, std::move(records)}); });
  }
}

// After a fault: what returned is right, every survivor has heard of the fault in time and is as before the call, and
// those that are left can go on.
void check_faults(scenario const& of, world const& plain, world const& made, std::chrono::nanoseconds deadline) {
  auto const& injections = made.run.injections;
  if (of.has_clocks() && !injections.empty()) { // what is late makes other times, and these another choice
    check_prefix(plain, made, "replay", injections.front().at);
    check_calls(of, made);
  } else {
    check_prefix(plain, made, "wrong_sum");
  }
  auto const has = [&](consequence least) {
    return std::find_if(injections.begin(), injections.end(),
                        [&](auto const& each) { return of_fault(each.what, deadline) >= least; });
  };
  auto const first = has(consequence::possible);
  bool must_break = has(consequence::certain) != injections.end();
  // A rank may find what others cannot, and all must hear of it.
  for (std::size_t rank = 0; rank < made.traces.size(); ++rank) {
    must_break = must_break || (first != injections.end() && !made.died[rank] && made.traces[rank].is_broken());
  }
  bool const damaged =
      std::any_of(injections.begin(), injections.end(), [](auto const& each) { return damages(each.what.what); });
  check_each(made.traces, [&](trace const& one, std::size_t rank) {
    if (made.died[rank]) {
      return;
    }
    expect(one.ended, "lost_rank", "it has not come to its end");
    expect(one.is_broken() || !must_break, "no_error", "it has not heard of the fault");
    expect(!one.is_broken() || must_break, "error", one.broken.text);
    if (!must_break) {
      return;
    }
    expect(damaged || one.broken.code == oktopk::fault::timed_out || one.broken.code == oktopk::fault::abandoned,
           "other_error", one.broken.text);
    auto latest = first->at + deadline * 3 / 2;
    for (auto const& each : injections) { // who stands still hears of nothing, and where all did so nobody has told
      if (each.what.what == injected_fault::stop && each.what.rank == static_cast<int>(rank)) {
        latest = std::max(latest, each.at + each.what.time + deadline * (injections.size() == 1 ? 1 : 3) / 2);
      }
    }
    expect(one.broken_at <= latest, "late", "it has heard ", (one.broken_at - first->at).count(),
           " ns afterwards: ", one.broken.text);
    check_broken(one);
  });
  if (must_break && injections.size() == 1) { // else the survivors may have lost another one
    check_resumed(of, made);
  }
}

void run_with_faults(plan const& all, scenario const& of, world const& plain, fault_plan const& faults, counts& done) {
  world const made = run_world(all, of, simulation{.seed = mixed({of.seed, 2}), .faults = faults}, done);
  std::size_t longest = 0;
  bool broken = false;
  bool resumed = false;
  for (trace const& each : made.traces) {
    longest = std::max(longest, each.calls.size());
    broken = broken || each.is_broken();
    resumed = resumed || each.resumed;
  }
  done.faulty += made.run.injections.empty() ? 0 : 1;
  done.broken += broken ? 1 : 0;
  done.resumed += resumed ? 1 : 0;
  done.calls += static_cast<std::int64_t>(longest) + (resumed ? 1 : 0);
  check_faults(of, plain, made, all.deadline);
}

void run_all_orders(plan const& all, scenario const& of, counts& done, world& plain) {
  for (std::uint64_t order = 0; order < 2; ++order) {
    world const other = run_world(all, of, simulation{.seed = mixed({of.seed, order})}, done);
    check_whole(of, other);
    check_prefix(plain, other, "order");
    done.calls += static_cast<std::int64_t>(of.what.calls.size());
    plain.run.messages = other.run.messages;
  }
}

void run(plan const& all, scenario const& of, counts& done) {
  auto const in_turn = of.has_clocks() ? std::optional(simulation{.seed = mixed({of.seed, 2})}) : std::nullopt;
  world plain = run_world(all, of, in_turn, done);
  check_whole(of, plain);
  check_calls(of, plain);
  auto const& calls = plain.traces.front().calls;
  done.calls += static_cast<std::int64_t>(of.has_clocks() ? calls.size() : 0);
  for (std::size_t call = 1; call < calls.size(); ++call) {
    done.changes += calls[call].runs != calls[call - 1].runs ? 1 : 0;
  }
  if (!of.has_clocks()) {
    run_all_orders(all, of, done, plain);
  }
  if (all.faults) {
    fault_plan const faults = draw_faults(all, of, plain.run.messages);
    check_at(faults.text(), [&] { run_with_faults(all, of, plain, faults, done); });
  }
}

} // namespace

oktopk_fuzz::verdict run_seed(plan const& all, scenario const& of, counts& done) {
  done.seeds += 1;
  return oktopk_fuzz::found_by([&] { run(all, of, done); });
}

} // namespace oktopk_simulate
