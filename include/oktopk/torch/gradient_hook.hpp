// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace oktopk::detail {

/// Calls a function whenever the backward pass has added to the gradient of a parameter, until it goes out of scope.
///
/// It is called by the thread that runs the backward pass. Torch has no public name for this; its own data parallelism
/// does the same.
class gradient_hook {
public:
  gradient_hook(at::Tensor const& parameter, std::function<void()> call)
      : accumulator_(torch::autograd::impl::grad_accumulator(parameter)),
        post_(std::make_unique<post>(std::move(call))), key_(reinterpret_cast<std::uintptr_t>(post_.get())) {
    accumulator_->add_post_hook(std::move(post_));
  }

  gradient_hook(gradient_hook const&) = delete;
  gradient_hook& operator=(gradient_hook const&) = delete;
  ~gradient_hook() { accumulator_->del_post_hook(key_); }

private:
  struct post final : torch::autograd::FunctionPostHook {
    explicit post(std::function<void()> function) : call(std::move(function)) {}

    torch::autograd::variable_list operator()(torch::autograd::variable_list const& outputs,
                                              torch::autograd::variable_list const&) override {
      call();
      return outputs;
    }

    std::function<void()> call;
  };

  std::shared_ptr<torch::autograd::Node> accumulator_; // torch keeps only a weak pointer
  std::unique_ptr<post> post_;
  std::uintptr_t key_;
};

} // namespace oktopk::detail
