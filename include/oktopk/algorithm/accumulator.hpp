// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/concepts.hpp>
#include <oktopk/core/sparse.hpp>
#include <oktopk/exchange/fault_report.hpp>

#include <cstdint>

namespace oktopk::detail {

/// What is wrong with the shape of an accumulator, as this rank sees it; its values are looked at during selection.
template <kokkos_vector View>
fault_report check_accumulator(View const& accumulator, std::int64_t length) {
  auto const size = static_cast<std::int64_t>(accumulator.extent(0));
  if (size != length) {
    return {fault::length_mismatch, size};
  }
  if (!accumulator.span_is_contiguous()) {
    return {fault::not_contiguous, 0};
  }
  return {};
}

} // namespace oktopk::detail
