// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdlib>

// Ranks that the environment numbers, as torchrun and start_ranks.py do.
namespace oktopk_tests {

inline int number_in(char const* variable, int otherwise) {
  char const* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

inline int world_rank() {
  return number_in("RANK", 0);
}

inline int world_size() {
  return number_in("WORLD_SIZE", 1);
}

} // namespace oktopk_tests
