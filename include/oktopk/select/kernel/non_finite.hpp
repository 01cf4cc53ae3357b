// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/sparse/positions.hpp>

#include <cstdint>

namespace oktopk::detail {

/// A device looks at one value a thread. A CPU takes the largest magnitude of a block, which takes a few vector
/// instructions, and searches where that is not finite.
template <execution_space E, gradient_value Value>
struct non_finite_search {
  static constexpr std::int64_t width = is_device<E> ? 1 : 1024;

  Value const* values;
  std::int64_t size;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block, std::int64_t& lowest) const {
    std::int64_t const begin = block * width;
    std::int64_t const end = begin + width < size ? begin + width : size;
    signed_bits_of<Value> largest = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      auto const magnitude = static_cast<signed_bits_of<Value>>(magnitude_bits(values[i]));
      largest = magnitude > largest ? magnitude : largest;
    }
    if (static_cast<bits_of<Value>>(largest) >= infinity_bits<Value>) {
      std::int64_t i = begin;
      while (magnitude_bits(values[i]) < infinity_bits<Value>) {
        i += 1;
      }
      lowest = i < lowest ? i : lowest;
    }
  }
};

/// The position of the first value that is NaN or infinite; the number of values when all are finite.
///
/// Reads the values once. Waits for `exec`.
template <execution_space E, gradient_value Value>
std::int64_t first_non_finite(E const& exec, array_ref<Value const, typename E::memory_space> values) {
  using search = non_finite_search<E, Value>;
  auto const size = static_cast<std::int64_t>(values.extent(0));
  std::int64_t first = size;
  Kokkos::parallel_reduce("oktopk::select::first_non_finite",
                          index_range<E>(exec, 0, (size + search::width - 1) / search::width),
                          search{values.data(), size}, Kokkos::Min<std::int64_t>(first));
  return first < size ? first : size;
}

/// One index of a list, on the host. Waits for `exec`.
template <execution_space E, gradient_index Index>
std::int64_t index_at(E const& exec, array_ref<Index const, typename E::memory_space> indices, std::int64_t position) {
  Index index = 0;
  Kokkos::deep_copy(exec, array_ref<Index, Kokkos::HostSpace>(&index, 1),
                    array_ref<Index const, typename E::memory_space>(indices.data() + position, 1));
  fence(exec, "oktopk::index_at");
  return index;
}

/// A fault where some entry is not finite: of values, what was put in; of sums, that they overflowed. Waits for `exec`.
template <execution_space E, gradient_index Index, gradient_value Value>
fault_report non_finite_in(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries,
                           fault_subject subject) {
  std::int64_t const bad = first_non_finite<E, Value>(exec, entries.values);
  return bad == entries.size()
             ? fault_report{}
             : fault_report{fault::non_finite, index_at<E, Index>(exec, entries.indices, bad), subject};
}

template <gradient_index Index, gradient_value Value, class MemorySpace>
struct residual_overflow_search {
  array_ref<Value const, MemorySpace> accumulator;
  array_ref<Index const, MemorySpace> contributed;
  std::int64_t cleared; ///< how many are contributed
  sparse_ref<Index, Value, MemorySpace> returned;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::int64_t& lowest) const {
    Index const index = returned.indices(i);
    std::int64_t const place = lower_bound(contributed.data(), cleared, static_cast<std::int64_t>(index));
    bool const is_cleared = place < cleared && contributed(place) == index;
    Value const kept = is_cleared ? Value(0) : accumulator(static_cast<std::int64_t>(index));
    if (magnitude_bits(static_cast<Value>(kept + returned.values(i))) >= infinity_bits<Value> && i < lowest) {
      lowest = i;
    }
  }
};

/// A fault where a residual overflows: the accumulator without the contributed entries, which are cleared, plus what is
/// returned. Indices of both lists ascend. Waits for `exec`.
template <execution_space E, gradient_index Index, gradient_value Value>
fault_report overflow_of_residual(E const& exec, array_ref<Value const, typename E::memory_space> accumulator,
                                  array_ref<Index const, typename E::memory_space> contributed,
                                  sparse_ref<Index, Value, typename E::memory_space> returned) {
  std::int64_t const size = returned.size();
  residual_overflow_search<Index, Value, typename E::memory_space> const kernel{
      accumulator, contributed, static_cast<std::int64_t>(contributed.extent(0)), returned};
  std::int64_t first = size;
  Kokkos::parallel_reduce("oktopk::overflow_of_residual", index_range<E>(exec, 0, size), kernel,
                          Kokkos::Min<std::int64_t>(first));
  return first >= size ? fault_report{}
                       : fault_report{fault::non_finite, index_at<E, Index>(exec, returned.indices, first),
                                      fault_subject::returned};
}

} // namespace oktopk::detail
