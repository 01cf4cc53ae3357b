// expect: satisfaction of 'carries_state<|does not satisfy 'carries_state'
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A selector that cannot tell a damaged state: the compiler must name the part that is missing.

#include <oktopk/select/exact.hpp>

struct credulous : oktopk::exact {
  using exact::exact;
  template <class>
  struct state {};
};

template <oktopk::selector S>
void needs_a_selector() {
}

void use() {
  needs_a_selector<credulous>();
}
