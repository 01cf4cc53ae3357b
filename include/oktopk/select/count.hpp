// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/memory.hpp>
#include <oktopk/core/kokkos_ext/range.hpp>
#include <oktopk/select/concept.hpp>

#include <cstdint>

// Questions about candidates that one read of them answers.
namespace oktopk {

/// How many candidates reach a magnitude. Waits for `exec`.
template <execution_space E, gradient_index Index, gradient_value Value>
std::int64_t count_at_least(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                            detail::bits_of<Value> magnitude) {
  std::int64_t count = 0;
  Kokkos::parallel_reduce(
      "oktopk::select::count_at_least", detail::index_range<E>(exec, 0, from.size()),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t & sum) {
        sum += detail::magnitude_bits(from.values.data()[i]) >= magnitude ? 1 : 0;
      },
      count);
  return count;
}

namespace detail {

/// On a CPU: looks no further than the tie is.
template <execution_space E, gradient_index Index, gradient_value Value>
void find_tie_on_host(E const& exec, candidates<Index, Value, typename E::memory_space> from, bits_of<Value> magnitude,
                      std::int64_t quota, std::int64_t* found) {
  std::int64_t const size = from.size();
  Kokkos::parallel_for(
      "oktopk::select::find_tie", detail::index_range<E>(exec, 0, 1), KOKKOS_LAMBDA(std::int64_t) {
        std::int64_t ties = 0;
        for (std::int64_t i = 0; i < size && ties < quota; ++i) {
          if (magnitude_bits(from.values.data()[i]) == magnitude) {
            ties += 1;
            *found = i;
          }
        }
      });
}

/// On a device: one scan.
template <execution_space E, gradient_index Index, gradient_value Value>
void find_tie_on_device(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                        bits_of<Value> magnitude, std::int64_t quota, std::int64_t* found) {
  Kokkos::parallel_scan(
      "oktopk::select::find_tie", detail::index_range<E>(exec, 0, from.size()),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t & ties, bool final) {
        if (magnitude_bits(from.values.data()[i]) == magnitude) {
          ties += 1;
          if (final && ties == quota) {
            *found = i;
          }
        }
      });
}

} // namespace detail

/// The position of the tie that is the `quota`-th among the candidates of that magnitude, counted from 1.
///
/// Waits for `exec`. There must be that many.
template <execution_space E, gradient_index Index, gradient_value Value>
std::int64_t position_of_tie(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                             detail::bits_of<Value> magnitude, std::int64_t quota,
                             selection_workspace<Index, Value, E>& workspace) {
  workspace.numbers.reserve(exec, 1);
  std::int64_t* const found = workspace.numbers.device().data();
  if constexpr (detail::is_device<E>) {
    detail::find_tie_on_device(exec, from, magnitude, quota, found);
  } else {
    detail::find_tie_on_host(exec, from, magnitude, quota, found);
  }
  workspace.numbers.to_host(exec, 1, "oktopk::select::position_of_tie");
  return *workspace.numbers.host();
}

namespace detail {

/// On a device: one value a thread.
template <execution_space E, gradient_value Value>
std::int64_t first_non_finite_on_device(E const& exec, array_ref<Value const, typename E::memory_space> values) {
  auto const size = static_cast<std::int64_t>(values.extent(0));
  std::int64_t first = size;
  Kokkos::parallel_reduce(
      "oktopk::select::first_non_finite", detail::index_range<E>(exec, 0, size),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t & lowest) {
        if (magnitude_bits(values(i)) >= infinity_bits<Value> && i < lowest) {
          lowest = i;
        }
      },
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
      "oktopk::select::first_non_finite", detail::index_range<E>(exec, 0, (size + width - 1) / width),
      KOKKOS_LAMBDA(std::int64_t block, std::int64_t & lowest) {
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

} // namespace detail

/// The position of the first value that is NaN or infinite; the number of values when all are finite.
///
/// Reads the values once. Waits for `exec`.
template <execution_space E, gradient_value Value>
std::int64_t first_non_finite(E const& exec, array_ref<Value const, typename E::memory_space> values) {
  auto const size = static_cast<std::int64_t>(values.extent(0));
  std::int64_t first = size;
  if constexpr (detail::is_device<E>) {
    first = detail::first_non_finite_on_device<E, Value>(exec, values);
  } else {
    first = detail::first_non_finite_on_host<E, Value>(exec, values);
  }
  return first < size ? first : size;
}

} // namespace oktopk
