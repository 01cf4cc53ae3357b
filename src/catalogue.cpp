// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What names and lists algorithms; the families are compiled in family.cpp.

#include <oktopk/catalogue/make.hpp>

namespace oktopk::catalogue {

#define OKTOPK_ELSEWHERE(FAMILY, SPACE)                                                                                \
  extern template void visit_family<family::FAMILY>(detail::option_reader&, gradient_size const&,                      \
                                                    making<SPACE, float, std::int32_t>&)
#define OKTOPK_ALL_ELSEWHERE(SPACE)                                                                                    \
  OKTOPK_ELSEWHERE(ok_topk, SPACE);                                                                                    \
  OKTOPK_ELSEWHERE(top_k, SPACE);                                                                                      \
  OKTOPK_ELSEWHERE(dense, SPACE);                                                                                      \
  OKTOPK_ELSEWHERE(coded, SPACE);                                                                                      \
  OKTOPK_ELSEWHERE(automatic, SPACE)

OKTOPK_ALL_ELSEWHERE(Kokkos::DefaultHostExecutionSpace);
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || defined(KOKKOS_ENABLE_SYCL)
OKTOPK_ALL_ELSEWHERE(Kokkos::DefaultExecutionSpace);
#endif

} // namespace oktopk::catalogue

#include <oktopk/catalogue/impl.hpp>
