// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>

#include <string>

namespace oktopk::detail {

/// The range of a kernel with one 64-bit index: `index_range<E>(exec, 0, count)`. Kokkos 3.4 deduces no arguments.
template <execution_space E>
using index_range = Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>;

template <class Array, class Value>
struct array_filling {
  Array to;
  Value value;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { to[i] = value; }
};

/// Enqueues a kernel that sets `count` elements. `Array` is a pointer or a rank-1 view that the execution space
/// reaches.
template <execution_space E, class Array, class Value>
void fill_array(char const* label, E const& exec, Array const& to, std::int64_t count, Value value) {
  Kokkos::parallel_for(label, index_range<E>(exec, 0, count), array_filling<Array, Value>{to, value});
}

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

/// Names a phase of a call to a profiler: Kokkos Tools show what runs in its scope under `label`.
///
/// Costs one comparison where no tool is loaded. Regions of ranks in one process (`in_process`) interleave.
class profiling_region {
public:
  explicit profiling_region(char const* label) : active_(Kokkos::Profiling::profileLibraryLoaded()) {
    if (active_) {
      Kokkos::Profiling::pushRegion(std::string(label));
    }
  }

  profiling_region& operator=(profiling_region&&) = delete;

  ~profiling_region() {
    if (active_) {
      Kokkos::Profiling::popRegion();
    }
  }

private:
  bool active_;
};

template <gradient_value Value>
struct loss_subtraction {
  Value const* values;
  Value const* rounded;
  Value* losses;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { losses[i] = values[i] - rounded[i]; }
};

/// Enqueues losses[i] = values[i] - rounded[i]. The arrays may be the same.
template <execution_space E, gradient_value Value>
void losses_of(E const& exec, Value const* values, Value const* rounded, std::int64_t count, Value* losses) {
  Kokkos::parallel_for("oktopk::losses_of", index_range<E>(exec, 0, count),
                       loss_subtraction<Value>{values, rounded, losses});
}

} // namespace oktopk::detail
