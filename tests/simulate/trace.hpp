// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/case.hpp"
#include "fuzz/record.hpp"
#include "simulate/scenario.hpp"

#include <oktopk/comm/collectives.hpp>
#include <oktopk/comm/in_process.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace oktopk_simulate {

using oktopk_fuzz::call_record;
using oktopk_fuzz::outcome;
using oktopk_fuzz::way;

/// What an iteration begins with.
template <class Value>
struct standing {
  oktopk_fuzz::state_numbers<Value> state;
  std::vector<Value> weights;
  std::vector<Value> residual; ///< of bare calls; `sgd` has its own in its state
};

/// What one rank has lived through.
template <class Value>
struct trace {
  std::vector<standing<Value>> standings; ///< before each call, and after the last
  std::vector<call_record<Value>> calls;  ///< that returned, or threw as all ranks did
  /// The first error that no rank's input has caused, if any; also of the constructor or of the barrier at the end.
  outcome broken;
  std::chrono::nanoseconds broken_at{0};
  std::optional<call_record<Value>> broken_call; ///< where it was in a call
  outcome again;                                 ///< of an attempt to go on with the same communicator
  std::chrono::nanoseconds again_took{0};
  bool ended = false; ///< whether it came to its end, with or without error
  /// A call with those that were left, if all were made by then; and how going on ended.
  outcome resuming;
  int left = 0;                 ///< ranks
  std::int64_t resumed_at = -1; ///< which call was made anew
  std::optional<call_record<Value>> resumed;
};

/// Notes which ranks have died as planned, of what `run_and_collect` gives; what another rank threw is a finding.
inline oktopk_fuzz::verdict note_deaths(std::vector<std::exception_ptr> const& thrown, std::vector<bool>& died) {
  oktopk_fuzz::verdict wrong;
  for (std::size_t rank = 0; rank < thrown.size(); ++rank) {
    died.push_back(oktopk::in_process::has_died(thrown[rank]));
    try {
      if (thrown[rank] && !died.back()) {
        std::rethrow_exception(thrown[rank]);
      }
    } catch (std::exception const& caught) {
      wrong = oktopk_fuzz::finding{"threw", "rank " + std::to_string(rank) + ": " + caught.what()};
    }
  }
  return wrong;
}

/// Whether an error comes from the communicator and not from the input.
inline bool is_of_communicator(oktopk::fault code) {
  using oktopk::fault;
  return code == fault::timed_out || code == fault::abandoned || code == fault::deadlock ||
         code == fault::communication || code == fault::damaged_message;
}

/// One rank: makes the algorithm, calls it, meets all others at a barrier; where that breaks, goes on with those that
/// are left from the last call that all of these have completed.
template <class Value>
class life {
public:
  life(oktopk_fuzz::subject<Value> const& of, oktopk_fuzz::fuzz_case const& what, oktopk::in_process_communicator comm,
       trace<Value>& traced)
      : of_(of), what_(what), comm_(comm), rank_(comm.rank()), traced_(traced),
        now_{{}, oktopk_fuzz::first_weights<Value>(what), {}} {
    now_.residual.assign(now_.weights.size(), Value(0));
  }

  void operator()(std::chrono::nanoseconds deadline) {
    comm_.set_time_limit(deadline);
    note(
        oktopk_tests::outcome_of([&] { mine_ = of_.make(comm_, what_.far, what_.how, what_.calls_made, rate_of(0)); }));
    bool const made = traced_.broken.code == oktopk::fault::none;
    for (std::size_t call = 0; call < what_.calls.size() && !is_broken(); ++call) {
      one_call(static_cast<int>(call));
    }
    if (!is_broken()) {
      keep_standing();
      // Who has all that it waits for in one barrier may hear only in the next what has happened.
      note(oktopk_tests::outcome_of([&] {
        mine_->meet();
        mine_->meet();
      }));
    }
    if (is_broken()) {
      auto const before = comm_.elapsed();
      traced_.again = oktopk_tests::outcome_of([&] { oktopk::detail::barrier_all_to_all(comm_); });
      traced_.again_took = comm_.elapsed() - before;
      traced_.resuming = oktopk_tests::outcome_of([&] { go_on(made, deadline); });
    }
    traced_.ended = true;
  }

private:
  bool is_broken() const { return traced_.broken.code != oktopk::fault::none; }

  void note(outcome said) {
    if (said.code != oktopk::fault::none) {
      traced_.broken = std::move(said);
      traced_.broken_at = comm_.elapsed();
    }
  }

  double rate_of(int call) const {
    return what_.new_rate_before >= 0 && call >= what_.new_rate_before ? oktopk_fuzz::new_rate(what_)
                                                                       : what_.learning_rate;
  }

  void keep_standing() {
    now_.state = mine_->state();
    traced_.standings.push_back(now_);
  }

  call_record<Value> perform(oktopk_fuzz::participant<Value>& who, int call) {
    auto record =
        oktopk_fuzz::recorded_call(who, oktopk_fuzz::input_of(what_, rank_, call, now_.residual), now_.weights);
    if (what_.feeds_back() && record.said.code == oktopk::fault::none) {
      now_.residual = oktopk_fuzz::left_over(record, record.input);
    }
    return record;
  }

  void one_call(int call) {
    if (what_.calls_made != way::bare) {
      mine_->set_learning_rate(rate_of(call));
    }
    keep_standing();
    call_record<Value> record = perform(*mine_, call);
    if (is_of_communicator(record.said.code)) {
      note(record.said);
      traced_.broken_call = std::move(record);
    } else {
      traced_.calls.push_back(std::move(record));
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
    auto const next = of_.make(left, what_.far, what_.how, what_.calls_made, rate_of(static_cast<int>(begun)));
    now_.state.boundaries.clear(); // belong to another number of ranks
    next->restore(now_.state);
    traced_.resumed_at = begun;
    traced_.resumed = perform(*next, static_cast<int>(begun));
  }

  oktopk_fuzz::subject<Value> const& of_;
  oktopk_fuzz::fuzz_case const& what_;
  oktopk::in_process_communicator comm_;
  int rank_;
  trace<Value>& traced_;
  standing<Value> now_;
  std::unique_ptr<oktopk_fuzz::participant<Value>> mine_;
};

} // namespace oktopk_simulate
