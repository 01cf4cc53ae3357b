// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Algorithms by name for sums of double on the host; oktopk::catalogue has those of float. The families are compiled in
// family.cpp.

#include <oktopk/catalogue/make.hpp>

namespace oktopk {

using space = Kokkos::DefaultHostExecutionSpace;

namespace catalogue {

#define OKTOPK_ELSEWHERE(FAMILY)                                                                                       \
  extern template void visit_family<family::FAMILY>(detail::option_reader&, gradient_size const&,                      \
                                                    making<space, double, std::int32_t>&)
OKTOPK_ELSEWHERE(ok_topk);
OKTOPK_ELSEWHERE(top_k);
OKTOPK_ELSEWHERE(dense);
OKTOPK_ELSEWHERE(coded);
OKTOPK_ELSEWHERE(automatic);

} // namespace catalogue

template any_allreduce<space, any_communicator, double>
make_allreduce<double, std::int32_t>(space const&, any_communicator, std::string_view, gradient_size const&,
                                     std::span<catalogue::added_codec<space, double> const>);

template std::vector<catalogue::forecast> catalogue::forecast_all<space, double, std::int32_t>(gradient_size const&,
                                                                                               int, bool);

} // namespace oktopk
