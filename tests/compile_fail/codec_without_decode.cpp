// expect: satisfaction of 'codes_blocks_of<|does not satisfy 'codes_blocks_of'
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A value codec that gives nothing back: the compiler must name the part that is missing.

#include <oktopk/format/packed.hpp>

#include <cstdint>

struct one_way : oktopk::exact_values {
  void decode() = delete;
};

using format = oktopk::packed<float, std::int32_t, one_way>;

void use(format const&);
