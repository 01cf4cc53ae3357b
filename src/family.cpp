// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The algorithms of the family OKTOPK_FAMILY.

#include <oktopk/catalogue/algorithms.hpp>

namespace oktopk::catalogue {

template void visit_family<family::OKTOPK_FAMILY>(detail::option_reader&, gradient_size const&,
                                                  making<Kokkos::DefaultHostExecutionSpace, float, std::int32_t>&);
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || defined(KOKKOS_ENABLE_SYCL)
template void visit_family<family::OKTOPK_FAMILY>(detail::option_reader&, gradient_size const&,
                                                  making<Kokkos::DefaultExecutionSpace, float, std::int32_t>&);
#endif

} // namespace oktopk::catalogue
