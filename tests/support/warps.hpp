// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/collect.hpp"

#include <oktopk/core/kokkos_ext/warp.hpp>

#include <tuple>

namespace oktopk_tests {

/// Every form of a warp that kernels of this execution space can be made of: played by one thread, of as many lanes as
/// GPUs have, and that of the hardware where there is one.
using warps = std::conditional_t<
    std::is_same_v<oktopk::detail::warp_of<execution>, oktopk::detail::scalar_warp<32>>,
    std::tuple<oktopk::detail::scalar_warp<32>, oktopk::detail::scalar_warp<64>>,
    std::tuple<oktopk::detail::scalar_warp<32>, oktopk::detail::scalar_warp<64>, oktopk::detail::warp_of<execution>>>;

} // namespace oktopk_tests
