// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/concepts.hpp>

#include <concepts>

namespace oktopk::detail {

/// Whether kernels on `one` and on `other` run in the order in which they are launched. Kokkos before 4.0 does not
/// compare instances, so there the answer is no.
template <execution_space E>
bool same_instance([[maybe_unused]] E const& one, [[maybe_unused]] E const& other) {
  if constexpr (std::equality_comparable<E>) {
    return one == other;
  } else {
    return false;
  }
}

} // namespace oktopk::detail
