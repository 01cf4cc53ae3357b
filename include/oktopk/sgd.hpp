// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Algorithm 2 of the paper: SGD with a sparse allreduce and error feedback.

#include <oktopk/error_feedback.hpp>

#include <utility>

namespace oktopk {

namespace detail {

/// Options of `sgd`. Outside of the class, so that `sgd` can be made without template arguments.
struct sgd_options {
  double learning_rate = 0.1;        ///< finite, also as a value of the gradient, and not rounded to zero there
  error_feedback_options feedback{}; ///< momentum and clipping
};

} // namespace detail

/// Data-parallel SGD over any gradient allreduce (paper, Algorithm 2).
///
/// Each step: `error_feedback` with the learning rate as scale, then w -= update / P. The learning rate is inside the
/// accumulator, as in the paper, so a change of it does not rescale the residual of earlier steps. With momentum the
/// velocity is accumulated in place of the gradient (momentum correction). A step that throws leaves weights, residual
/// and velocity as they were.
///
/// Everything runs on the allreduce's instance of the execution space. Neither copied nor moved, as the allreduce.
template <gradient_allreduce Allreduce>
class sgd {
  using feedback_type = error_feedback<Allreduce>;

public:
  using execution_space = typename Allreduce::execution_space;
  using value_type = typename Allreduce::value_type;
  using const_vector_type = typename feedback_type::const_vector_type;
  using update_type = typename Allreduce::update_type;
  using options = detail::sgd_options;

  /// All that is carried from one step to the next, on the host; a plain value.
  struct state_type : feedback_type::state_type {
    double learning_rate = 0;

    /// For `save` and `load`.
    static std::string type_name() { return "sgd over " + Allreduce::state_type::type_name(); }

    template <class State, class Visit>
    static void each_part(State& state, Visit& visit) {
      visit(state.learning_rate);
      feedback_type::state_type::each_part(state, visit);
    }
  };

  /// Collective. `allreduce` must outlive this object. A step takes `weights` and `gradient` as they are for kernels on
  /// the allreduce's instance: writes to them on another one must have been waited for.
  sgd(Allreduce& allreduce, detail::sgd_options const& how) : sgd(allreduce.execution(), allreduce, how) {}

  /// The same with the instance `exec`, on which the caller writes `weights` and `gradient`: if it is not the
  /// allreduce's instance, every step waits for it first. Kokkos before 4.0 cannot compare instances, so the step
  /// always waits.
  sgd(execution_space exec, Allreduce& allreduce, detail::sgd_options const& how)
      : feedback_(std::move(exec), allreduce, how.feedback) {
    agreement terms("sgd");
    terms.note(fault::option_out_of_range, problem_of(how.learning_rate));
    terms.fact("learning rate", how.learning_rate).fact("length", allreduce.length()).check_on(allreduce.comm());
    learning_rate_ = how.learning_rate;
  }

  double learning_rate() const { return learning_rate_; }

  /// To be called with the same rate on all ranks. Throws `option_out_of_range` for a rate that the constructor
  /// refuses.
  void set_learning_rate(double rate) {
    if (std::string const sentence = problem_of(rate); !sentence.empty()) {
      throw error(fault::option_out_of_range, "sgd: " + sentence);
    }
    learning_rate_ = rate;
  }

  Allreduce& allreduce() { return feedback_.allreduce(); }
  const_vector_type residual() const { return feedback_.residual(); }

  /// Called in every step with the accumulator, right before the allreduce; null for none.
  void before_allreduce(std::function<void(const_vector_type)> hook) { feedback_.before_allreduce(std::move(hook)); }

  /// One iteration. Collective. `weights` and `gradient` are rank-1 views of `length()` values that the execution space
  /// can reach, the gradient's as `error_feedback` takes them; the update is valid until the next step.
  template <class Weights, class Gradient>
    requires detail::accumulator_view<Weights, value_type, execution_space> &&
             detail::gradient_view<Gradient, value_type, execution_space>
  update_type const& step(Weights const& weights, Gradient const& gradient) {
    detail::expect_length(feedback_, weights, gradient);
    update_type const& update = feedback_(gradient, learning_rate_);
    auto const ranks = static_cast<value_type>(allreduce().comm().size());
    detail::apply_averages<true>("oktopk::sgd::apply", feedback_.execution(), update, ranks, weights);
    detail::fence(allreduce().execution(), "oktopk::sgd::step");
    return update;
  }

  /// A copy of all that one step hands to the next.
  state_type state() const { return {feedback_.state(), learning_rate_}; }

  /// Continues from a saved state. Collective, as the allreduce's `restore` is.
  void restore(state_type const& saved) {
    agreement terms("sgd::restore");
    if (std::string const sentence = problem_of(saved.learning_rate); !sentence.empty()) {
      terms.note(fault::bad_state, "in the saved state " + sentence);
    }
    terms.fact("learning rate", saved.learning_rate).check_on(allreduce().comm());
    feedback_.restore(saved);
    learning_rate_ = saved.learning_rate;
  }

private:
  static std::string problem_of(double rate) { return detail::value_fault<value_type>("the learning rate", rate); }

  feedback_type feedback_;
  double learning_rate_ = 0;
};

} // namespace oktopk
