// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <oktopk/torch.hpp>

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos(argc, argv);
  at::Tensor const ones = at::ones({3});
  auto const view = oktopk::torch_view<float>(ones);
  return view.extent(0) == 3 && view(2) == 1 ? 0 : 1;
}
