// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// AdamW over a sparse allreduce: on sums of directions, or of gradients as the paper trains BERT (section 5.1).

#include <oktopk/direction_feedback.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace oktopk {

/// What the residual of `adam` holds.
enum class adam_residual {
  directions, ///< gradients over the root of their second moment: what waits has been divided
  gradients   ///< as they are: averages are divided, as the paper does
};

namespace detail {

/// Options of `adam`; the same on all ranks. The defaults are the paper's for BERT, but for the residual.
struct adam_options {
  double learning_rate = 2e-4;
  std::optional<double>
      beta1{};          ///< decay of the mean of averages, in [0, 1); none: 0.9 for gradients, 0 for directions
  double beta2 = 0.999; ///< decay of the mean of squares, in [0, 1)
  double epsilon = 1e-8;
  double weight_decay = 0.01; ///< decoupled: a step scales the weights by 1 - learning rate * this
  adam_residual residual = adam_residual::directions;
  /// For directions: the dimensions of the tensors that lie one after the other in the vector. None: second moments are of
  /// each value, and of each rank alone.
  tensor_shapes shapes{};
  error_feedback_options feedback{};

  bool has_directions() const { return residual == adam_residual::directions; }
  double decay_of_mean() const { return beta1.value_or(has_directions() ? 0 : 0.9); }

  /// The sentence that says what is wrong with these options; empty if nothing is.
  std::string problem() const {
    auto const decays = [](double beta) { return is_finite_magnitude(beta) && beta < 1; };
    if (!is_finite_magnitude(learning_rate) || !is_finite_magnitude(weight_decay)) {
      return "learning rate and weight decay must be finite and not negative";
    }
    if (!decays(decay_of_mean()) || !decays(beta2)) {
      return "beta1 and beta2 must be in [0, 1)";
    }
    if (has_directions() && (decay_of_mean() != 0 || feedback.momentum != 0)) {
      return "directions that have waited are averages already, so they take no beta1 and no momentum "
             "(adam_residual::gradients does)";
    }
    if (!has_directions() && !shapes.empty()) {
      return "only directions take shapes";
    }
    return is_finite_magnitude(epsilon) && epsilon > 0 ? "" : "epsilon must be positive and finite";
  }
};

template <gradient_value Value>
KOKKOS_INLINE_FUNCTION Value mean_of_squares_with(Value squares, Value value, Value beta2) {
  return beta2 * squares + (1 - beta2) * value * value;
}

/// Directions by second moments of each value, which are not written yet: a step may fail.
template <class Vector, class Gradient, gradient_value Value>
struct own_direction_accumulation {
  Value const* residual;
  Value* accumulator;
  Vector squares;
  Gradient gradient;
  Value scale;
  Value kept;
  Value beta2;
  Value correction;
  Value epsilon;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    Value const value = scale * static_cast<Value>(gradient(i));
    Value const square = mean_of_squares_with(squares(i), value, beta2);
    // What overflows is left to the allreduce, which names the entry.
    accumulator[i] = magnitude_bits(square) >= infinity_bits<Value>
                         ? square
                         : kept * residual[i] + value / (std::sqrt(square) * correction + epsilon);
  }
};

template <class Vector, class Gradient, gradient_value Value>
struct own_squares_advance {
  Vector squares;
  Gradient gradient;
  Value scale;
  Value beta2;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    Value const value = scale * static_cast<Value>(gradient(i));
    squares(i) = mean_of_squares_with(squares(i), value, beta2);
  }
};

template <class Weights, gradient_value Value>
struct weight_scaling {
  Weights weights;
  Value kept;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { weights(i) *= kept; }
};

template <class Indices, class Vector, gradient_value Value>
struct adam_overflow_search {
  Indices indices;
  Vector squares;
  Vector average;
  Value beta2;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::int64_t& lowest) const {
    auto const index = static_cast<std::int64_t>(indices(i));
    Value const v = mean_of_squares_with(squares(index), average(index), beta2);
    if (magnitude_bits(v) >= infinity_bits<Value> && index < lowest) {
      lowest = index;
    }
  }
};

template <class Vector, class Weights, gradient_value Value>
struct adam_application {
  Vector mean;
  Vector squares;
  Vector average;
  Weights weights;
  Value beta1;
  Value beta2;
  Value epsilon;
  Value kept;
  Value rate;
  Value correction;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    Value const g = average(i);
    Value const m = beta1 * mean(i) + (1 - beta1) * g;
    Value const v = mean_of_squares_with(squares(i), g, beta2);
    mean(i) = m;
    squares(i) = v;
    weights(i) = kept * weights(i) - rate * m / (std::sqrt(v) * correction + epsilon);
  }
};

} // namespace detail

/// Data-parallel AdamW over any gradient allreduce: sparse sums with error feedback (Kingma and Ba, ICLR 2015; weight decay
/// apart from the gradients as in Loshchilov and Hutter, ICLR 2019).
///
/// By default the residual is of **directions** u = g / (sqrt(v) + epsilon). The second moments v are of rows and columns
/// of the tensors in `shapes` (Adafactor; Shazeer and Stern, ICML 2018), the same on all ranks by one dense sum of them in
/// each step: `rabenseifner` on the host, of rows + columns of each matrix and the length of each vector. The selection is
/// of residual * v^(1/4): a move of an entry gains its square times sqrt(v). A step moves the weights at the update's
/// indices alone, by sums / P, and has no momentum, since what has waited is averaged already. With density 1 it is Adam
/// with such moments and beta1 = 0. Without shapes each value has a moment of this rank's gradients, nothing is exchanged
/// for it, and the selection is of the residual. Holds the vectors of `error_feedback`, and one more without shapes.
///
/// With `adam_residual::gradients` it is the paper's form (section 5.1): gradients are accumulated as they are, and Adam
/// runs on the averages. Holds three vectors beside those of `error_feedback`.
///
/// A step that throws leaves weights, moments and residual as they were. A square that makes a mean of squares overflow
/// is an `error` (non_finite) on every rank. Everything runs on the allreduce's instance of the execution space.
template <gradient_allreduce Allreduce>
class adam {
  using feedback_type = direction_feedback<Allreduce>;
  using base_state = typename error_feedback<Allreduce>::state_type;

public:
  using execution_space = typename Allreduce::execution_space;
  using value_type = typename Allreduce::value_type;
  using vector_type = typename feedback_type::vector_type;
  using const_vector_type = typename feedback_type::const_vector_type;
  using update_type = typename Allreduce::update_type;
  using options = detail::adam_options;

  /// All that is carried from one step to the next, on the host; a plain value.
  struct state_type : base_state {
    double learning_rate = 0;
    std::int64_t steps = 0;
    std::vector<value_type> mean;            ///< of averages; empty with directions
    std::vector<value_type> mean_of_squares; ///< with shapes: those of rows and columns

    /// For `save` and `load`.
    static std::string type_name() { return "adam over " + Allreduce::state_type::type_name(); }

    template <class State, class Visit>
    static void each_part(State& state, Visit& visit) {
      visit(state.learning_rate);
      visit(state.steps);
      visit(state.mean);
      visit(state.mean_of_squares);
      base_state::each_part(state, visit);
    }
  };

  /// Collective. `allreduce` must outlive this object. An `error` on every rank for options that are wrong or differ.
  adam(Allreduce& allreduce, detail::adam_options const& how)
      : feedback_(allreduce.execution(), allreduce, how.feedback, directions_of(allreduce, how)), how_(how) {
    if (how.shapes.empty()) {
      mean_of_squares_ = vector("oktopk::adam::mean_of_squares");
    }
    if (!how.has_directions()) {
      mean_ = vector("oktopk::adam::mean");
      average_ = vector("oktopk::adam::average", Kokkos::WithoutInitializing);
    }
  }

  double learning_rate() const { return how_.learning_rate; }

  /// To be called with the same rate on all ranks. Throws `option_out_of_range` for a rate that the constructor
  /// refuses.
  void set_learning_rate(double rate) {
    options changed = how_;
    changed.learning_rate = rate;
    if (std::string const sentence = problem_of(changed); !sentence.empty()) {
      throw error(fault::option_out_of_range, "adam: " + sentence);
    }
    how_ = changed;
  }

  Allreduce& allreduce() { return feedback_.allreduce(); }
  /// Of directions, each times its v^(1/4), or of gradients. Valid until the next step.
  const_vector_type residual() const { return feedback_.residual(); }

  /// One iteration. Collective. `weights` and `gradient` are rank-1 views of `length()` values that the execution space
  /// can reach; the update is valid until the next step.
  template <class Weights, class Gradient>
    requires detail::accumulator_view<Weights, value_type, execution_space> &&
             detail::gradient_view<Gradient, value_type, execution_space>
  update_type const& step(Weights const& weights, Gradient const& gradient) {
    detail::expect_length(feedback_, weights, gradient);
    if (how_.has_directions()) {
      return step_by_directions<Weights, Gradient>(weights, gradient);
    }
    update_type const& update = feedback_(gradient);
    feedback_.average(update, average_);
    refuse_overflow(update);
    steps_ += 1;
    apply<Weights>(weights);
    detail::fence(allreduce().execution(), "oktopk::adam::step");
    return update;
  }

  /// A copy of all that one step hands to the next.
  state_type state() const {
    auto saved = feedback_.state();
    return {std::move(static_cast<base_state&>(saved)), how_.learning_rate, steps_, on_host(mean_),
            has_shapes() ? std::move(saved.moments.squares) : on_host(mean_of_squares_)};
  }

  /// Continues from a saved state. Collective; an `error` on every rank if the state does not fit or the moments
  /// differ.
  void restore(state_type const& saved) {
    agreement terms("adam::restore");
    auto const& squares = saved.mean_of_squares;
    bool const is_negative = std::any_of(squares.begin(), squares.end(), [](value_type value) { return value < 0; });
    bool const are_own = !has_shapes();
    if (!detail::fits(saved.mean, mean_) || (are_own && !detail::fits(squares, mean_of_squares_)) || is_negative ||
        saved.steps < 0 || saved.steps > std::numeric_limits<std::int64_t>::max() / 2 ||
        !detail::is_finite_magnitude(saved.learning_rate)) {
      terms.note(fault::bad_state, "the saved state is of another length, or damaged");
    }
    detail::fnv1a moments;
    moments.add(saved.mean.data(), saved.mean.size() * sizeof(value_type));
    if (!how_.has_directions()) { // else they are of this rank alone, or compared with the residual
      moments.add(squares.data(), squares.size() * sizeof(value_type));
    }
    terms.fact("learning rate", saved.learning_rate).fact("steps", saved.steps);
    terms.fact("digest of the moments", moments.value()).check_on(allreduce().comm());
    typename feedback_type::state_type of_feedback{static_cast<base_state const&>(saved), {}};
    if (are_own) {
      feedback_.restore(of_feedback);
      Kokkos::deep_copy(feedback_.execution(), mean_of_squares_, detail::host_view(squares));
    } else {
      of_feedback.moments = detail::moments_state<value_type>::of(how_.shapes);
      of_feedback.moments.squares = squares;
      std::fill(of_feedback.moments.steps.begin(), of_feedback.moments.steps.end(), saved.steps);
      feedback_.restore(of_feedback);
    }
    Kokkos::deep_copy(feedback_.execution(), mean_, detail::host_view(saved.mean));
    detail::fence(feedback_.execution(), "oktopk::adam::restore");
    steps_ = saved.steps;
    how_.learning_rate = saved.learning_rate;
  }

private:
  template <class... Properties>
  vector_type vector(char const* label, Properties const&... properties) const {
    return vector_type(Kokkos::view_alloc(feedback_.execution(), std::string(label), properties...), size());
  }

  // The problem of the options, or of what kernels make of them.
  static std::string problem_of(options const& how) {
    std::vector<std::string> const sentences = {how.problem(),
                                                detail::value_fault<value_type>("the learning rate", how.learning_rate),
                                                detail::value_fault<value_type>("epsilon", how.epsilon),
                                                detail::decay_fault<value_type>("beta1", how.decay_of_mean()),
                                                detail::decay_fault<value_type>("beta2", how.beta2)};
    auto const said = std::find_if(sentences.begin(), sentences.end(), [](auto const& each) { return !each.empty(); });
    return said == sentences.end() ? "" : *said;
  }

  bool has_shapes() const { return feedback_.has_directions(); }

  // Second moments of rows and columns; none where each value has one of its own. Collective: the options of all ranks.
  static std::optional<detail::direction_options> directions_of(Allreduce& allreduce, options const& how) {
    agreement terms("adam");
    terms.note(fault::option_out_of_range, problem_of(how));
    if (!how.shapes.empty()) {
      terms.note(fault::option_out_of_range, detail::problem_of(how.shapes, allreduce.length()));
    }
    detail::direction_options const by{how.beta2, how.epsilon, how.shapes};
    terms.fact("learning rate", how.learning_rate).fact("beta1", how.decay_of_mean());
    terms.fact("weight_decay", how.weight_decay).fact("length", allreduce.length());
    terms.fact("directions", how.has_directions());
    by.add_facts(terms);
    terms.check_on(allreduce.comm());
    return how.shapes.empty() ? std::nullopt : std::optional(by);
  }

  template <class Weights, class Gradient>
  update_type const& step_by_directions(Weights const& weights, Gradient const& gradient) {
    update_type const& update = has_shapes() ? feedback_(gradient) : accumulate_by_own_squares<Gradient>(gradient);
    steps_ += 1;
    if (double const remains = 1 - how_.learning_rate * how_.weight_decay; remains != 1) {
      Kokkos::parallel_for("oktopk::adam::decay", range(size()),
                           detail::weight_scaling<Weights, value_type>{weights, static_cast<value_type>(remains)});
    }
    if (has_shapes()) {
      feedback_.descend(update, weights, how_.learning_rate);
    } else {
      descend(update, weights);
    }
    detail::fence(feedback_.execution(), "oktopk::adam::step");
    return update;
  }

  template <class Gradient>
  update_type const& accumulate_by_own_squares(Gradient const& gradient) {
    if (auto const length = static_cast<std::int64_t>(gradient.extent(0)); length != allreduce().length()) {
      feedback_.fail_on_all(length);
    }
    auto const number = [](double of) { return static_cast<value_type>(of); };
    value_type const scale = number(static_cast<double>(feedback_.clipping_factor(gradient)));
    value_type const beta2 = number(how_.beta2);
    double const correction = 1 / std::sqrt(1 - std::pow(how_.beta2, steps_ + 1));
    update_type const& update = feedback_.accumulate([&](value_type const* residual, value_type* accumulator) {
      Kokkos::parallel_for("oktopk::adam::accumulate", range(size()),
                           detail::own_direction_accumulation<vector_type, Gradient, value_type>{
                               residual, accumulator, mean_of_squares_, gradient, scale,
                               number(how_.feedback.residual_decay), beta2, number(correction), number(how_.epsilon)});
    });
    Kokkos::parallel_for(
        "oktopk::adam::advance", range(size()),
        detail::own_squares_advance<vector_type, Gradient, value_type>{mean_of_squares_, gradient, scale, beta2});
    return update;
  }

  template <class Weights>
  void descend(update_type const& update, Weights const& weights) {
    auto const indices = update.indices();
    auto const values = update.values();
    auto const ranks = static_cast<value_type>(allreduce().comm().size() / how_.learning_rate);
    Kokkos::parallel_for("oktopk::adam::apply", range(indices.extent(0)),
                         detail::average_application<true, decltype(indices), decltype(values), Weights, value_type>{
                             indices, values, ranks, weights});
  }

  // An infinite mean of squares would freeze its weight for ever. All ranks find the same index: averages and moments
  // are equal on all ranks, and where an average is 0 the mean of squares only decays.
  void refuse_overflow(update_type const& update) {
    auto const indices = update.indices();
    std::int64_t first = 0; // the length or more if there is none
    detail::adam_overflow_search<decltype(indices), vector_type, value_type> const kernel{
        indices, mean_of_squares_, average_, static_cast<value_type>(how_.beta2)};
    Kokkos::parallel_reduce("oktopk::adam::find_overflow", range(indices.extent(0)), kernel,
                            Kokkos::Min<std::int64_t>(first));
    if (first < allreduce().length()) {
      feedback_.undo();
      detail::plain_text text;
      text << "adam: the mean of squares at index " << first << " overflows with the average "
           << on_host(average_)[static_cast<std::size_t>(first)];
      throw error(fault::non_finite, text.str());
    }
  }

  template <class Weights>
  void apply(Weights const& weights) const {
    auto const as_value = [](double number) { return static_cast<value_type>(number); };
    detail::adam_application<vector_type, Weights, value_type> const kernel{
        mean_,
        mean_of_squares_,
        average_,
        weights,
        as_value(how_.decay_of_mean()),
        as_value(how_.beta2),
        as_value(how_.epsilon),
        as_value(1 - how_.learning_rate * how_.weight_decay),
        as_value(how_.learning_rate / (1 - std::pow(how_.decay_of_mean(), steps_))),
        as_value(1 / std::sqrt(1 - std::pow(how_.beta2, steps_)))};
    Kokkos::parallel_for("oktopk::adam::apply", range(mean_.extent(0)), kernel);
  }

  std::size_t size() const { return feedback_.residual().extent(0); }

  auto range(std::size_t count) const {
    return detail::index_range<execution_space>(feedback_.execution(), 0, static_cast<std::int64_t>(count));
  }

  auto on_host(vector_type const& of) const {
    return detail::on_host(feedback_.execution(), of, "oktopk::adam::state");
  }

  feedback_type feedback_;
  options how_;
  std::int64_t steps_ = 0;
  vector_type mean_;            // empty with directions, as the average
  vector_type mean_of_squares_; // empty with shapes
  vector_type average_;
};

} // namespace oktopk
