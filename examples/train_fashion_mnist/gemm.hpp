// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "types.hpp"

#include <KokkosBlas3_gemm.hpp>

namespace fashion {

enum class operand : char { as_is = 'N', transposed = 'T' };

/// c = op(a) op(b): through Kokkos-Kernels to the BLAS it was built with.
template <class A, class B>
void multiply(execution const& exec, operand op_a, A const& a, operand op_b, B const& b, matrix const& c) {
  char const code_a[] = {static_cast<char>(op_a), '\0'};
  char const code_b[] = {static_cast<char>(op_b), '\0'};
  // Kokkos-Kernels before 4.0 takes no execution space instance and works on the default one.
  if constexpr (requires { KokkosBlas::gemm(exec, code_a, code_b, 1.0F, a, b, 0.0F, c); }) {
    KokkosBlas::gemm(exec, code_a, code_b, 1.0F, a, b, 0.0F, c);
  } else {
    KokkosBlas::gemm(code_a, code_b, 1.0F, a, b, 0.0F, c);
  }
}

} // namespace fashion
