// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/catalogue/catalogue.hpp>

#include <span>
#include <type_traits>

namespace oktopk_programs {

/// The codecs that this build has beside the library's own: zfp, where it is installed. Compiled once for all programs.
std::span<oktopk::catalogue::added_codec<> const> added_codecs_of_host();

/// The same for any execution space; those of devices have none.
template <oktopk::execution_space E = Kokkos::DefaultHostExecutionSpace>
std::span<oktopk::catalogue::added_codec<E> const> added_codecs() {
  if constexpr (std::is_same_v<E, Kokkos::DefaultHostExecutionSpace>) {
    return added_codecs_of_host();
  } else {
    return {};
  }
}

} // namespace oktopk_programs
