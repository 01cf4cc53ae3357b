// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/concepts.hpp>

#include <cstdint>

namespace oktopk::detail {

/// The range of a kernel with one 64-bit index: `index_range<E>(exec, 0, count)`. Kokkos 3.4 deduces no arguments.
template <execution_space E>
using index_range = Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>;

} // namespace oktopk::detail
