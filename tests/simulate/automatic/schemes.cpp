// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "simulate/automatic/clocked.hpp"

#include <oktopk/catalogue/make.hpp>

namespace oktopk {

template any_allreduce<oktopk_simulate::execution, oktopk_simulate::clocked>
detail::make_scheme<float, std::int32_t>(oktopk_simulate::execution const&, oktopk_simulate::clocked const&,
                                         std::string const&, gradient_size const&);
template std::vector<forecast>
catalogue::forecast_all<oktopk_simulate::execution, oktopk_simulate::clocked, float, std::int32_t>(gradient_size const&,
                                                                                                   int);

} // namespace oktopk
