// expect: required expression 'scope.share.count.' is invalid|because 'scope.share.count.' would be invalid
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A scope in which ranks do not tell each other what they chose: the compiler must name what is missing.

#include <oktopk/select/concept.hpp>

#include <cstdint>

struct secretive : oktopk::local_scope {
  std::int64_t share() const = delete;
};

template <oktopk::selection_scope S>
void needs_a_scope() {
}

void use() {
  needs_a_scope<secretive>();
}
