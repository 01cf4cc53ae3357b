// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Error feedback whose residual is of directions, gradients over the root of their second moment: for AdamW.

#include <oktopk/error_feedback.hpp>
#include <oktopk/training/second_moments.hpp>

#include <optional>
#include <utility>

namespace oktopk {

namespace detail {

template <class Gradient, gradient_value Value>
struct square_overflow_search {
  Gradient gradient;
  Value scale;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::int64_t& lowest) const {
    Value const value = scale * static_cast<Value>(gradient(i));
    if (magnitude_bits(value * value) >= infinity_bits<Value> && i < lowest) {
      lowest = i;
    }
  }
};

template <bool Subtracts, class Indices, class Values, class Vector, gradient_value Value>
struct direction_application {
  Indices indices;
  Values values;
  Vector to;
  direction_factor<Value> factor;
  Value ranks;
  Value rate; ///< where it subtracts

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    auto const index = static_cast<std::int64_t>(indices(i));
    Value const average = values(i) / ranks / factor(index);
    if constexpr (Subtracts) {
      to(index) -= rate * average;
    } else {
      to(index) = average;
    }
  }
};

} // namespace detail

/// `error_feedback`, or with directions the same of u = g / (sqrt(v) + epsilon): what AdamW divides by is divided by
/// before the residual, so that all that waits there is of one kind.
///
/// The second moments v are of rows and columns of the tensors, the same on all ranks by one dense sum of them before each
/// allreduce (`second_moments`, which has the words). The residual is of directions, each times its v^(1/4), and so are the
/// sums of an update: a move of an entry gains its square times sqrt(v). `average` gives averages of directions, and
/// weights move by the learning rate times those. Momentum is not for directions, which are averages over steps already.
///
/// All else is as in `error_feedback`. A call that throws leaves second moments as they were, too. A gradient whose square
/// is not finite is an `error` (non_finite) on every rank.
template <gradient_allreduce Allreduce>
class direction_feedback : private error_feedback<Allreduce> {
  using base = error_feedback<Allreduce>;

public:
  using typename base::allreduce_type;
  using typename base::const_vector_type;
  using typename base::execution_space;
  using typename base::update_type;
  using typename base::value_type;
  using typename base::vector_type;
  using directions = detail::direction_options;

  /// All that is carried from one call to the next, on the host; a plain value.
  struct state_type : base::state_type {
    detail::moments_state<value_type> moments; ///< empty without directions

    /// For `save` and `load`.
    static std::string type_name() { return "directions, " + base::state_type::type_name(); }

    template <class State, class Visit>
    static void each_part(State& state, Visit& visit) {
      base::state_type::each_part(state, visit);
      visit(state.moments.squares);
      visit(state.moments.rows);
      visit(state.moments.steps);
    }
  };

  /// Arguments are those of `error_feedback`. Collective; an `error` on every rank for options that are wrong or differ.
  direction_feedback(execution_space exec, Allreduce& allreduce, detail::error_feedback_options const& how,
                     std::optional<detail::direction_options> const& by = std::nullopt)
      : base(std::move(exec), allreduce, how) {
    if (!by) {
      return;
    }
    by_ = *by;
    if (by_.shapes.empty()) {
      by_.shapes = {{allreduce.length()}};
    }
    agreement terms("direction_feedback");
    terms.note(fault::option_out_of_range, by_.template problem<value_type>(how));
    terms.note(fault::option_out_of_range, detail::problem_of(by_.shapes, allreduce.length()));
    by_.add_facts(terms);
    terms.check_on(allreduce.comm());
    moments_.emplace(execution(), by_.shapes);
  }

  using base::accumulate;
  using base::before_allreduce;
  using base::clipping_factor;
  using base::execution;
  using base::feedback_options;
  using base::residual;

  Allreduce& allreduce() { return base::allreduce(); }
  bool has_directions() const { return moments_.has_value(); }

  /// As in `error_feedback`; ranges that are withheld are whole tensors, whose second moments stay, too.
  template <class Gradient>
    requires detail::gradient_view<Gradient, value_type, execution_space>
  update_type const& operator()(Gradient const& gradient, double scale = 1,
                                std::span<detail::entry_range const> withheld = {},
                                detail::wide_number* clipped = nullptr) {
    if (!moments_) {
      return base::operator()(gradient, scale, withheld, clipped);
    }
    if (auto const length = static_cast<std::int64_t>(gradient.extent(0)); length != allreduce().length()) {
      fail_on_all(length);
    }
    base::wait_for_caller();
    // A norm that is not finite is left to those who look for the entry.
    detail::wide_number const factor = clipping_factor(gradient, clipped) * detail::wide_number::of(scale);
    auto const scaled = static_cast<value_type>(static_cast<double>(factor));
    if (!moments_->advance(allreduce().comm(), &gradient, scaled, by_.beta2, withheld)) {
      refuse(gradient, scaled);
    }
    update_type const& update =
        accumulate(gradient, scaled, moments_->terms(feedback_options().residual_decay, by_.epsilon), withheld);
    moments_->keep();
    return update;
  }

  /// As in `error_feedback`, second moments included.
  void undo() {
    base::undo();
    if (moments_) {
      moments_->keep();
    }
  }

  /// Writes the averages over all ranks, of directions or gradients, into a dense vector of `length()` values; 0 elsewhere.
  template <class Average>
    requires detail::accumulator_view<Average, value_type, execution_space> &&
             (!std::is_const_v<typename Average::value_type>)
  void average(update_type const& update, Average const& into) const {
    base::average(update, into);
    if (moments_) {
      apply<false>("oktopk::direction_feedback::average", update, into, value_type(1));
    }
  }

  /// Moves weights by -`rate` times the averages. For the update of the last call, of directions.
  template <class Weights>
  void descend(update_type const& update, Weights const& weights, double rate) const {
    apply<true>("oktopk::direction_feedback::descend", update, weights, static_cast<value_type>(rate));
  }

  /// As in `error_feedback`.
  [[noreturn]] void fail_on_all(std::int64_t wrong_length) {
    if (!moments_) {
      base::fail_on_all(wrong_length);
    }
    tell_all(error(fault::length_mismatch, "a vector of " + std::to_string(wrong_length) + " values where there are " +
                                               std::to_string(allreduce().length())));
  }

  /// As in `error_feedback`.
  [[noreturn]] void fail_on_all(std::exception_ptr const& why) {
    if (!moments_) {
      base::fail_on_all(why);
    }
    detail::throw_told(why, [this](error const& of) { tell_all(of); });
  }

  /// A copy of all that one call hands to the next.
  state_type state() const {
    return {base::state(), moments_ ? moments_->state() : detail::moments_state<value_type>()};
  }

  /// Continues from a saved state. Collective; an `error` on every rank if the state does not fit, or second moments
  /// differ between ranks.
  void restore(state_type const& saved) {
    agreement terms("direction_feedback::restore");
    terms.note(fault::bad_state, saved.moments.problem(by_.shapes));
    if (moments_) {
      saved.moments.add_facts(terms);
    }
    terms.check_on(allreduce().comm());
    base::restore(saved);
    if (moments_) {
      moments_->restore(saved.moments);
      detail::fence(execution(), "oktopk::direction_feedback::restore");
    }
  }

private:
  auto range(std::size_t count) const {
    return detail::index_range<execution_space>(execution(), 0, static_cast<std::int64_t>(count));
  }

  template <bool Subtracts, class Vector>
  void apply(char const* label, update_type const& update, Vector const& to, value_type rate) const {
    auto const indices = update.indices();
    auto const values = update.values();
    using application =
        detail::direction_application<Subtracts, decltype(indices), decltype(values), Vector, value_type>;
    auto const ranks = static_cast<value_type>(base::ranks());
    Kokkos::parallel_for(label, range(indices.extent(0)),
                         application{indices, values, to, moments_->factor(), ranks, rate});
  }

  // Takes the place of a call: the others are in the sum of statistics, or will be, and look then for a fault.
  [[noreturn]] void tell_all(error const& why) {
    moments_->advance(allreduce().comm(), static_cast<vector_type const*>(nullptr), value_type(1), by_.beta2);
    agreement terms("direction_feedback");
    terms.note(why.code(), why.sentence());
    terms.check_on(allreduce().comm());
    throw why;
  }

  // After statistics that are not finite: the ranks tell each other whose fault it is.
  template <class Gradient>
  [[noreturn]] void refuse(Gradient const& gradient, value_type scale) {
    agreement terms("direction_feedback");
    std::int64_t first = 0;
    Kokkos::parallel_reduce("oktopk::direction_feedback::find_overflow", range(gradient.extent(0)),
                            detail::square_overflow_search<Gradient, value_type>{gradient, scale},
                            Kokkos::Min<std::int64_t>(first));
    if (first < allreduce().length()) {
      terms.note(fault::non_finite, "the square of the gradient at index " + std::to_string(first) + " is not finite");
    }
    terms.check_on(allreduce().comm());
    throw error(fault::non_finite, "direction_feedback: the sum of the ranks' squares is not finite");
  }

  detail::direction_options by_;
  std::optional<detail::second_moments<execution_space, typename Allreduce::communicator_type, value_type>> moments_;
};

} // namespace oktopk
