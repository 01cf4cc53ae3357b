// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/kernels.hpp>
#include <oktopk/core/kokkos_ext/memory.hpp>
#include <oktopk/core/sparse.hpp>

#include <cstdint>

namespace oktopk::detail {

template <gradient_value Value, class MemorySpace>
struct non_finite_search {
  array_ref<Value const, MemorySpace> values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::int64_t& lowest) const {
    if (magnitude_bits(values(i)) >= infinity_bits<Value> && i < lowest) {
      lowest = i;
    }
  }
};

/// On a device: one value a thread.
template <execution_space E, gradient_value Value>
std::int64_t first_non_finite_on_device(E const& exec, array_ref<Value const, typename E::memory_space> values) {
  auto const size = static_cast<std::int64_t>(values.extent(0));
  std::int64_t first = size;
  non_finite_search<Value, typename E::memory_space> const kernel{values};
  Kokkos::parallel_reduce("oktopk::select::first_non_finite", index_range<E>(exec, 0, size), kernel,
                          Kokkos::Min<std::int64_t>(first));
  return first;
}

/// On a CPU: the largest magnitude of a block, which takes a few vector instructions, and a search where that is not
/// finite.
template <execution_space E, gradient_value Value>
std::int64_t first_non_finite_on_host(E const& exec, array_ref<Value const, typename E::memory_space> values) {
  constexpr std::int64_t width = 1024;
  auto const size = static_cast<std::int64_t>(values.extent(0));
  Value const* const data = values.data();
  std::int64_t first = size;
  Kokkos::parallel_reduce(
      "oktopk::select::first_non_finite", index_range<E>(exec, 0, (size + width - 1) / width),
      [=](std::int64_t block, std::int64_t& lowest) {
        std::int64_t const begin = block * width;
        std::int64_t const end = begin + width < size ? begin + width : size;
        signed_bits_of<Value> largest = 0;
        for (std::int64_t i = begin; i < end; ++i) {
          auto const magnitude = static_cast<signed_bits_of<Value>>(magnitude_bits(data[i]));
          largest = magnitude > largest ? magnitude : largest;
        }
        if (static_cast<bits_of<Value>>(largest) < infinity_bits<Value> || begin > lowest) {
          return;
        }
        for (std::int64_t i = begin; i < end && i < lowest; ++i) {
          if (magnitude_bits(data[i]) >= infinity_bits<Value>) {
            lowest = i;
          }
        }
      },
      Kokkos::Min<std::int64_t>(first));
  return first;
}

/// The position of the first value that is NaN or infinite; the number of values when all are finite.
///
/// Reads the values once. Waits for `exec`.
template <execution_space E, gradient_value Value>
std::int64_t first_non_finite(E const& exec, array_ref<Value const, typename E::memory_space> values) {
  auto const size = static_cast<std::int64_t>(values.extent(0));
  std::int64_t first = size;
  if constexpr (is_device<E>) {
    first = first_non_finite_on_device<E, Value>(exec, values);
  } else {
    first = first_non_finite_on_host<E, Value>(exec, values);
  }
  return first < size ? first : size;
}

} // namespace oktopk::detail
