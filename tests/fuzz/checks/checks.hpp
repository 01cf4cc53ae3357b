// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/record.hpp"

#include <string>
#include <vector>

// What is promised of one call on all ranks. A check gives what was not kept.
namespace oktopk_fuzz {

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

/// All of the above, and errors, form, conservation and steps. `threw` is set where all ranks threw as promised.
template <class Value>
verdict check_call(seen_call<Value> const& seen, bool& threw);

/// What is not the same in two records of one call, to the bit: error, update, what is left over, state, weights,
/// volume; not their statistics. Empty where all is the same.
template <class Value>
std::string calls_differ_in(call_record<Value> const& a, call_record<Value> const& b);

/// A replica that was made of a checkpoint does the same, bit for bit, and sends the same.
template <class Value>
verdict check_replica(std::vector<call_record<Value>> const& ranks, std::vector<call_record<Value>> const& replicas);

/// Why no run could have led to this state, so that it must be refused; empty where one could.
template <class Value>
std::string impossible(fuzz_case const& what, state_numbers<Value> const& state);

} // namespace oktopk_fuzz
