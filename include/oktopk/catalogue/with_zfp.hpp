// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/catalogue/algorithms.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/codec/zfp.hpp>
#include <oktopk/comm/self.hpp>
#include <oktopk/core/kokkos_ext/memory.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace oktopk {

namespace detail {

template <bool Makes, class Codec, execution_space E, communicator Comm, gradient_value Value, gradient_index Index>
void visit_added_codec(std::string_view scheme, option_reader& in, gradient_size const& size,
                       catalogue::making<E, Comm, Value, Index>* sink) {
  catalogue::with_algorithm(scheme, [&](auto const& found) {
    using wire = coded_wire<Codec>;
    auto const offer = [](auto const&...) {};
    if constexpr (requires { found.template visit_over<wire, E, Comm, Value, Index>(in, size, offer); }) {
      if constexpr (Makes) {
        if (sink != nullptr) {
          found.template visit_over<wire, E, Comm, Value, Index>(in, size, *sink);
          return;
        }
      }
      found.template visit_over<wire, E, Comm, Value, Index>(in, size, offer);
    }
  });
}

template <bool Makes, class Codec, execution_space E, communicator Comm, gradient_value Value, gradient_index Index>
void add_codec(char const* name) {
  auto& all = catalogue::added_codec<E, Comm, Value, Index>::all();
  auto found = std::find_if(all.begin(), all.end(), [&](auto const& each) { return each.name == name; });
  if (found == all.end()) {
    all.push_back({name, visit_added_codec<Makes, Codec, E, Comm, Value, Index>});
  } else if (Makes) {
    found->visit = visit_added_codec<Makes, Codec, E, Comm, Value, Index>;
  }
}

} // namespace detail

/// Makes `codec=zfp` known to the list alone.
inline void list_zfp() {
  detail::add_codec<false, zfp, Kokkos::DefaultHostExecutionSpace, self_communicator, float, std::int32_t>("zfp");
}

/// Makes `codec=zfp` known to texts, for `make_allreduce` with these types and for the list: to be called before, on
/// one thread. Does nothing for devices, for zfp codes in host memory. A program that includes this includes <zfp.h>,
/// and links libzfp (the target oktopk::zfp, where CMake finds it).
template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t>
void add_zfp() {
  if constexpr (!detail::is_device<E>) {
    detail::add_codec<true, zfp, E, Comm, Value, Index>("zfp");
    list_zfp();
  }
}

} // namespace oktopk
