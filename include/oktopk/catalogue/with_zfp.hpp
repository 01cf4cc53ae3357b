// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The codec of libzfp for the catalogue: `make_allreduce(exec, comm, text, size, with_zfp())`. Includes <zfp.h>, so a
/// program that includes this links libzfp (the target oktopk::zfp, where CMake finds it).

#include <oktopk/catalogue/one_of.hpp>
#include <oktopk/codec/zfp.hpp>
#include <oktopk/core/kokkos_ext/memory.hpp>

#include <tuple>

namespace oktopk {

struct with_zfp {
  /// None on devices: zfp codes in host memory.
  template <execution_space E>
  static constexpr auto codecs() {
    if constexpr (detail::is_device<E>) {
      return std::tuple<>();
    } else {
      return std::tuple{alternative<zfp>{"zfp", "rate bits a value, by libzfp"}};
    }
  }
};

} // namespace oktopk
