// expect: satisfaction of 'gradient_index<|does not satisfy 'gradient_index'
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A format with indices of a kind that the library does not count with: the compiler must name the part that fails.

#include <oktopk/format/coo.hpp>

#include <cstdint>

struct unsigned_coo : oktopk::coo<float, std::int32_t> {
  using index_type = std::uint32_t;
};

template <oktopk::sparse_format F>
void needs_a_format() {
}

void use() {
  needs_a_format<unsigned_coo>();
}
