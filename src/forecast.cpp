// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What every algorithm costs; compiles none.

#include <oktopk/catalogue/make.hpp>

namespace oktopk {

template std::vector<forecast>
catalogue::forecast_all<Kokkos::DefaultExecutionSpace, self_communicator, float, std::int32_t>(gradient_size const&,
                                                                                               int);

} // namespace oktopk
