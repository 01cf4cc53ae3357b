// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The codec of libzfp for algorithms that a text names. Includes <zfp.h>: a program links libzfp (the target
/// oktopk::zfp, if CMake finds it).

#include <oktopk/catalogue/algorithms.hpp>
#include <oktopk/codec/zfp.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace oktopk {

/// The codec of libzfp as `codec=zfp`: the last argument of `make_allreduce`, `list_allreduces` and `catalogue_text`.
/// Lives as long as the program. Empty for devices, since zfp codes in host memory.
template <execution_space E = Kokkos::DefaultHostExecutionSpace, gradient_value Value = float,
          gradient_index Index = std::int32_t>
std::span<catalogue::added_codec<E, Value, Index> const> zfp_codec() {
  if constexpr (detail::is_device<E>) {
    return {};
  } else {
    static std::array<catalogue::added_codec<E, Value, Index>, 1> const codec{
        {{"zfp", [](std::string_view name, detail::option_reader& in, gradient_size const& size,
                    catalogue::making<E, Value, Index>& sink) {
            catalogue::with_algorithm(name, [&](auto const& scheme) {
              if constexpr (std::decay_t<decltype(scheme)>::is_coded) {
                scheme.template visit_over<coded_wire<zfp>, E, Value, Index>(in, size, sink);
              }
            });
          }}}};
    return codec;
  }
}

} // namespace oktopk
