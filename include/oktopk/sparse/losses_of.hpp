// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/kokkos_ext/kernels.hpp>

#include <cstdint>

namespace oktopk::detail {

template <gradient_value Value>
struct loss_subtraction {
  Value const* values;
  Value const* rounded;
  Value* losses;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { losses[i] = values[i] - rounded[i]; }
};

/// Enqueues losses[i] = values[i] - rounded[i]. The arrays may be the same.
template <execution_space E, gradient_value Value>
void losses_of(E const& exec, Value const* values, Value const* rounded, std::int64_t count, Value* losses) {
  Kokkos::parallel_for("oktopk::losses_of", index_range<E>(exec, 0, count),
                       loss_subtraction<Value>{values, rounded, losses});
}

} // namespace oktopk::detail
