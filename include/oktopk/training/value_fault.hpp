// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>

#include <cmath>
#include <concepts>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>

namespace oktopk::detail {

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

} // namespace oktopk::detail
