// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/agreement.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/torch/view.hpp>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <vector>

namespace oktopk::detail {

/// The parameters of a module, each once, in the order in which they are registered. Collective; an `error` on every
/// rank that names the parameter or buffer in which the ranks' modules differ, or a parameter that requires a gradient
/// and is no dense tensor of `float` on the device of `MemorySpace`.
template <class MemorySpace, class Comm>
std::vector<at::Tensor> agreed_parameters(torch::nn::Module& module, Comm& comm) {
  std::vector<at::Tensor> parameters;
  agreement terms("data_parallel");
  for (auto const& each : module.named_parameters()) {
    at::Tensor const& parameter = each.value();
    bool const known = std::any_of(parameters.begin(), parameters.end(),
                                   [&](at::Tensor const& other) { return other.is_same(parameter); });
    if (known) {
      continue;
    }
    parameters.push_back(parameter);
    terms.fact("parameter " + each.key(), parameter.numel());
    terms.fact("gradient of " + each.key(), parameter.requires_grad());
    if (!parameter.requires_grad()) {
      terms.fact("bytes of " + each.key(), parameter.nbytes());
      continue;
    }
    if (parameter.scalar_type() != at::kFloat || parameter.layout() != at::kStrided ||
        parameter.device().type() != torch_device<MemorySpace>) {
      terms.note(fault::option_out_of_range,
                 "the parameter " + each.key() + " is no dense tensor of type float on the execution space's device");
    }
  }
  for (auto const& each : module.named_buffers()) {
    terms.fact("buffer " + each.key(), each.value().nbytes());
  }
  terms.check_on(comm);
  return parameters;
}

} // namespace oktopk::detail
