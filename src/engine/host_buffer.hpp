// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/value_forms.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace oktopk::detail {

/// The types of values that a program may give.
enum class element : std::uint8_t { float32, float64, float16, bfloat16 };

/// Values of a program, one after the other in memory of the host; the program owns them.
struct host_buffer {
  void* data = nullptr; ///< aligned for the type; null where there is no value
  std::int64_t length = 0;
  element type = element::float32;
};

template <gradient_value Value>
inline constexpr element element_of = std::same_as<Value, float> ? element::float32 : element::float64;

/// Calls `job` with the buffer's memory, a function that makes a double or float of what lies there, and one for the way
/// back. A narrowed value goes by way of float, as torch has it, and is infinite where it is beyond the largest.
template <class Job>
void with_elements(host_buffer const& of, Job const& job) {
  switch (of.type) {
  case element::float32:
    return job(
        static_cast<float*>(of.data), [](float value) { return value; },
        [](auto value) { return static_cast<float>(value); });
  case element::float64:
    return job(
        static_cast<double*>(of.data), [](double value) { return value; },
        [](auto value) { return static_cast<double>(value); });
  case element::float16:
    return job(
        static_cast<std::uint16_t*>(of.data), [](std::uint16_t half) { return float16_form::from_bits<float>(half); },
        [](auto value) {
          auto const narrowed = static_cast<float>(value);
          constexpr float overflows = 65520; // the least that is rounded beyond 65504
          return float16_form::to_bits(std::abs(narrowed) >= overflows
                                           ? std::copysign(std::numeric_limits<float>::infinity(), narrowed)
                                           : narrowed);
        });
  case element::bfloat16:
    return job(
        static_cast<std::uint16_t*>(of.data), [](std::uint16_t half) { return bfloat16_form::from_bits<float>(half); },
        [](auto value) { return bfloat16_form::to_bits(static_cast<float>(value)); });
  }
}

template <gradient_value Value>
void widen(host_buffer const& from, Value* to) {
  with_elements(from, [&](auto const* values, auto const& read, auto const&) {
    std::transform(values, values + from.length, to, [&](auto value) { return static_cast<Value>(read(value)); });
  });
}

template <gradient_value Value>
void narrow(Value const* from, host_buffer const& to) {
  with_elements(
      to, [&](auto* values, auto const&, auto const& write) { std::transform(from, from + to.length, values, write); });
}

/// Makes all values this one.
inline void fill(host_buffer const& buffer, float value) {
  with_elements(
      buffer, [&](auto* values, auto const&, auto const& write) { std::fill_n(values, buffer.length, write(value)); });
}

inline bool are_finite(host_buffer const& buffer) {
  bool all = true;
  with_elements(buffer, [&](auto const* values, auto const& read, auto const&) {
    all = std::all_of(values, values + buffer.length, [&](auto value) { return is_finite(read(value)); });
  });
  return all;
}

} // namespace oktopk::detail
