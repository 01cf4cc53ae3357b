// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/concepts.hpp>

#include <string>

namespace oktopk::detail {

/// Waits for one execution-space instance, with a label where this Kokkos takes one (3.5 and later).
template <execution_space E>
void fence(E const& exec, char const* label) {
  if constexpr (requires { exec.fence(std::string(label)); }) {
    exec.fence(label);
  } else {
    exec.fence();
  }
}

} // namespace oktopk::detail
