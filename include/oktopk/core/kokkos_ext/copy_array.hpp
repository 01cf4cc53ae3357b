// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/range.hpp>

#include <cstdint>
#include <type_traits>

namespace oktopk::detail {

template <class From, class To>
struct array_copy {
  From from;
  To to;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    to[i] = static_cast<std::remove_reference_t<decltype(to[i])>>(from[i]);
  }
};

/// Enqueues a kernel that copies `count` elements, which may be of another type there, and may lie in another layout.
/// `From` and `To` are pointers or rank-1 views that the execution space reaches.
template <execution_space E, class From, class To>
void copy_array(char const* label, E const& exec, From const& from, std::int64_t count, To const& to) {
  Kokkos::parallel_for(label, index_range<E>(exec, 0, count), array_copy<From, To>{from, to});
}

} // namespace oktopk::detail
