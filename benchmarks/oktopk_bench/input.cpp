// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "input.hpp"

#include "input_files.hpp"
#include "synthetic.hpp"

namespace oktopk_bench {

std::unique_ptr<input> open_input(options const& asked, int rank) {
  if (asked.length) {
    return std::make_unique<synthetic_input>(*asked.length, asked.seed, rank);
  }
  return std::make_unique<file_input>(asked.inputs, rank);
}

} // namespace oktopk_bench
