// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/finding.hpp"
#include "fuzz/seen_call.hpp"

#include <vector>

// What is promised of one call on all ranks, each promise in a file of its own. A check gives what was not kept.
namespace oktopk_fuzz {

/// All ranks return, or throw the same error; which names the lowest bad rank and something that really is bad there;
/// and none throws without a reason. `threw` is set where they did.
template <class Value>
verdict check_errors(seen_call<Value> const& seen, bool& threw);

/// A call that threw changed nothing.
template <class Value>
verdict check_nothing_moved(seen_call<Value> const& seen);

/// Updates have the form that is promised, and are the same on all ranks to the bit, as is what ranks must share of
/// their states; states move on by one call; statistics tell the truth.
template <class Value>
verdict check_form(seen_call<Value> const& seen);

/// What is left over on all ranks and the update are together what was put in.
template <class Value>
verdict check_conservation(seen_call<Value> const& seen);

/// What every rank has selected, by the rule of its selector.
template <class Value>
verdict check_local_selection(seen_call<Value> const& seen, std::vector<entries<Value>>& selections);

/// The update is what the scheme makes of these selections, bit for bit, and so is what contributed.
template <class Value>
verdict check_update(seen_call<Value> const& seen, std::vector<entries<Value>> const& selections);

/// A dense update is the sum within what a codec may round off, and all of it contributes.
template <class Value>
verdict check_dense(seen_call<Value> const& seen);

/// No rank sends more than is documented.
template <class Value>
verdict check_volume(seen_call<Value> const& seen, std::vector<entries<Value>> const& selections);

/// `sgd` does what Algorithm 2 says, bit for bit.
template <class Value>
verdict check_step(seen_call<Value> const& seen);

/// All of the above. `threw` as above.
template <class Value>
verdict check_call(seen_call<Value> const& seen, bool& threw);

/// What is not the same in two records of one call, to the bit: error, update, what is left over, state, weights,
/// volume; not their statistics. Empty where all is the same.
template <class Value>
std::string calls_differ_in(call_record<Value> const& a, call_record<Value> const& b);

/// A twin that was made of a checkpoint does the same, bit for bit, and sends the same.
template <class Value>
verdict check_twin(std::vector<call_record<Value>> const& ranks, std::vector<call_record<Value>> const& twins);

/// Whether no run could have led to this state, so that it must be refused; why, in words.
template <class Value>
std::string impossible(facts const& about, fuzz_case const& what, state_numbers<Value> const& state);

/// Whether the partial sums at this index, of these vectors in whatever order, can have overflowed.
template <class Value>
bool can_overflow(facts const& about, std::vector<std::vector<Value>> const& vectors, std::int64_t index);

} // namespace oktopk_fuzz
