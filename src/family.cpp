// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The algorithms of the family OKTOPK_FAMILY; with OKTOPK_DOUBLE those for double on the host, with OKTOPK_ENGINE_ON_DEVICE those
// of the device alone.

#include <oktopk/catalogue/algorithms.hpp>

namespace oktopk::catalogue {

#ifdef OKTOPK_DOUBLE
template void visit_family<family::OKTOPK_FAMILY>(detail::option_reader&, gradient_size const&,
                                                  making<Kokkos::DefaultHostExecutionSpace, double, std::int32_t>&);
#else
#ifndef OKTOPK_ENGINE_ON_DEVICE
template void visit_family<family::OKTOPK_FAMILY>(detail::option_reader&, gradient_size const&,
                                                  making<Kokkos::DefaultHostExecutionSpace, float, std::int32_t>&);
#endif
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || defined(KOKKOS_ENABLE_SYCL)
template void visit_family<family::OKTOPK_FAMILY>(detail::option_reader&, gradient_size const&,
                                                  making<Kokkos::DefaultExecutionSpace, float, std::int32_t>&);
#endif
#endif

} // namespace oktopk::catalogue
