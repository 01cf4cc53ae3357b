// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/range.hpp>

#include <cstdint>

namespace oktopk::detail {

template <class Array, class Value>
struct array_filling {
  Array to;
  Value value;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { to[i] = value; }
};

/// Enqueues a kernel that sets `count` elements. `Array` is a pointer or a rank-1 view that the execution space
/// reaches.
template <execution_space E, class Array, class Value>
void fill_array(char const* label, E const& exec, Array const& to, std::int64_t count, Value value) {
  Kokkos::parallel_for(label, index_range<E>(exec, 0, count), array_filling<Array, Value>{to, value});
}

} // namespace oktopk::detail
