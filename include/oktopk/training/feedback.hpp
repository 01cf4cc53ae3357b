// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/core/number_text.hpp>
#include <oktopk/sparse/arithmetic.hpp>
#include <oktopk/sparse/directions.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace oktopk::detail {

/// Options of `error_feedback`: momentum and clipping, before the residual takes a gradient. The same on all ranks.
struct error_feedback_options {
  double momentum = 0;        ///< in [0, 1), also in the value type; momentum * velocity + gradient is accumulated
  bool nesterov = false;      ///< accumulates gradient + momentum * velocity instead
  bool factor_masking = true; ///< clears the velocity of contributed entries, which would go on from stale gradients
  double clip_norm = 0;       ///< scales a rank's gradient down to this norm if it is larger; 0 means no clipping
  double residual_decay = 1;  ///< in [0, 1]: the factor of the residual in the accumulator; 1 keeps all

  /// The sentence that says what is wrong with these options; empty if nothing is.
  std::string problem() const {
    if (!is_finite_magnitude(momentum) || momentum >= 1) {
      return "the momentum " + decimal_text(momentum) + " is not in [0, 1)";
    }
    if (nesterov && momentum == 0) {
      return "nesterov needs a momentum";
    }
    if (!is_finite_magnitude(clip_norm)) {
      return "clip_norm = " + decimal_text(clip_norm) + " is no norm";
    }
    if (!is_finite_magnitude(residual_decay) || residual_decay > 1) {
      return "the residual_decay " + decimal_text(residual_decay) + " is not in [0, 1]";
    }
    return {};
  }
};

/// Entries [begin, end) of a gradient.
struct entry_range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

template <gradient_value Value>
std::string fault_as_value(std::string_view name, double number, char const* what, int digits) {
  plain_text text;
  text.precision(digits);
  text << name << " " << number << " is " << what << " as a " << (std::same_as<Value, float> ? "float" : "double");
  return text.str();
}

/// The sentence that says what is wrong with the option `name`, which kernels use as a `Value`; empty if nothing is.
template <gradient_value Value>
std::string value_fault(std::string_view name, double number) {
  if (!is_finite(number)) {
    return std::string(name) + " is not finite";
  }
  if (std::abs(number) > static_cast<double>(std::numeric_limits<Value>::max())) {
    return fault_as_value<Value>(name, number, "infinite", 6);
  }
  // A rate that becomes zero would train nothing, without an error.
  return number != 0 && static_cast<Value>(number) == 0 ? fault_as_value<Value>(name, number, "zero", 6) : "";
}

/// A sentence if the factor `name`, in [0, 1), is 1 as a `Value`; empty for other numbers.
template <gradient_value Value>
std::string decay_fault(std::string_view name, double number) {
  return number >= 0 && number < 1 && static_cast<Value>(number) == 1 ? fault_as_value<Value>(name, number, "1", 17)
                                                                      : "";
}

template <class Value>
bool are_finite(std::vector<Value> const& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](Value value) { return is_finite(value); });
}

/// A vector of the host as a view, for copies.
template <class Vector>
auto host_view(Vector& of) {
  return array_ref<std::remove_pointer_t<decltype(of.data())>, Kokkos::HostSpace>(of.data(), of.size());
}

/// True if the numbers of a saved state can be those of the view: its length, and all finite.
template <class Value, class View>
bool fits(std::vector<Value> const& numbers, View const& place) {
  return numbers.size() == place.extent(0) && are_finite(numbers);
}

/// A copy of a view for a state. Waits for `exec`.
template <execution_space E, class View>
std::vector<typename View::non_const_value_type> on_host(E const& exec, View const& of, char const* label) {
  std::vector<typename View::non_const_value_type> copy(of.extent(0));
  Kokkos::deep_copy(exec, host_view(copy), of);
  fence(exec, label);
  return copy;
}

/// Tells the other ranks of an exception by `tell(error)`, which throws on all ranks, and throws `why` here, unless the
/// communicator breaks down meanwhile.
template <class Tell>
[[noreturn]] void throw_told(std::exception_ptr const& why, Tell const& tell) {
  try {
    tell(error_of_rank(why));
  } catch (error const& heard) {
    if (breaks_communicator(heard.code())) {
      throw;
    }
  }
  std::rethrow_exception(why);
}

/// For an optimizer, before a call: makes the call of an error feedback fail on all ranks where the weights have another
/// length, and the gradient has not, which the call would see itself.
template <class Feedback, class Weights, class Gradient>
void expect_length(Feedback& feedback, Weights const& weights, Gradient const& gradient) {
  auto const length = static_cast<std::int64_t>(weights.extent(0));
  std::int64_t const expected = feedback.allreduce().length();
  if (length != expected && static_cast<std::int64_t>(gradient.extent(0)) == expected) {
    feedback.fail_on_all(length);
  }
}

// Kernels of error feedback. All views are rank-1 and of one length, that of the accumulator.

template <class Vector, class Gradient, gradient_value Value>
struct gradient_scaling {
  Gradient gradient;
  Vector scaled;
  double factor;
  double power;
  double other_power;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    auto const value = static_cast<double>(static_cast<Value>(gradient(i)));
    scaled(i) = static_cast<Value>(value * factor * power * other_power);
  }
};

template <class Vector, class Gradient, gradient_value Value>
struct residual_accumulation {
  Vector accumulator;
  Vector residual;
  Gradient gradient;
  Value scale;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    accumulator(i) = residual(i) + scale * static_cast<Value>(gradient(i));
  }
};

template <class Vector, class Gradient, gradient_value Value>
struct direction_accumulation {
  Vector accumulator;
  Vector residual;
  Gradient gradient;
  Value scale;
  direction_terms<Value> terms;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    accumulator(i) = terms.formed(i, residual(i), scale * static_cast<Value>(gradient(i)));
  }
};

/// Nesterov's step, which looks one step ahead.
template <class Vector, class Gradient, gradient_value Value>
struct residual_accumulation_ahead {
  Vector accumulator;
  Vector residual;
  Gradient gradient;
  Vector next_velocity;
  Value scale;
  Value clip;
  Value momentum;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    accumulator(i) = residual(i) + scale * (clip * static_cast<Value>(gradient(i)) + momentum * next_velocity(i));
  }
};

/// Subtracts a share of the residual from an accumulator that has all of it.
template <class Vector, gradient_value Value>
struct residual_loss {
  Vector accumulator;
  Vector residual;
  Value share;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { accumulator(i) -= share * residual(i); }
};

template <class Vector, class Indices>
struct contributed_clearing {
  Vector rest;
  Indices contributed;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { rest(static_cast<std::int64_t>(contributed(i))) = 0; }
};

template <class Vector, class Entries>
struct returned_addition {
  Vector rest;
  Entries returned;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    rest(static_cast<std::int64_t>(returned.indices(i))) += returned.values(i);
  }
};

template <class Vector, class Gradient, gradient_value Value>
struct velocity_advance {
  Vector now;
  Vector next;
  Gradient gradient;
  Value scale;
  Value momentum;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    next(i) = momentum * now(i) + scale * static_cast<Value>(gradient(i));
  }
};

/// Clears the velocity of contributed entries that have reached all ranks; both lists ascend.
template <class Vector, class Contributed, class Reached>
struct velocity_mask {
  Vector next;
  Contributed contributed;
  Reached reached;
  std::int64_t count; ///< of `reached`

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    auto const index = contributed(i);
    std::int64_t const place = lower_bound(reached, count, static_cast<std::int64_t>(index));
    if (place < count && reached(place) == index) {
      next(static_cast<std::int64_t>(index)) = 0;
    }
  }
};

template <bool Subtracts, class Indices, class Values, class Vector, gradient_value Value>
struct average_application {
  Indices indices;
  Values values;
  Value ranks;
  Vector to;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    auto& place = to(static_cast<std::int64_t>(indices(i)));
    if constexpr (Subtracts) {
      place -= values(i) / ranks;
    } else {
      place = values(i) / ranks;
    }
  }
};

/// Enqueues a kernel that writes the averages of an update over `ranks` ranks to its places, or subtracts them there.
template <bool Subtracts, execution_space E, class Update, class Vector, gradient_value Value>
void apply_averages(char const* label, E const& exec, Update const& update, Value ranks, Vector const& to) {
  auto const indices = update.indices();
  auto const values = update.values();
  average_application<Subtracts, decltype(indices), decltype(values), Vector, Value> const kernel{indices, values,
                                                                                                  ranks, to};
  Kokkos::parallel_for(label, index_range<E>(exec, 0, static_cast<std::int64_t>(indices.extent(0))), kernel);
}

} // namespace oktopk::detail
