// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/kernels.hpp>
#include <oktopk/core/write_in_order.hpp>
#include <oktopk/select/kernel/digits.hpp>
#include <oktopk/select/kernel/source.hpp>
#include <oktopk/select/kernel/workspace.hpp>

#include <algorithm>
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

/// The number of candidates that reach a magnitude. Waits for `exec`.
template <execution_space E, gradient_index Index, gradient_value Value>
std::int64_t count_at_least(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                            bits_of<Value> magnitude) {
  std::int64_t count = 0;
  Kokkos::parallel_reduce("oktopk::select::count_at_least", index_range<E>(exec, 0, from.size()),
                          reaching_count<Value>{from.values.data(), magnitude}, count);
  return count;
}

/// The size of a sample of so many values.
inline std::int64_t sample_size(std::int64_t values) {
  return std::min<std::int64_t>(values, 1 << 15);
}

template <selection_source Source>
struct sample_copying {
  Source from;
  std::int64_t stretch;
  value_of<Source>* out;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    std::uint64_t h = (static_cast<std::uint64_t>(i) + 1) * 0x9e3779b97f4a7c15U;
    h = (h ^ (h >> 31)) * 0xbf58476d1ce4e5b9U;
    out[i] = from.peek(i * stretch + static_cast<std::int64_t>((h >> 33) % static_cast<std::uint64_t>(stretch)));
  }
};

/// Copies evenly spread values, each from a place of its own stretch that a hash picks, so that no period is in step.
/// The same values give the same sample. Does not load them.
template <execution_space E, selection_source Source>
void copy_sample(E const& exec, Source const& from, std::int64_t samples, value_of<Source>* out) {
  Kokkos::parallel_for("oktopk::select::sample", index_range<E>(exec, 0, samples),
                       sample_copying<Source>{from, from.size() / samples, out});
}

/// The candidates in a bracket, in order; no more than fit are written.
template <gradient_value Value>
struct inside_items {
  static constexpr bool single = true;

  Value const* values;
  kth_bracket<Value> bracket;
  std::int64_t* out;

  KOKKOS_INLINE_FUNCTION std::int64_t count(std::int64_t i) const {
    return bracket.holds(magnitude_bits(values[i])) ? 1 : 0;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t write(std::int64_t i, std::int64_t place) const {
    if (place < bracket.inside) {
      out[place] = static_cast<std::int64_t>(magnitude_bits(values[i]));
    }
    return 1;
  }
};

/// Writes the patterns of this rank's candidates in the bracket to the host's numbers, in the order of their indices;
/// never more of them than `bracket.inside`. Waits for `exec`.
template <execution_space E, gradient_index Index, gradient_value Value>
void list_inside(E const& exec, candidates<Index, Value, typename E::memory_space> from, kth_bracket<Value> bracket,
                 selection_workspace<Index, Value, E>& workspace) {
  workspace.numbers.reserve(exec, bracket.inside); // allocates nothing where the bracket was made for that room
  workspace.on_device.order.reserve(exec, from.size());
  enqueue_in_order("oktopk::select::list_inside", exec, from.size(),
                   inside_items<Value>{from.values.data(), bracket, workspace.numbers.device().data()},
                   workspace.on_device.order);
  workspace.numbers.to_host(exec, bracket.inside, "oktopk::select::list_inside");
}

} // namespace oktopk::detail
