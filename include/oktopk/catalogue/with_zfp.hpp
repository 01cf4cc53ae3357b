// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The codec of libzfp for algorithms that a text names. Includes <zfp.h>: a program links libzfp (the target
/// oktopk::zfp, if CMake finds it).

#include <oktopk/catalogue/algorithms.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/codec/zfp.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace oktopk {

/// Adds `codec=zfp` to the texts of `make_allreduce` with these types. To be called before it, on one thread. The list
/// of algorithms shows the codec if it was added for `self_communicator` on the host. Does nothing for devices, since
/// zfp codes in host memory.
template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t>
void add_zfp() {
  using added = catalogue::added_codec<E, Comm, Value, Index>;
  auto& all = added::all();
  bool const known = std::any_of(all.begin(), all.end(), [](added const& each) { return each.name == "zfp"; });
  if constexpr (!detail::is_device<E>) {
    if (!known) {
      all.push_back(
          {"zfp", [](std::string_view name, detail::option_reader& in, gradient_size const& size, auto& sink) {
             catalogue::with_algorithm(name, [&](auto const& scheme) {
               if constexpr (requires { &std::decay_t<decltype(scheme)>::is_coded; }) {
                 scheme.template visit_over<coded_wire<zfp>, E, Comm, Value, Index>(in, size, sink);
               }
             });
           }});
    }
  }
}

} // namespace oktopk
