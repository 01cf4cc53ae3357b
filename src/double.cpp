// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Every algorithm of the catalogue for sums of double on the host; oktopk::catalogue has those of float.

#include <oktopk/catalogue/make.hpp>

namespace oktopk {

using space = Kokkos::DefaultHostExecutionSpace;

template any_allreduce<space, any_communicator, double>
make_allreduce<double, std::int32_t>(space const&, any_communicator, std::string_view, gradient_size const&,
                                     std::span<catalogue::added_codec<space, double> const>);

} // namespace oktopk
