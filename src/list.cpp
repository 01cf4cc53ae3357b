// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What compiles no algorithm: the names and options of all, and what they cost.

#include <oktopk/catalogue/make.hpp>

namespace oktopk {

template std::vector<detail::listed_allreduce> list_allreduces<void>();
template std::string catalogue_text<void>();
template std::vector<forecast>
catalogue::forecast_all<Kokkos::DefaultExecutionSpace, self_communicator, float, std::int32_t>(gradient_size const&,
                                                                                               int);

} // namespace oktopk
