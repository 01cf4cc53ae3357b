// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/memory.hpp>

namespace oktopk::detail {

/// Asks a CPU for memory that is to be written soon; for kernels. Nothing on a device, whose threads hide each other's
/// waiting. The address need not be valid.
template <execution_space E>
KOKKOS_INLINE_FUNCTION void prefetch_for_writing([[maybe_unused]] void const* address) {
  if constexpr (!is_device<E>) {
    __builtin_prefetch(address, 1);
  }
}

} // namespace oktopk::detail
