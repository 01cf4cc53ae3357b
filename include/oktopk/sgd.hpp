// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Algorithm 2 of the paper: SGD with a sparse allreduce and error feedback.

#include <oktopk/algorithm/concept.hpp>
#include <oktopk/comm/agreement.hpp>
#include <oktopk/core/checkpoint.hpp>
#include <oktopk/core/kokkos_ext/fence.hpp>
#include <oktopk/core/kokkos_ext/instance.hpp>
#include <oktopk/core/kokkos_ext/range.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/select/source.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace oktopk {

namespace detail {

/// The fault of a learning rate for steps in `Value`, in words; empty where there is none.
template <gradient_value Value>
std::string rate_fault(double rate) {
  if (!std::isfinite(rate)) {
    return "the learning rate is not finite";
  }
  bool const infinite = std::abs(rate) > static_cast<double>(std::numeric_limits<Value>::max());
  // A rate that becomes zero would train nothing, and nobody would be told.
  if (infinite || (rate != 0 && static_cast<Value>(rate) == 0)) {
    std::ostringstream text;
    text << "the learning rate " << rate << " is " << (infinite ? "infinite" : "zero") << " as a "
         << (std::same_as<Value, float> ? "float" : "double");
    return text.str();
  }
  return {};
}

} // namespace detail

/// Options of `sgd`. Outside of the class, so that `sgd` can be made without template arguments.
struct sgd_options {
  double learning_rate = 0.1; ///< finite, also as a value of the gradient, and not rounded to zero there
};

/// Data-parallel SGD over any gradient allreduce (paper, Algorithm 2).
///
/// Each step: acc = residual + lr * gradient; update = allreduce(acc); residual = acc with the contributed entries
/// cleared and what the scheme returned added back; w -= update / P. The learning rate is inside the accumulator, as in
/// the paper, so a change of it does not rescale what is left over from before. Holds two vectors of the gradient's
/// length; a step that throws leaves weights and residual as they were.
///
/// Everything runs on the allreduce's instance of the execution space. An object can be neither copied nor moved, as
/// the allreduce cannot.
template <gradient_allreduce Allreduce>
class sgd {
public:
  using execution_space = typename Allreduce::execution_space;
  using value_type = typename Allreduce::value_type;
  using index_type = typename Allreduce::index_type;
  using memory_space = typename execution_space::memory_space;
  using vector_type = Kokkos::View<value_type*, memory_space>;
  using const_vector_type = Kokkos::View<value_type const*, memory_space>;
  using update_type = typename Allreduce::update_type;

  using options = sgd_options;

  /// All that is carried from one step to the next, on the host; a plain value.
  struct state_type {
    double learning_rate = 0;
    std::vector<value_type> residual;
    typename Allreduce::state_type allreduce;

    /// For `save` and `load`.
    static std::string type_name() { return "sgd over " + Allreduce::state_type::type_name(); }

    template <class State, class Visit>
    static void each_part(State& state, Visit& visit) {
      visit(state.learning_rate);
      visit(state.residual);
      Allreduce::state_type::each_part(state.allreduce, visit);
    }
  };

  /// Collective. `allreduce` must outlive this object. A step takes `weights` and `gradient` as they are for kernels on
  /// the allreduce's instance: what another one writes to them must have been waited for.
  sgd(Allreduce& allreduce, sgd_options const& how) : sgd(allreduce.execution(), allreduce, how) {}

  /// The same with the instance `exec`, on which the caller writes `weights` and `gradient`: where it is another one
  /// than the allreduce's, every step waits for it first. Kokkos before 4.0 cannot tell, and the step always waits.
  sgd(execution_space exec, Allreduce& allreduce, sgd_options const& how)
      : callers_(std::move(exec)), exec_(allreduce.execution()), allreduce_(&allreduce),
        residual_(Kokkos::view_alloc(exec_, std::string("oktopk::sgd::residual")),
                  static_cast<std::size_t>(allreduce.length())),
        accumulator_(Kokkos::view_alloc(exec_, std::string("oktopk::sgd::accumulator"), Kokkos::WithoutInitializing),
                     static_cast<std::size_t>(allreduce.length())) {
    agreement terms("sgd");
    if (std::string const sentence = detail::rate_fault<value_type>(how.learning_rate); !sentence.empty()) {
      terms.note(fault::option_out_of_range, sentence);
    }
    terms.fact("learning rate", how.learning_rate).fact("length", allreduce.length());
    terms.check_on(allreduce.comm());
    learning_rate_ = how.learning_rate;
  }

  sgd(sgd const&) = delete;
  sgd& operator=(sgd const&) = delete;

  double learning_rate() const { return learning_rate_; }

  /// To be called alike on all ranks. Throws `option_out_of_range` for a rate that the constructor refuses.
  void set_learning_rate(double rate) {
    if (std::string const sentence = detail::rate_fault<value_type>(rate); !sentence.empty()) {
      throw error(fault::option_out_of_range, "sgd: " + sentence);
    }
    learning_rate_ = rate;
  }

  Allreduce& allreduce() { return *allreduce_; }
  const_vector_type residual() const { return residual_; }

  /// Called in every step with the accumulator, right before the allreduce; null for none.
  void before_allreduce(std::function<void(const_vector_type)> hook) { hook_ = std::move(hook); }

  /// One iteration. Collective. `weights` and `gradient` are rank-1 views of `length()` values that the execution space
  /// can reach; the update is valid until the next step.
  template <class Weights, class Gradient>
    requires accumulator_view<Weights, value_type, execution_space> &&
             accumulator_view<Gradient, value_type, execution_space>
  update_type const& step(Weights const& weights, Gradient const& gradient) {
    bool const fits = static_cast<std::int64_t>(gradient.extent(0)) == allreduce_->length() &&
                      static_cast<std::int64_t>(weights.extent(0)) == allreduce_->length();
    if (!fits) {
      refuse(static_cast<std::int64_t>(gradient.extent(0)), static_cast<std::int64_t>(weights.extent(0)));
    }
    if (!detail::same_instance(callers_, exec_)) {
      detail::fence(callers_, "oktopk::sgd::caller");
    }
    update_type const& update = call<Gradient>(gradient);
    keep_rest(update);
    std::swap(residual_, accumulator_);
    apply<Weights>(update, weights);
    detail::fence(exec_, "oktopk::sgd::step");
    return update;
  }

  /// A copy of all that is carried on.
  state_type state() const {
    state_type saved{learning_rate_, std::vector<value_type>(residual_.extent(0)), allreduce_->state()};
    Kokkos::deep_copy(exec_, host_view(saved.residual.data(), saved.residual.size()), residual_);
    detail::fence(exec_, "oktopk::sgd::state");
    return saved;
  }

  /// Goes on from a saved state. Collective, as the allreduce's `restore` is.
  void restore(state_type const& saved) {
    agreement terms("sgd::restore");
    bool const finite = std::all_of(saved.residual.begin(), saved.residual.end(),
                                    [](value_type value) { return std::isfinite(value); });
    if (saved.residual.size() != residual_.extent(0) || !finite) {
      terms.note(fault::bad_state, "the saved state is of another length, or damaged");
    }
    if (std::string const sentence = detail::rate_fault<value_type>(saved.learning_rate); !sentence.empty()) {
      terms.note(fault::bad_state, "in the saved state " + sentence);
    }
    terms.fact("learning rate", saved.learning_rate).check_on(allreduce_->comm());
    allreduce_->restore(saved.allreduce);
    learning_rate_ = saved.learning_rate;
    Kokkos::deep_copy(exec_, residual_, const_host_view(saved.residual.data(), saved.residual.size()));
    detail::fence(exec_, "oktopk::sgd::restore");
  }

  /// Kernels; public because nvcc wants the functions around them to be.
  template <class Gradient>
  void accumulate(Gradient const& gradient) const {
    auto const rate = static_cast<value_type>(learning_rate_);
    vector_type const accumulator = accumulator_;
    vector_type const residual = residual_;
    Kokkos::parallel_for(
        "oktopk::sgd::accumulate", detail::index_range<execution_space>(exec_, 0, allreduce_->length()),
        KOKKOS_LAMBDA(std::int64_t i) { accumulator(i) = residual(i) + rate * gradient(i); });
  }

  void keep_rest(update_type const& update) const {
    vector_type const accumulator = accumulator_;
    auto const contributed = update.contributed();
    auto const returned = update.returned();
    using range = detail::index_range<execution_space>;
    Kokkos::parallel_for(
        "oktopk::sgd::clear_contributed", range(exec_, 0, static_cast<std::int64_t>(contributed.extent(0))),
        KOKKOS_LAMBDA(std::int64_t i) { accumulator(static_cast<std::int64_t>(contributed(i))) = 0; });
    if (returned.size() > 0) {
      Kokkos::parallel_for(
          "oktopk::sgd::add_returned", range(exec_, 0, returned.size()), KOKKOS_LAMBDA(std::int64_t i) {
            accumulator(static_cast<std::int64_t>(returned.indices(i))) += returned.values(i);
          });
    }
  }

  template <class Weights>
  void apply(update_type const& update, Weights const& weights) const {
    auto const ranks = static_cast<value_type>(allreduce_->comm().size());
    auto const indices = update.indices();
    auto const values = update.values();
    Kokkos::parallel_for(
        "oktopk::sgd::apply",
        detail::index_range<execution_space>(exec_, 0, static_cast<std::int64_t>(indices.extent(0))),
        KOKKOS_LAMBDA(std::int64_t i) { weights(static_cast<std::int64_t>(indices(i))) -= values(i) / ranks; });
  }

private:
  // One pass accumulates and selects where nobody must see the accumulator in between.
  template <class Gradient>
  update_type const& call(Gradient const& gradient) {
    using making = accumulation<index_type, value_type, memory_space>;
    if constexpr (std::invocable<Allreduce&, making const&>) {
      if (!hook_ && gradient.span_is_contiguous()) {
        making input;
        input.residual = residual_;
        input.gradient = array_ref<value_type const, memory_space>(gradient.data(), gradient.extent(0));
        input.accumulator = accumulator_;
        input.rate = static_cast<value_type>(learning_rate_);
        return (*allreduce_)(input);
      }
    }
    accumulate<Gradient>(gradient);
    if (hook_) {
      detail::fence(exec_, "oktopk::sgd::hook");
      hook_(accumulator_);
    }
    return (*allreduce_)(accumulator_);
  }

  using host_view = Kokkos::View<value_type*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using const_host_view = Kokkos::View<value_type const*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  // The other ranks are in the allreduce already: joining it with a wrong length is how they hear of it.
  [[noreturn]] void refuse(std::int64_t gradient_length, std::int64_t weights_length) {
    std::int64_t const wrong = gradient_length != allreduce_->length() ? gradient_length : weights_length;
    vector_type const misfit(Kokkos::view_alloc(exec_, std::string("oktopk::sgd::misfit"), Kokkos::WithoutInitializing),
                             static_cast<std::size_t>(wrong));
    (*allreduce_)(misfit);
    throw error(fault::length_mismatch, "sgd: the allreduce took an accumulator of a wrong length");
  }

  execution_space callers_; // writes weights and gradient
  execution_space exec_;    // the allreduce's; everything runs on it
  Allreduce* allreduce_;
  double learning_rate_ = 0;
  vector_type residual_;
  vector_type accumulator_;
  std::function<void(const_vector_type)> hook_;
};

} // namespace oktopk
