// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/detail/kokkos_ext/fence.hpp>
#include <oktopk/exchange/fault_report.hpp>
#include <oktopk/select/count.hpp>

#include <cstdint>

namespace oktopk::detail {

/// One index of a list, on the host. Waits for `exec`.
template <execution_space E, gradient_index Index>
std::int64_t index_at(E const& exec, array_ref<Index const, typename E::memory_space> indices, std::int64_t position) {
  Index index = 0;
  array_ref<Index, Kokkos::HostSpace> const to(&index, 1);
  array_ref<Index const, typename E::memory_space> const from(indices.data() + position, 1);
  Kokkos::deep_copy(exec, to, from);
  fence(exec, "oktopk::index_at");
  return index;
}

/// A fault where some entry is not finite: of inputs, what was put in; of sums, that they overflowed. Waits for `exec`.
template <execution_space E, gradient_index Index, gradient_value Value>
fault_report non_finite_in(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries, bool of_sum) {
  std::int64_t const bad = first_non_finite<E, Value>(exec, entries.values);
  if (bad == entries.size()) {
    return {};
  }
  return {fault::non_finite, index_at<E, Index>(exec, entries.indices, bad), of_sum};
}

} // namespace oktopk::detail
