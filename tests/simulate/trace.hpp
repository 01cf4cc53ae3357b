// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "simulate/scenario.hpp"

#include <oktopk/comm/collectives.hpp>
#include <oktopk/comm/in_process.hpp>
#ifdef OKTOPK_TESTS_WITH_XXHASH
#include <oktopk/comm/checked.hpp>
#endif

namespace oktopk_simulate {

using oktopk_fuzz::call_record;
using oktopk_fuzz::numbers;
using oktopk_fuzz::outcome;
using oktopk_fuzz::way;

/// What an iteration begins with.
struct standing {
  oktopk_fuzz::state_numbers state;
  numbers weights;
  numbers residual; ///< of bare calls; `sgd` has its own in its state
};

/// What one rank has lived through.
struct trace {
  std::vector<standing> standings;                ///< before each call, and after the last
  std::vector<call_record> calls;                 ///< that returned, or threw as all ranks did
  std::vector<std::chrono::nanoseconds> ended_at; ///< of each of these
  /// The first error that no rank's input has caused, if any; also of the constructor or of the barrier at the end.
  outcome broken;
  std::chrono::nanoseconds broken_at{0};
  std::optional<call_record> broken_call; ///< where it was in a call
  outcome again;                          ///< of an attempt to go on with the same communicator
  std::chrono::nanoseconds again_took{0};
  bool ended = false; ///< whether it came to its end, with or without error
  /// A call with those that were left, if all were made by then; and how going on ended.
  outcome resuming;
  int left = 0; ///< ranks
  std::optional<call_record> resumed;

  bool is_broken() const { return broken.code != oktopk::fault::none; }
};

/// Notes which ranks have died as planned, of what `run_and_collect` gives; what another rank threw is a finding.
inline oktopk_fuzz::verdict note_deaths(std::vector<std::exception_ptr> const& thrown, std::vector<bool>& died) {
  return oktopk_fuzz::found_by([&] {
    for (auto const& each : thrown) {
      died.push_back(oktopk::in_process::has_died(each));
    }
    oktopk_fuzz::check_each(thrown, [&](std::exception_ptr const& each, std::size_t rank) {
      oktopk_fuzz::expect_nothing_thrown(died[rank] ? nullptr : each);
    });
  });
}

/// Whether an error comes from the communicator and not from the input.
inline bool is_of_communicator(oktopk::fault code) {
  using oktopk::fault;
  return code == fault::timed_out || code == fault::abandoned || code == fault::deadlock ||
         code == fault::communication || code == fault::damaged_message;
}

/// One rank: makes the algorithm, calls it, meets all others at a barrier; where that breaks, goes on with those that
/// are left from the last call that all of these have completed.
class life {
public:
  life(scenario const& of, oktopk::in_process_communicator comm, trace& traced)
      : of_(*of.of), what_(of.what), checked_(of.checked), restored_before_(of.restored_before), comm_(comm),
        traced_(traced), now_{{}, oktopk_fuzz::first_weights(what_), {}} {
    now_.residual.assign(now_.weights.size(), 0);
    if (of.has_clocks()) {
      clock_.emplace(comm, of.speeds[static_cast<std::size_t>(comm.rank())],
                     oktopk_fuzz::mixed({of.seed, static_cast<std::uint64_t>(comm.rank())}));
    }
  }

  void operator()(std::chrono::nanoseconds deadline) {
    comm_.set_time_limit(deadline);
    note(oktopk_tests::outcome_of([&] { mine_ = make(comm_, 0); }));
    bool const made = !traced_.is_broken();
    for (std::size_t call = 0; call < what_.calls.size() && !traced_.is_broken(); ++call) {
      one_call(static_cast<int>(call));
    }
    if (!traced_.is_broken()) {
      keep_standing();
      // Who has all that it waits for in one barrier may hear only in the next what has happened.
      note(oktopk_tests::outcome_of([&] {
        mine_->meet();
        mine_->meet();
      }));
    }
    if (traced_.is_broken()) {
      auto const before = comm_.elapsed();
      traced_.again = oktopk_tests::outcome_of([&] { oktopk::detail::barrier_all_to_all(comm_); });
      traced_.again_took = comm_.elapsed() - before;
      traced_.resuming = oktopk_tests::outcome_of([&] { go_on(made, deadline); });
    }
    traced_.ended = true;
  }

private:
  std::unique_ptr<oktopk_fuzz::participant> make(oktopk::in_process_communicator comm, int call) {
    oktopk::any_communicator base = oktopk_fuzz::near_or_far(comm, what_.far);
#ifdef OKTOPK_TESTS_WITH_XXHASH
    if (checked_) {
      base = oktopk::checked(comm);
    }
#endif
    if (clock_) {
      clock_->begin_call(call);
      base = oktopk::any_communicator(clocked(base, *clock_)); // an assignment would take its base
    }
    return of_.make(base, what_.how, what_.calls_made, oktopk_fuzz::rate_in(what_, call));
  }

  void note(outcome said) {
    if (said.code != oktopk::fault::none) {
      traced_.broken = std::move(said);
      traced_.broken_at = comm_.elapsed();
    }
  }

  void keep_standing() {
    now_.state = mine_->state();
    traced_.standings.push_back(now_);
  }

  call_record perform(oktopk_fuzz::participant& who, int call) {
    auto record = who.call(oktopk_fuzz::input_of(what_, comm_.rank(), call, now_.residual), now_.weights);
    if (what_.feeds_back() && !record.threw()) {
      now_.residual = oktopk_fuzz::left_over(what_, record, record.input);
    }
    return record;
  }

  void restore() {
    std::string const saved = mine_->save();
    mine_ = make(comm_, 0);
    mine_->load(saved);
  }

  void one_call(int call) {
    if (call == restored_before_) {
      note(oktopk_tests::outcome_of([&] { restore(); }));
    }
    if (traced_.is_broken()) {
      return;
    }
    if (clock_) {
      clock_->begin_call(call);
    }
    mine_->set_learning_rate(oktopk_fuzz::rate_in(what_, call));
    keep_standing();
    call_record record = perform(*mine_, call);
    if (is_of_communicator(record.said.code)) {
      note(record.said);
      traced_.broken_call = std::move(record);
    } else {
      traced_.calls.push_back(std::move(record));
      traced_.ended_at.push_back(comm_.elapsed());
    }
  }

  // Ranks may be one call apart: one that had all its messages has completed the call that others could not.
  void go_on(bool made, std::chrono::nanoseconds deadline) {
    comm_.set_time_limit(std::chrono::nanoseconds(0)); // waits for who has only been stopped
    oktopk::in_process_communicator left = comm_.survivors();
    left.set_time_limit(deadline);
    traced_.left = left.size();
    auto begun = static_cast<std::int64_t>(made ? traced_.standings.size() : 0) - 1;
    left.allreduce(std::span<std::int64_t>(&begun, 1), oktopk::reduction::min, oktopk::phase::control);
    if (begun < 0 || begun >= static_cast<std::int64_t>(what_.calls.size())) {
      return; // somebody has nothing to go on with, or all calls are done
    }
    now_ = traced_.standings[static_cast<std::size_t>(begun)];
    auto const next = make(left, static_cast<int>(begun));
    if (!clock_) { // the state of the scheme that `automatic` has chosen is of another number of ranks
      now_.state.boundaries.clear(); // belong to another number of ranks
      next->restore(now_.state);
    }
    traced_.resumed = perform(*next, static_cast<int>(begun));
  }

  oktopk_fuzz::subject const& of_;
  oktopk_fuzz::fuzz_case const& what_;
  bool checked_;
  int restored_before_;
  oktopk::in_process_communicator comm_;
  trace& traced_;
  standing now_;
  std::optional<rank_clock> clock_;
  std::unique_ptr<oktopk_fuzz::participant> mine_;
};

} // namespace oktopk_simulate
