// expect: satisfaction of 'bounds_its_selection<|does not satisfy 'bounds_its_selection'
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A selector that does not say how much it selects at most: the compiler must name the part that is missing.

#include <oktopk/select/exact.hpp>

#include <cstdint>

struct unlimited : oktopk::exact {
  using exact::exact;
  std::int64_t capacity() const = delete;
};

template <oktopk::selector S>
void needs_a_selector() {
}

void use() {
  needs_a_selector<unlimited>();
}
