// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/codec/elementwise.hpp>

#include <string>

namespace oktopk {

namespace detail {

struct identity_element {
  template <gradient_value Value>
  using wire = Value;

  template <gradient_value Value>
  KOKKOS_INLINE_FUNCTION static Value to_wire(Value value) {
    return value;
  }

  template <gradient_value Value>
  KOKKOS_INLINE_FUNCTION static Value from_wire(Value value) {
    return value;
  }
};

} // namespace detail

/// Values as they are.
struct identity : detail::elementwise_codec<detail::identity_element> {
  static constexpr bool lossless = true;
  static std::string name() { return "identity"; }

  template <gradient_value Value>
  static double error_bound(double) {
    return 0;
  }
};

} // namespace oktopk
