// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>

namespace oktopk {

/// Options of `error_feedback`: what happens to a gradient before the residual takes it. The same on all ranks.
struct error_feedback_options {
  double momentum = 0;        ///< in [0, 1), also in the value type; momentum * velocity + gradient is accumulated
  bool nesterov = false;      ///< accumulates gradient + momentum * velocity instead
  bool factor_masking = true; ///< clears the velocity of contributed entries, which would go on from stale gradients
  double clip_norm = 0;       ///< scales a rank's gradient down to this norm where it is above; none where it is 0

  /// The fault of these options in words; empty where there is none.
  std::string problem() const {
    if (!(momentum >= 0 && momentum < 1)) {
      return "the momentum " + std::to_string(momentum) + " is not in [0, 1)";
    }
    if (nesterov && momentum == 0) {
      return "nesterov needs a momentum";
    }
    if (!(clip_norm >= 0) || !std::isfinite(clip_norm)) {
      return "clip_norm = " + std::to_string(clip_norm) + " is no norm";
    }
    return {};
  }

  bool operator==(error_feedback_options const&) const = default;
};

/// Entries [begin, end) of a gradient.
struct entry_range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

namespace detail {

/// What is wrong with a number of the options, called `name`, that kernels use as a `Value`; empty where nothing is.
template <gradient_value Value>
std::string value_fault(std::string_view name, double number) {
  if (!std::isfinite(number)) {
    return std::string(name) + " is not finite";
  }
  bool const infinite = std::abs(number) > static_cast<double>(std::numeric_limits<Value>::max());
  // A rate that becomes zero would train nothing, and nobody would be told.
  if (infinite || (number != 0 && static_cast<Value>(number) == 0)) {
    std::ostringstream text;
    text << name << " " << number << " is " << (infinite ? "infinite" : "zero") << " as a "
         << (std::same_as<Value, float> ? "float" : "double");
    return text.str();
  }
  return {};
}

/// The same for a factor in [0, 1) that makes what it multiplies decay; of other numbers it says nothing.
template <gradient_value Value>
std::string decay_fault(std::string_view name, double number) {
  if (number >= 0 && number < 1 && static_cast<Value>(number) == 1) {
    std::ostringstream text;
    text.precision(17);
    text << name << " " << number << " is 1 as a " << (std::same_as<Value, float> ? "float" : "double");
    return text.str();
  }
  return {};
}

} // namespace detail

} // namespace oktopk
