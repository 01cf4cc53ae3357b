// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "algorithm/record.hpp"

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/core/checkpoint.hpp>

#include <sstream>

namespace oktopk_tests {

using algorithm = oktopk::ok_topk<execution, oktopk::in_process_communicator>;
using dropping = oktopk::gtopk<execution, oktopk::in_process_communicator>;
using everything = oktopk::dense<execution, oktopk::in_process_communicator>;

/// The gradient of a rank in an iteration, correlated between ranks and iterations; the same in every run.
template <std::int64_t Length, int Ranks>
std::vector<float> correlated_gradient(int rank, int iteration) {
  std::vector<float> gradient(static_cast<std::size_t>(Length));
  correlated{5, 3}({rank, Ranks, iteration}, gradient);
  return gradient;
}

/// The bytes of a checkpoint: all of a state, to the bit.
template <class State>
std::string saved_bytes(State const& state) {
  std::ostringstream file;
  oktopk::save(file, state);
  return file.str();
}

} // namespace oktopk_tests
