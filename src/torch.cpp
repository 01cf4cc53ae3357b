// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <oktopk/catalogue/make.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/torch/process_group.hpp>

namespace oktopk {

using space = Kokkos::DefaultHostExecutionSpace; // gradients on the host

template any_allreduce<space, process_group_communicator>
make_allreduce<float, std::int32_t, space, process_group_communicator>(space const&, process_group_communicator,
                                                                       std::string_view, gradient_size const&);
template any_allreduce<space, counted<process_group_communicator>>
make_allreduce<float, std::int32_t, space, counted<process_group_communicator>>(space const&,
                                                                                counted<process_group_communicator>,
                                                                                std::string_view, gradient_size const&);

} // namespace oktopk
