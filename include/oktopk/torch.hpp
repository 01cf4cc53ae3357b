// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The adapter for PyTorch's C++ library. Only this header and those in torch/ include headers of
/// torch.

#include <oktopk/bucketed.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/dense/broadcast.hpp>
#include <oktopk/torch/process_group.hpp>
#include <oktopk/torch/view.hpp>

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace oktopk {

namespace detail {

/// Options of `data_parallel`; the same on all ranks.
struct data_parallel_options {
  double density = 0.01; ///< of the selections, where `buckets.plan.densities` names none
  /// An empty order is the parameters' from the last to the first; `directions` without shapes get those of the parameters.
  detail::bucketed_options buckets{};
  /// After the first step, buckets take their tensors in the order in which gradients became ready on rank 0, if that
  /// differs; only with overlap, several buckets and an empty order.
  bool order_from_first_step = true;
};

/// Copies a tensor of rank 0 to all ranks, as bits, whatever its type and device. Collective; size and type are the
/// same on all ranks. Broadcasts the bytes by way of an array of the same size on the execution space's device.
template <execution_space E, communicator Comm>
void copy_from_root(E const& exec, Comm& comm, at::Tensor const& tensor) {
  at::NoGradGuard const not_recorded;
  auto const bytes = static_cast<std::int64_t>(tensor.nbytes());
  std::int64_t const words = (bytes + 3) / 4;
  Kokkos::View<float*, typename E::memory_space> const staging(std::string("oktopk::copy_from_root"),
                                                               static_cast<std::size_t>(words));
  at::Tensor const raw = torch_tensor(staging).view(at::kByte).narrow(0, 0, bytes);
  raw.copy_(tensor.detach().contiguous().view(-1).view(at::kByte));
  broadcast_one_to_all<E, Comm, float>().run(exec, comm, staging.data(), words, 0);
  tensor.detach().copy_(raw.view(tensor.scalar_type()).view(tensor.sizes()));
}

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

/// Calls a function whenever the backward pass has added to the gradient of a parameter, on the thread of that pass.
///
/// Torch has no public name for this; its own data parallelism does the same.
class gradient_hook {
public:
  gradient_hook(at::Tensor const& parameter, std::function<void()> call)
      : accumulator_(torch::autograd::impl::grad_accumulator(parameter)),
        key_(accumulator_->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
            [call = std::move(call)](auto const& outputs, auto const&) {
              call();
              return outputs;
            }))) {}

  gradient_hook& operator=(gradient_hook&&) = delete;
  ~gradient_hook() { accumulator_->del_post_hook(key_); }

private:
  // A pointer that owns, std::shared_ptr before torch took its own: torch keeps only a weak one.
  decltype(torch::autograd::impl::grad_accumulator(at::Tensor())) accumulator_;
  std::uintptr_t key_;
};

} // namespace detail

/// Data-parallel training of a module of torch: gradients are reduced while the backward pass runs.
///
/// ```
/// oktopk::data_parallel parallel(*model, comm, "ok_topk(format=packed)", {.density = 0.01});
/// for (auto& batch : loader) {
///   optimizer.zero_grad();
///   loss_of(model, batch).backward();
///   parallel.wait(); // gradients are averages over all ranks now
///   optimizer.step();
/// }
/// ```
///
/// The constructor copies parameters and buffers of rank 0 to all ranks, and hooks on the gradients of all parameters
/// that require one. In a backward pass each gradient goes to its bucket (`bucketed`), whose call begins when it is
/// full. A parameter without a gradient on this rank counts as zeros, and gets the average as the others do: zeros if
/// no rank has a gradient. An optimizer with momentum or decay does not skip such zeros. A parameter that no longer
/// requires a gradient, on all ranks alike, is frozen: its gradient is not set, and its residual waits until it
/// requires one again. Parameters are dense tensors of type `float` on the device of the execution space; a parameter
/// that is shared by modules is reduced once.
///
/// If the execution space is a device, its instance must have the stream on which torch runs the backward pass. Buckets
/// are filled from the last parameter to the first, so a parameter that is registered late and used early delays all
/// parameters before it. The first step shows the true order; its `wait` makes new buckets if that order differs
/// (`order_from_first_step`). Residuals and velocities are kept, because they belong to parameters. Thresholds and
/// regions start anew, and so do densities and hooks that the caller has set on `buckets()`.
///
/// The communicator is one whose messages the host waits for (MPI, Gloo, in-process), not NCCL's: parameters are copied
/// by a broadcast of such messages. Kokkos is initialised before and finalised after the life of this object. After
/// `wait` a gradient lies in the memory of its bucket, until another gradient is set or this object ends. `wait` throws
/// the errors of `bucketed`; gradients are then of no use.
template <gradient_allreduce Allreduce>
class data_parallel {
  static_assert(std::same_as<typename Allreduce::value_type, float>,
                "oktopk: gradients of torch are of type float here");

public:
  using execution_space = typename Allreduce::execution_space;
  using communicator_type = typename Allreduce::communicator_type;
  using memory_space = typename execution_space::memory_space;
  using state_type = typename bucketed<Allreduce>::state_type;
  using options = detail::data_parallel_options;

  /// Collective. `make(bucket)` gives the allreduce of one bucket; a copy of it is kept, and may be called again in the
  /// first `wait` and in `restore`. An `error` on every rank where the modules differ or have parameters of another
  /// type.
  template <class Make>
    requires std::same_as<std::invoke_result_t<Make const&, bucket const&>, Allreduce> && std::copy_constructible<Make>
  data_parallel(torch::nn::Module& module, communicator_type comm, Make const& make,
                detail::data_parallel_options const& how = {}, execution_space exec = {})
      : exec_(std::move(exec)), comm_(std::move(comm)), make_(make) {
    std::vector<at::Tensor> const all = detail::agreed_parameters<memory_space>(module, comm_);
    std::copy_if(all.begin(), all.end(), std::back_inserter(parameters_),
                 [](at::Tensor const& each) { return each.requires_grad(); });
    how_ = how.buckets;
    if (how_.plan.order.empty()) {
      how_.plan.order.resize(parameters_.size());
      std::iota(how_.plan.order.rbegin(), how_.plan.order.rend(), 0);
    }
    if (how_.plan.densities.empty()) {
      how_.plan.densities = {how.density};
    }
    if (how_.directions && how_.directions->shapes.empty()) {
      for (at::Tensor const& each : parameters_) {
        how_.directions->shapes.emplace_back(each.sizes().begin(), each.sizes().end());
      }
    }
    buckets_ = new_buckets(how_.plan.order);
    if (how.buckets.plan.order.empty()) {
      bool const may_gain = buckets_->overlaps() && buckets_->plan().buckets.size() > 1;
      order_ = how.order_from_first_step && may_gain ? next_order::of_this_step : next_order::of_saved_state;
    }
    for (std::vector<at::Tensor> const& tensors : {all, module.buffers()}) {
      for (at::Tensor const& each : tensors) {
        detail::copy_from_root(exec_, comm_, each);
      }
    }
    has_gradient_.assign(parameters_.size(), 0);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      gradients_.push_back(torch_tensor(buckets_->gradient(static_cast<int>(i)), parameters_[i].sizes()));
      hooks_.push_back(std::make_unique<detail::gradient_hook>(parameters_[i], [this, i] { note(i); }));
    }
  }

  /// The same with an algorithm of the catalogue by its name, such as `ok_topk(format=packed)`.
  data_parallel(torch::nn::Module& module, communicator_type comm, std::string_view text,
                detail::data_parallel_options const& how = {}, execution_space exec = {})
    requires std::same_as<Allreduce, any_allreduce<execution_space>>
      : data_parallel(
            module, comm,
            [exec, comm, name = std::string(text)](bucket const& of) {
              return make_allreduce(exec, comm, name, {.length = of.length, .k = {}, .density = of.density});
            },
            how, exec) {}

  data_parallel& operator=(data_parallel&&) = delete;

  /// Gradients that lie in the memory of buckets are copied out of it.
  ~data_parallel() {
    hooks_.clear();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (lies_in_bucket(i)) {
        parameters_[i].mutable_grad() = parameters_[i].grad().clone();
      }
    }
  }

  /// Ends the step that a backward pass has begun: waits for all buckets; the gradients are averages then. Collective.
  void wait() {
    std::vector<int> order = buckets_->ready_order();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (has_gradient_[i] != 0 && parameters_[i].grad().defined()) { // it may have been dropped since
        announce(i);
      } else if (is_frozen(i) && !buckets_->is_ready(static_cast<int>(i))) {
        buckets_->withhold(static_cast<int>(i));
      }
      has_gradient_[i] = 0;
    }
    buckets_->wait();
    times_ = buckets_->last_step();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!lies_in_bucket(i) && !is_frozen(i)) {
        parameters_[i].mutable_grad() = gradients_[i];
      }
    }
    if (order_ == next_order::of_this_step) {
      order_ = next_order::of_saved_state;
      std::copy_if(how_.plan.order.begin(), how_.plan.order.end(), std::back_inserter(order),
                   [&](int tensor) { return std::find(order.begin(), order.end(), tensor) == order.end(); });
      detail::copy_from_root(exec_, comm_, at::from_blob(order.data(), {std::ssize(order)}, at::kInt));
      reorder(order);
    }
  }

  /// Turns the reduction of gradients off and on again; on at first. While it is off, backward passes only add to the
  /// gradients of this rank, and the first pass after it is on again reduces their sums (call `wait` only after that
  /// pass). Call it in the same way on all ranks.
  void set_reducing(bool reduces) { reduces_ = reduces; }

  /// Times of the last step: how much the backward pass has hidden.
  detail::overlap_times const& last_step() const { return times_; }
  /// The first `wait` and `restore` may replace them.
  bucketed<Allreduce>& buckets() { return *buckets_; }

  /// All that one step hands to the next, apart from weights and optimizer.
  state_type state() const { return buckets_->state(); }
  /// Collective, between steps. Takes the order of the saved buckets, unless the options have one.
  void restore(state_type const& saved) {
    if (order_ != next_order::as_it_is) {
      agreement terms("data_parallel::restore");
      std::vector<int> const order = saved.order();
      if (order.size() != parameters_.size() || !detail::problem_of(lengths(), {.order = order}).empty()) {
        terms.note(fault::bad_state, "the saved state is of other tensors");
      }
      for (int const tensor : order) {
        terms.fact("next in order", tensor);
      }
      terms.check_on(comm_);
      reorder(order);
      order_ = next_order::of_saved_state;
    }
    buckets_->restore(saved);
  }

private:
  /// Where another order of the tensors may come from.
  enum class next_order { as_it_is, of_saved_state, of_this_step };

  std::vector<std::int64_t> lengths() const {
    std::vector<std::int64_t> all;
    for (at::Tensor const& each : parameters_) {
      all.push_back(each.numel());
    }
    return all;
  }

  std::unique_ptr<bucketed<Allreduce>> new_buckets(std::vector<int> order) const {
    detail::bucketed_options how = how_;
    how.plan.order = std::move(order);
    return std::make_unique<bucketed<Allreduce>>(exec_, comm_, lengths(), make_, how);
  }

  // Puts the tensors into buckets in another order. The new buckets get the state and the gradients of the old ones.
  void reorder(std::vector<int> const& order) {
    if (order == how_.plan.order) {
      return;
    }
    auto fresh = new_buckets(order);
    fresh->restore(buckets_->state());
    fresh->set_scale(buckets_->scale());
    how_.plan.order = order;
    at::NoGradGuard const not_recorded;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      at::Tensor moved = torch_tensor(fresh->gradient(static_cast<int>(i)), parameters_[i].sizes());
      if (lies_in_bucket(i)) {
        moved.copy_(gradients_[i]);
        parameters_[i].mutable_grad() = moved;
      }
      gradients_[i] = std::move(moved);
    }
    buckets_ = std::move(fresh);
  }

  bool lies_in_bucket(std::size_t i) const {
    at::Tensor const& gradient = parameters_[i].grad();
    return gradient.defined() && gradient.has_storage() && gradient.data_ptr() == gradients_[i].data_ptr();
  }

  bool is_frozen(std::size_t i) const { return !parameters_[i].requires_grad(); }

  // Called in the backward pass, on its thread: for gradients of a device, that is one of torch's own threads.
  void note(std::size_t i) {
    has_gradient_[i] = 1;
    if (reduces_ && buckets_->overlaps()) {
      announce(i);
    }
  }

  void announce(std::size_t i) {
    has_gradient_[i] = 0;
    buckets_->ready_after(static_cast<int>(i), [&] {
      if (!lies_in_bucket(i)) {
        at::NoGradGuard const not_recorded;
        gradients_[i].copy_(parameters_[i].grad());
      }
    });
  }

  execution_space exec_;
  communicator_type comm_;
  std::function<Allreduce(bucket const&)> make_;
  detail::bucketed_options how_;       // with the current order
  std::vector<at::Tensor> parameters_; // those that require a gradient
  std::unique_ptr<bucketed<Allreduce>> buckets_;
  std::vector<at::Tensor> gradients_; // the memory of the buckets, as the parameters' gradients
  std::vector<std::unique_ptr<detail::gradient_hook>> hooks_;
  std::vector<char> has_gradient_; // 1 for a gradient that was not announced yet
  detail::overlap_times times_;
  bool reduces_ = true;
  next_order order_ = next_order::as_it_is;
};

template <communicator Comm>
data_parallel(torch::nn::Module&, Comm, std::string_view, detail::data_parallel_options = {})
    -> data_parallel<any_allreduce<Kokkos::DefaultHostExecutionSpace>>;

template <communicator Comm, class Make>
  requires std::invocable<Make const&, bucket const&>
data_parallel(torch::nn::Module&, Comm, Make, detail::data_parallel_options = {})
    -> data_parallel<std::invoke_result_t<Make const&, bucket const&>>;

} // namespace oktopk
