// expect: 'how.source.number, number, number.' (is|would be) invalid
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A schedule that does not say whom a rank receives from: the compiler must name what is missing.

#include <oktopk/exchange/split_and_reduce.hpp>

struct one_way : oktopk::rotated {
  using rotated::rotated;
  static int source() = delete;
};

template <oktopk::schedule S>
void needs_a_schedule() {
}

void use() {
  needs_a_schedule<one_way>();
}
