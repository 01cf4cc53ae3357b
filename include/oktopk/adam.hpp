// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Adam over a sparse allreduce, as the paper trains BERT (section 5.1).

#include <oktopk/error_feedback.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace oktopk {

namespace detail {

/// Options of `adam`; the same on all ranks. The defaults are the paper's for BERT.
struct adam_options {
  double learning_rate = 2e-4;
  double beta1 = 0.9;   ///< decay of the mean of averages, in [0, 1)
  double beta2 = 0.999; ///< decay of the mean of their squares, in [0, 1)
  double epsilon = 1e-8;
  double weight_decay = 0.01; ///< decoupled: a step scales the weights by 1 - learning rate * this
  error_feedback_options feedback{};

  /// The sentence that says what is wrong with these options; empty if nothing is.
  std::string problem() const {
    auto const decays = [](double beta) { return is_finite_magnitude(beta) && beta < 1; };
    if (!is_finite_magnitude(learning_rate) || !is_finite_magnitude(weight_decay)) {
      return "learning rate and weight decay must be finite and not negative";
    }
    if (!decays(beta1) || !decays(beta2)) {
      return "beta1 and beta2 must be in [0, 1)";
    }
    return is_finite_magnitude(epsilon) && epsilon > 0 ? "" : "epsilon must be positive and finite";
  }
};

template <gradient_value Value>
KOKKOS_INLINE_FUNCTION Value mean_of_squares_with(Value squares, Value average, Value beta2) {
  return beta2 * squares + (1 - beta2) * average * average;
}

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

/// Data-parallel Adam over any gradient allreduce: sparse allreduce of the gradients, with error feedback, and Adam on
/// the averages (paper, section 5.1; Kingma and Ba, ICLR 2015; weight decay apart from the gradients as in Loshchilov
/// and Hutter, ICLR 2019).
///
/// Gradients are accumulated as they are: Adam divides by their size, so the learning rate stays outside. Holds two
/// vectors of the gradient's length beside those of `error_feedback`, and one for averages. A step that throws leaves
/// weights, moments and residual as they were. An average whose square would make the mean of squares overflow is an
/// `error` (non_finite) on every rank. Everything runs on the allreduce's instance of the execution space.
template <gradient_allreduce Allreduce>
class adam {
  using feedback_type = error_feedback<Allreduce>;

public:
  using execution_space = typename Allreduce::execution_space;
  using value_type = typename Allreduce::value_type;
  using vector_type = typename feedback_type::vector_type;
  using const_vector_type = typename feedback_type::const_vector_type;
  using update_type = typename Allreduce::update_type;
  using options = detail::adam_options;

  /// All that is carried from one step to the next, on the host; a plain value.
  struct state_type : feedback_type::state_type {
    double learning_rate = 0;
    std::int64_t steps = 0;
    std::vector<value_type> mean;
    std::vector<value_type> mean_of_squares;

    /// For `save` and `load`.
    static std::string type_name() { return "adam over " + Allreduce::state_type::type_name(); }

    template <class State, class Visit>
    static void each_part(State& state, Visit& visit) {
      visit(state.learning_rate);
      visit(state.steps);
      visit(state.mean);
      visit(state.mean_of_squares);
      feedback_type::state_type::each_part(state, visit);
    }
  };

  /// Collective. `allreduce` must outlive this object. An `error` on every rank for options that are wrong or differ.
  adam(Allreduce& allreduce, detail::adam_options const& how)
      : feedback_(allreduce, how.feedback), how_(how), mean_(vector("oktopk::adam::mean")),
        mean_of_squares_(vector("oktopk::adam::mean_of_squares")),
        average_(vector("oktopk::adam::average", Kokkos::WithoutInitializing)) {
    agreement terms("adam");
    terms.note(fault::option_out_of_range, problem_of(how));
    terms.fact("learning rate", how.learning_rate).fact("beta1", how.beta1).fact("beta2", how.beta2);
    terms.fact("epsilon", how.epsilon).fact("weight decay", how.weight_decay).fact("length", allreduce.length());
    terms.check_on(allreduce.comm());
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
  const_vector_type residual() const { return feedback_.residual(); }

  /// One iteration. Collective. `weights` and `gradient` are rank-1 views of `length()` values that the execution space
  /// can reach; the update is valid until the next step.
  template <class Weights, class Gradient>
    requires detail::accumulator_view<Weights, value_type, execution_space> &&
             detail::gradient_view<Gradient, value_type, execution_space>
  update_type const& step(Weights const& weights, Gradient const& gradient) {
    feedback_.expect_length(weights, gradient);
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
    return {feedback_.state(), how_.learning_rate, steps_, on_host(mean_), on_host(mean_of_squares_)};
  }

  /// Continues from a saved state. Collective; an `error` on every rank if the state does not fit or the moments
  /// differ.
  void restore(state_type const& saved) {
    agreement terms("adam::restore");
    auto const& squares = saved.mean_of_squares;
    bool const is_negative = std::any_of(squares.begin(), squares.end(), [](value_type value) { return value < 0; });
    if (!detail::fits(saved.mean, mean_) || !detail::fits(squares, mean_of_squares_) || is_negative ||
        saved.steps < 0 || saved.steps > std::numeric_limits<std::int64_t>::max() / 2 ||
        !detail::is_finite_magnitude(saved.learning_rate)) {
      terms.note(fault::bad_state, "the saved state is of another length, or damaged");
    }
    detail::fnv1a moments;
    moments.add(saved.mean.data(), saved.mean.size() * sizeof(value_type));
    moments.add(squares.data(), squares.size() * sizeof(value_type));
    terms.fact("learning rate", saved.learning_rate).fact("steps", saved.steps);
    terms.fact("digest of the moments", moments.value()).check_on(allreduce().comm());
    feedback_.restore(saved);
    Kokkos::deep_copy(feedback_.execution(), mean_, detail::host_view(saved.mean));
    Kokkos::deep_copy(feedback_.execution(), mean_of_squares_, detail::host_view(saved.mean_of_squares));
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
    std::vector<std::string> const sentences = {
        how.problem(), detail::value_fault<value_type>("the learning rate", how.learning_rate),
        detail::value_fault<value_type>("epsilon", how.epsilon), detail::decay_fault<value_type>("beta1", how.beta1),
        detail::decay_fault<value_type>("beta2", how.beta2)};
    auto const said = std::find_if(sentences.begin(), sentences.end(), [](auto const& each) { return !each.empty(); });
    return said == sentences.end() ? "" : *said;
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
        as_value(how_.beta1),
        as_value(how_.beta2),
        as_value(how_.epsilon),
        as_value(1 - how_.learning_rate * how_.weight_decay),
        as_value(how_.learning_rate / (1 - std::pow(how_.beta1, steps_))),
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
  vector_type mean_;
  vector_type mean_of_squares_;
  vector_type average_;
};

} // namespace oktopk
