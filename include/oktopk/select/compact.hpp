// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/detail/kokkos_ext/bits.hpp>
#include <oktopk/select/concept.hpp>

#include <cstdint>
#include <limits>

namespace oktopk {

/// Which candidates a compaction keeps: magnitudes above the threshold, and ties with it up to a position.
template <gradient_value Value>
struct keep {
  detail::bits_of<Value> threshold = 0;                             ///< pattern of the magnitude
  std::int64_t last_tie = std::numeric_limits<std::int64_t>::max(); ///< ties at later positions are left out

  KOKKOS_INLINE_FUNCTION bool operator()(detail::bits_of<Value> magnitude, std::int64_t position) const {
    return magnitude > threshold || (magnitude == threshold && position <= last_tie);
  }
};

/// Writes the kept candidates into the workspace in ascending order and gives their number.
///
/// Entries beyond the workspace's room are counted and not written: the caller compares, makes room and calls again.
/// Reads the candidates once. Waits for `exec`.
template <execution_space E, gradient_index Index, gradient_value Value>
std::int64_t compact(E const& exec, candidates<Index, Value, typename E::memory_space> from, keep<Value> kept,
                     selection_workspace<Index, Value, E> const& workspace) {
  Index* const indices = workspace.indices.data();
  Value* const values = workspace.values.data();
  std::int64_t const room = workspace.indices.capacity();
  std::int64_t count = 0;
  Kokkos::parallel_scan(
      "oktopk::select::compact", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec, 0, from.size()),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t & position, bool final) {
        Value const x = from.values.data()[i];
        if (kept(detail::magnitude_bits(x), i)) {
          if (final && position < room) {
            indices[position] = from.index(i);
            values[position] = x;
          }
          position += 1;
        }
      },
      count);
  return count;
}

/// The position of the tie that is the `quota`-th among the candidates of that magnitude, counted from 1.
///
/// Reads the candidates once. Waits for `exec`. There must be that many.
template <execution_space E, gradient_index Index, gradient_value Value>
std::int64_t position_of_tie(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                             detail::bits_of<Value> magnitude, std::int64_t quota,
                             selection_workspace<Index, Value, E>& workspace) {
  workspace.numbers.reserve(exec, 1);
  std::int64_t* const found = workspace.numbers.device().data();
  Kokkos::parallel_scan(
      "oktopk::select::position_of_tie", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec, 0, from.size()),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t & ties, bool final) {
        if (detail::magnitude_bits(from.values.data()[i]) == magnitude) {
          ties += 1;
          if (final && ties == quota) {
            *found = i;
          }
        }
      });
  workspace.numbers.to_host(exec, 1, "oktopk::select::position_of_tie");
  return *workspace.numbers.host();
}

/// The position of the first value that is NaN or infinite; the number of values when all are finite.
///
/// Reads the values once. Waits for `exec`.
template <execution_space E, gradient_value Value>
std::int64_t first_non_finite(E const& exec, array_ref<Value const, typename E::memory_space> values) {
  auto const size = static_cast<std::int64_t>(values.extent(0));
  std::int64_t first = size;
  Kokkos::parallel_reduce(
      "oktopk::select::first_non_finite", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec, 0, size),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t & lowest) {
        if (detail::magnitude_bits(values(i)) >= detail::infinity_bits<Value> && i < lowest) {
          lowest = i;
        }
      },
      Kokkos::Min<std::int64_t>(first));
  return first < size ? first : size;
}

} // namespace oktopk
