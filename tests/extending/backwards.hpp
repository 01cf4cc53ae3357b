// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/exchange/concept.hpp>

/// Rotated destinations in the other direction, one message each way in flight.
struct backwards {
  struct options {};

  backwards() : backwards(options{}) {}
  explicit backwards(options) {}

  static int destination(int rank, int step, int ranks) { return (rank + ranks - step) % ranks; }
  static int source(int rank, int step, int ranks) { return (rank + step) % ranks; }
  static int bucket() { return 1; }
  static std::string describe() { return "backwards"; }
  static std::string problem() { return {}; }
};
