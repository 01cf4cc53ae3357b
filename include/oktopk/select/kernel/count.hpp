// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/kernels.hpp>
#include <oktopk/core/kokkos_ext/memory.hpp>
#include <oktopk/select/source.hpp>
#include <oktopk/select/workspace.hpp>

#include <cstdint>

// Questions about candidates that one read of them answers.
namespace oktopk::detail {

template <gradient_value Value>
struct reaching_count {
  Value const* values;
  bits_of<Value> magnitude;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::int64_t& sum) const {
    sum += magnitude_bits(values[i]) >= magnitude ? 1 : 0;
  }
};

/// How many candidates reach a magnitude. Waits for `exec`.
template <execution_space E, gradient_index Index, gradient_value Value>
std::int64_t count_at_least(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                            bits_of<Value> magnitude) {
  std::int64_t count = 0;
  Kokkos::parallel_reduce("oktopk::select::count_at_least", index_range<E>(exec, 0, from.size()),
                          reaching_count<Value>{from.values.data(), magnitude}, count);
  return count;
}

/// On a CPU: looks no further than the tie is.
template <execution_space E, gradient_index Index, gradient_value Value>
void find_tie_on_host(E const& exec, candidates<Index, Value, typename E::memory_space> from, bits_of<Value> magnitude,
                      std::int64_t quota, std::int64_t* found) {
  std::int64_t const size = from.size();
  Kokkos::parallel_for("oktopk::select::find_tie", index_range<E>(exec, 0, 1), [=](std::int64_t) {
    std::int64_t ties = 0;
    for (std::int64_t i = 0; i < size && ties < quota; ++i) {
      if (magnitude_bits(from.values.data()[i]) == magnitude) {
        ties += 1;
        *found = i;
      }
    }
  });
}

template <gradient_value Value>
struct tie_search {
  Value const* values;
  bits_of<Value> magnitude;
  std::int64_t quota;
  std::int64_t* found;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::int64_t& ties, bool final) const {
    if (magnitude_bits(values[i]) == magnitude) {
      ties += 1;
      if (final && ties == quota) {
        *found = i;
      }
    }
  }
};

/// On a device: one scan.
template <execution_space E, gradient_index Index, gradient_value Value>
void find_tie_on_device(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                        bits_of<Value> magnitude, std::int64_t quota, std::int64_t* found) {
  Kokkos::parallel_scan("oktopk::select::find_tie", index_range<E>(exec, 0, from.size()),
                        tie_search<Value>{from.values.data(), magnitude, quota, found});
}

/// The position of the tie that is the `quota`-th among the candidates of that magnitude, counted from 1.
///
/// Waits for `exec`. There must be that many.
template <execution_space E, gradient_index Index, gradient_value Value>
std::int64_t position_of_tie(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                             bits_of<Value> magnitude, std::int64_t quota,
                             selection_workspace<Index, Value, E>& workspace) {
  workspace.numbers.reserve(exec, 1);
  std::int64_t* const found = workspace.numbers.device().data();
  if constexpr (is_device<E>) {
    find_tie_on_device(exec, from, magnitude, quota, found);
  } else {
    find_tie_on_host(exec, from, magnitude, quota, found);
  }
  workspace.numbers.to_host(exec, 1, "oktopk::select::position_of_tie");
  return *workspace.numbers.host();
}

} // namespace oktopk::detail
