// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <oktopk/catalogue/make.hpp>
#include <oktopk/comm/in_process.hpp>

namespace oktopk {

using space = Kokkos::DefaultExecutionSpace;

template std::vector<detail::listed_allreduce> list_allreduces<void>();
template std::string catalogue_text<void>();
template std::vector<forecast>
catalogue::forecast_all<space, self_communicator, float, std::int32_t>(gradient_size const&, int);
template any_allreduce<space, in_process_communicator>
make_allreduce<float, std::int32_t, space, in_process_communicator>(space const&, in_process_communicator,
                                                                    std::string_view, gradient_size const&);
template any_allreduce<space, self_communicator>
make_allreduce<float, std::int32_t, space, self_communicator>(space const&, self_communicator, std::string_view,
                                                              gradient_size const&);

#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || defined(KOKKOS_ENABLE_SYCL)
using host = Kokkos::DefaultHostExecutionSpace;

template any_allreduce<host, in_process_communicator>
make_allreduce<float, std::int32_t, host, in_process_communicator>(host const&, in_process_communicator,
                                                                   std::string_view, gradient_size const&);
template any_allreduce<host, self_communicator>
make_allreduce<float, std::int32_t, host, self_communicator>(host const&, self_communicator, std::string_view,
                                                             gradient_size const&);
#endif

} // namespace oktopk
