// expect: required expression 'group.gather_counts.count.' is invalid|because 'group.gather_counts.count.' would be
// invalid SPDX-FileCopyrightText: 2026 The oktopk authors SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A group in which ranks do not tell each other what they chose: the compiler must name what is missing.

#include <oktopk/select/concept.hpp>

#include <cstdint>

struct secretive : oktopk::detail::one_rank {
  std::int64_t gather_counts() = delete;
};

template <oktopk::selection_group G>
void needs_a_group() {
}

void use() {
  needs_a_group<secretive>();
}
