// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/record.hpp"

// What is promised of one call on all ranks. A check throws what was not kept.
namespace oktopk_fuzz {

/// The update is what the scheme makes of what every rank has selected by the rule of its selector, bit for bit, and so
/// is what contributed. Gives these selections.
std::vector<entries> check_selections(seen_call const& seen);

/// A dense update is the sum within what a codec may round off, and all of it contributes.
void check_dense(seen_call const& seen);

/// No rank sends more than is documented.
void check_volume(seen_call const& seen, std::vector<entries> const& selections);

/// All of the above, and errors, form, conservation and steps. Gives whether all ranks threw as promised.
bool check_call(seen_call const& seen);

/// Two records of one call are the same, to the bit: error, update, what is left over, state, weights, statistics,
/// volume.
void expect_same(char const* check, call_record const& a, call_record const& b);

/// Some run could have led to this state; else it must be refused.
void check_possible(char const* check, fuzz_case const& what, state_numbers const& state);

} // namespace oktopk_fuzz
