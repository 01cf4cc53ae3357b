// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/case.hpp"
#include "fuzz/draws.hpp"
#include "fuzz/numbers.hpp"

#include <string>
#include <vector>

namespace oktopk_fuzz {

/// Alters some numbers of a state. The same draws alter the states of all ranks alike.
template <class Value>
void alter(draws& draw, fuzz_case const& what, state_numbers<Value>& state);

/// How a checkpoint is damaged.
enum class file_damage { truncated, trailing, other_type, flipped };

/// A file of a state, of some type.
struct typed_file {
  std::string state_type;
  bool of_sgd = false;
  std::string bytes;
};

/// Files of states of several types.
std::vector<typed_file> const& other_files();

/// Damages the bytes of a checkpoint. The same draws do the same to all.
std::string damaged(file_damage how, draws& draw, facts const& about, bool of_sgd, std::string bytes);

} // namespace oktopk_fuzz
