// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#define OKTOPK_COMPILE_MPI template // ok_topk with its default policies
#include <oktopk/allreduce.hpp>
#include <oktopk/catalogue/make.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/mpi.hpp>

namespace oktopk {

using space = Kokkos::DefaultExecutionSpace;

template any_allreduce<space, mpi_communicator>
make_allreduce<float, std::int32_t, space, mpi_communicator>(space const&, mpi_communicator, std::string_view,
                                                             gradient_size const&);
template any_allreduce<space, counted<mpi_communicator>>
make_allreduce<float, std::int32_t, space, counted<mpi_communicator>>(space const&, counted<mpi_communicator>,
                                                                      std::string_view, gradient_size const&);

#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || defined(KOKKOS_ENABLE_SYCL)
using host = Kokkos::DefaultHostExecutionSpace;

template any_allreduce<host, mpi_communicator>
make_allreduce<float, std::int32_t, host, mpi_communicator>(host const&, mpi_communicator, std::string_view,
                                                            gradient_size const&);
template any_allreduce<host, counted<mpi_communicator>>
make_allreduce<float, std::int32_t, host, counted<mpi_communicator>>(host const&, counted<mpi_communicator>,
                                                                     std::string_view, gradient_size const&);
#endif

} // namespace oktopk
