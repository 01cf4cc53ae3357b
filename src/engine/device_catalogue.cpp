// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The algorithms by name of the engine of a device: three families, for float. Each costs the compiler of a device minutes, and
// the program that loads them memory; on the host the other ones win too little, or stage their messages.

#include "engine/catalogue.hpp"

#include <oktopk/catalogue/make.hpp>

namespace oktopk {

using space = detail::engine_space;
using catalogue::family;

namespace catalogue {

#define OKTOPK_ELSEWHERE(FAMILY)                                                                                       \
  extern template void visit_family<family::FAMILY>(detail::option_reader&, gradient_size const&,                      \
                                                    making<space, float, std::int32_t>&)
OKTOPK_ELSEWHERE(ok_topk);
OKTOPK_ELSEWHERE(top_k);
OKTOPK_ELSEWHERE(dense);

} // namespace catalogue

template <>
any_allreduce<space> make_allreduce<float, std::int32_t>(space const& exec, any_communicator comm,
                                                         std::string_view text, gradient_size const& size,
                                                         std::span<catalogue::added_codec<space> const> added) {
  return catalogue::make_of<family::ok_topk, family::top_k, family::dense>(exec, std::move(comm), text, size, added);
}

template <>
std::vector<detail::listed_allreduce> list_allreduces<>(std::span<catalogue::added_codec<> const> added) {
  return catalogue::list_of<family::ok_topk, family::top_k, family::dense>(added);
}

} // namespace oktopk
