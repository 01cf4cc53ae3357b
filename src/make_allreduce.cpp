// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Part OKTOPK_PART of the algorithms over OKTOPK_COMMUNICATOR. The first part has `make_allreduce`, too.

#include <oktopk/catalogue/make.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>
#ifdef OKTOPK_MPI_COMPILED
#include <oktopk/mpi.hpp>
#endif

namespace oktopk {

using comm = OKTOPK_COMMUNICATOR;
template <class Space>
using sink_on = catalogue::making<Space, comm, float, std::int32_t>;

// `automatic` makes all others, so each part has to know that the other one is compiled elsewhere.
#define OKTOPK_COMPILE_PART(SPACE)                                                                                     \
  extern template void catalogue::visit_part<1 - OKTOPK_PART>(detail::option_reader&, gradient_size const&,            \
                                                              sink_on<SPACE>&);                                        \
  template void catalogue::visit_part<OKTOPK_PART>(detail::option_reader&, gradient_size const&, sink_on<SPACE>&)
#if OKTOPK_PART == 0
#define OKTOPK_COMPILE_FOR(SPACE)                                                                                      \
  OKTOPK_COMPILE_PART(SPACE);                                                                                          \
  template any_allreduce<SPACE, comm> make_allreduce<float, std::int32_t>(SPACE const&, comm, std::string_view,        \
                                                                          gradient_size const&)
#else
#define OKTOPK_COMPILE_FOR(SPACE) OKTOPK_COMPILE_PART(SPACE)
#endif

using space = Kokkos::DefaultExecutionSpace;
OKTOPK_COMPILE_FOR(space);

#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || defined(KOKKOS_ENABLE_SYCL)
using host = Kokkos::DefaultHostExecutionSpace;
OKTOPK_COMPILE_FOR(host);
#endif

} // namespace oktopk
