// expect: satisfaction of 'bounds_its_size<|does not satisfy 'bounds_its_size'
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A format that does not say how much room its entries need: the compiler must name the part that is missing.

#include <oktopk/format/coo.hpp>

#include <cstdint>

struct boundless : oktopk::coo<> {
  static std::int64_t max_encoded_bytes() = delete;
};

template <oktopk::sparse_format F>
void needs_a_format() {
}

void use() {
  needs_a_format<boundless>();
}
