// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/record.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"

#include <oktopk/catalogue/catalogue.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

// What every algorithm and every policy must pass, compiled once: a subject is a text of the catalogue (`subject_of`), or
// an algorithm without a text (`typed_subject` in fuzz/subject_of.hpp). The promises of each call are checked by
// fuzz/checks; what they compare with shares no code with the library. Each function gives the first thing that is wrong,
// or nothing.
namespace oktopk_tests {

using oktopk_fuzz::call_record;
using oktopk_fuzz::numbers;
using oktopk_fuzz::participant;
using oktopk_fuzz::subject;
using oktopk_fuzz::subject_of;

struct shape {
  std::int64_t length = 0;
  std::int64_t k = 0;
  int iterations = 1;
};

/// The calls of all ranks: [rank][iteration].
using calls_of_ranks = std::vector<std::vector<call_record>>;

/// Fills the gradient of a moment.
using filling = std::function<void(moment, numbers&)>;

/// One rank before one of its calls: may put another object in place of `allreduce`.
struct before_call {
  std::unique_ptr<participant>& allreduce;
  std::function<std::unique_ptr<participant>()> const& make;
  moment now;
  numbers const& accumulator;
};

/// A run of a subject: iterations with error feedback, as `sgd` does it.
struct run_options {
  std::function<void(before_call const&)> before{};
  std::function<oktopk::any_communicator(oktopk::in_process_communicator)> transport{};
};
calls_of_ranks run(subject const& of, int ranks, shape what, filling const& gradient, run_options const& how = {});

/// Conservation, agreement of all ranks, volume and, where it is known, the result; of each call.
std::string run_fault(subject const& of, calls_of_ranks const& run, shape what);

/// Two runs went the same way, to the bit.
std::string repetition_fault(subject const& of, calls_of_ranks once, calls_of_ranks again,
                             bool in_the_same_bytes = true);

/// All that is promised of a run, and that it is the same each time.
std::string repeated_run_fault(subject const& of, int ranks, shape what, filling const& gradient,
                               run_options const& how = {});

/// Inputs that some implementation has tripped over.
std::string special_input_fault(subject const& of, int ranks, run_options const& how = {});

/// Every way to spoil an accumulator, before every iteration in turn: all ranks say the same, and the object goes on like
/// a twin that never saw the bad call.
std::string bad_accumulator_fault(subject const& of, int ranks, shape what, run_options const& how = {});

/// Sums that overflow although every accumulator is finite: all ranks say so, and do not blame somebody's value; but where
/// a value of the last rank is bad, they blame that. Codes that bound their values may not overflow.
std::string overflow_fault(subject const& of, int ranks, shape what);

/// A length of 0, and one rank that hands over something.
std::string no_length_fault(subject const& of, int ranks);

/// Goes on from the state saved before every iteration, in a new object: the rest is the same to the bit.
std::string continuation_fault(subject const& of, int ranks, shape what);

/// Restores a state that `spoil(state, rank)` has changed: an error on every rank, after which the object goes on as if
/// nothing had been.
using spoiling = std::function<void(oktopk_fuzz::state_numbers&, int rank)>;
std::string bad_state_fault(subject const& of, int ranks, shape what, spoiling const& spoil, oktopk::fault code);

/// Each number of a state that the subject has, in turn one that no call can have left behind, on one rank, on each in
/// turn, and on all.
std::string damaged_state_fault(subject const& of);

/// With selections drawn evenly over the index the bound holds on every call; `used` is the part of it that must really
/// be sent by somebody.
std::string bound_fault(subject const& of, int ranks, shape what, correlated const& gradient, double used);

/// Runs of whole and of real numbers, special inputs and bad accumulators.
std::string algorithm_fault(subject const& of, int ranks, run_options const& how = {});

} // namespace oktopk_tests
