// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The catalogue for programs that do not link `oktopk::catalogue`: one of their files includes this, and compiles what
/// the library has, in more than a minute. Twice does no harm.

#include <oktopk/catalogue/make.hpp>

namespace oktopk {

template any_allreduce<Kokkos::DefaultHostExecutionSpace>
make_allreduce<float, std::int32_t>(Kokkos::DefaultHostExecutionSpace const&, any_communicator, std::string_view,
                                    gradient_size const&, std::span<catalogue::added_codec<> const>);
template std::vector<catalogue::forecast>
catalogue::forecast_all<Kokkos::DefaultHostExecutionSpace, float, std::int32_t>(gradient_size const&, int, bool);

#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || defined(KOKKOS_ENABLE_SYCL)
template any_allreduce<Kokkos::DefaultExecutionSpace>
make_allreduce<float, std::int32_t>(Kokkos::DefaultExecutionSpace const&, any_communicator, std::string_view,
                                    gradient_size const&,
                                    std::span<catalogue::added_codec<Kokkos::DefaultExecutionSpace> const>);
template std::vector<catalogue::forecast>
catalogue::forecast_all<Kokkos::DefaultExecutionSpace, float, std::int32_t>(gradient_size const&, int, bool);
#endif

template std::vector<detail::listed_allreduce> list_allreduces<>(std::span<catalogue::added_codec<> const>);
template std::string catalogue_text<>(std::span<catalogue::added_codec<> const>);

} // namespace oktopk
