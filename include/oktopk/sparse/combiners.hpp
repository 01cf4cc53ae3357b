// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/reduce.hpp>
#include <oktopk/sparse/region_sum.hpp>

#include <limits>
#include <string>

// What becomes of the values that several ranks have for one index. A combiner of a program's own is a class like these.
namespace oktopk {

/// The sum, divided by the number of ranks that have the index. The owner of an index counts them, so nothing more is sent;
/// for schedules of one stage.
template <std::floating_point Value, class Fault = detail::no_fault>
struct mean_of : sum_of<Value, Fault> {
  static std::string name() { return "mean"; }
  KOKKOS_INLINE_FUNCTION static constexpr Value finish(Value sum, std::int32_t contributors) {
    return sum / static_cast<Value>(contributors);
  }
};

/// The largest value; a NaN is larger than any other, and -0 smaller than 0.
template <wire_value Value, class Fault = detail::no_fault>
struct max_of : Fault {
  static std::string name() { return "max"; }
  KOKKOS_INLINE_FUNCTION static constexpr Value identity() {
    if constexpr (std::is_floating_point_v<Value>) {
      return -detail::infinity<Value>;
    } else {
      return std::numeric_limits<Value>::lowest();
    }
  }
  KOKKOS_INLINE_FUNCTION static constexpr Value combine(Value a, Value b) {
    if constexpr (std::is_floating_point_v<Value>) {
      return detail::larger::of(a, b);
    } else {
      return a < b ? b : a;
    }
  }
};

/// The smallest value; a NaN is smaller than any other, and -0 smaller than 0.
template <wire_value Value, class Fault = detail::no_fault>
struct min_of : Fault {
  static std::string name() { return "min"; }
  KOKKOS_INLINE_FUNCTION static constexpr Value identity() {
    if constexpr (std::is_floating_point_v<Value>) {
      return detail::infinity<Value>;
    } else {
      return std::numeric_limits<Value>::max();
    }
  }
  KOKKOS_INLINE_FUNCTION static constexpr Value combine(Value a, Value b) {
    if constexpr (std::is_floating_point_v<Value>) {
      return detail::smaller::of(a, b);
    } else {
      return b < a ? b : a;
    }
  }
};

} // namespace oktopk
