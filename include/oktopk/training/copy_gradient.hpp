// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/concepts.hpp>
#include <oktopk/core/kokkos_ext/range.hpp>

#include <cstdint>

namespace oktopk::detail {

template <class Gradient, class Vector>
struct gradient_copy {
  Gradient from;
  Vector to;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    to(i) = static_cast<typename Vector::value_type>(from(i));
  }
};

/// Enqueues the copy of a gradient of any type and layout; two rank-1 views of one length.
template <execution_space E, class Gradient, class Vector>
void copy_gradient(E const& exec, Gradient const& from, Vector const& to) {
  Kokkos::parallel_for("oktopk::bucketed::copy", index_range<E>(exec, 0, static_cast<std::int64_t>(to.extent(0))),
                       gradient_copy<Gradient, Vector>{from, to});
}

} // namespace oktopk::detail
