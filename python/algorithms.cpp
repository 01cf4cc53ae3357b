// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Every algorithm of the catalogue, for sums of OKTOPK_TORCH_VALUE: more than a minute for each of the two types.

#include <oktopk/catalogue/make.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/torch/process_group.hpp>

#include <vector>

namespace oktopk {

using space = Kokkos::DefaultHostExecutionSpace;
using communicator_type = counted<process_group_communicator>;

template any_allreduce<space, communicator_type, OKTOPK_TORCH_VALUE>
make_allreduce<OKTOPK_TORCH_VALUE, std::int32_t, space, communicator_type>(space const&, communicator_type,
                                                                           std::string_view, gradient_size const&);

template std::vector<detail::listed_allreduce> list_allreduces();

} // namespace oktopk
