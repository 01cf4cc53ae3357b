// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/kernels.hpp>
#include <oktopk/core/sparse.hpp>
#include <oktopk/select/kernel/magnitude_mask.hpp>

#include <concepts>
#include <cstdint>

namespace oktopk {

namespace detail {

template <class Source>
struct source_loading {
  Source source;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { source.load(i); }
};

template <class Source>
using index_of = typename Source::index_type;

template <class Source>
using value_of = typename Source::value_type;

} // namespace detail

/// The values to select from, and the index each of them stands for.
///
/// A local selection reads the whole accumulator, where position and index are one (`indices` empty); a global one
/// reads the sums of this rank's region, which have their indices beside them.
template <gradient_index Index, gradient_value Value, class MemorySpace>
struct candidates {
  using index_type = Index;
  using value_type = Value;

  array_ref<Value const, MemorySpace> values;
  array_ref<Index const, MemorySpace> indices;

  candidates() = default;
  candidates(array_ref<Value const, MemorySpace> some_values, array_ref<Index const, MemorySpace> their_indices)
      : values(some_values), indices(their_indices) {}
  explicit candidates(sparse_ref<Index, Value, MemorySpace> entries)
      : values(entries.values), indices(entries.indices) {}

  std::int64_t size() const { return static_cast<std::int64_t>(values.extent(0)); }

  KOKKOS_INLINE_FUNCTION Index index(std::int64_t position) const {
    return indices.data() == nullptr ? static_cast<Index>(position) : indices.data()[position];
  }

  KOKKOS_INLINE_FUNCTION Value peek(std::int64_t position) const { return values.data()[position]; }
  KOKKOS_INLINE_FUNCTION Value load(std::int64_t position) const { return values.data()[position]; }
  KOKKOS_INLINE_FUNCTION Value loaded(std::int64_t position) const { return values.data()[position]; }

  KOKKOS_INLINE_FUNCTION void load_blocks(std::int64_t begin, int count, detail::bits_of<Value> reach,
                                          std::uint64_t* masks) const {
    detail::magnitude_masks(values.data() + begin, count, reach, masks);
  }

  candidates materialized() const { return *this; }

  template <execution_space E>
  void materialize(E const&) const {}
};

/// An accumulator in the making: `accumulator = residual + rate * gradient`, formed while it is being selected from
/// (Algorithm 2, lines 4 and 5, in one pass over memory).
///
/// The three arrays have one length and do not overlap. Whoever gets this writes the whole accumulator.
///
/// The compiler chooses whether product and sum are rounded once or twice: flags that allow fused multiply-add, as
/// `-march=native` does, may change the last bit of an accumulator, and `-ffp-contract=off` forbids it. So results are
/// the same to the bit for the same build, not for builds with other flags; all ranks must run one build.
template <gradient_index Index, gradient_value Value, class MemorySpace>
struct accumulation {
  using index_type = Index;
  using value_type = Value;

  array_ref<Value const, MemorySpace> residual;
  array_ref<Value const, MemorySpace> gradient;
  array_ref<Value, MemorySpace> accumulator;
  Value rate = 0;

  std::int64_t size() const { return static_cast<std::int64_t>(accumulator.extent(0)); }

  KOKKOS_INLINE_FUNCTION Index index(std::int64_t position) const { return static_cast<Index>(position); }

  KOKKOS_INLINE_FUNCTION Value peek(std::int64_t position) const {
    return residual.data()[position] + rate * gradient.data()[position];
  }

  KOKKOS_INLINE_FUNCTION Value load(std::int64_t position) const {
    return accumulator.data()[position] = peek(position);
  }

  KOKKOS_INLINE_FUNCTION Value loaded(std::int64_t position) const { return accumulator.data()[position]; }

  KOKKOS_INLINE_FUNCTION void load_blocks(std::int64_t begin, int count, detail::bits_of<Value> reach,
                                          std::uint64_t* masks) const {
    detail::accumulate_masks<Value>(residual.data() + begin, gradient.data() + begin, rate, accumulator.data() + begin,
                                    count, reach, masks);
  }

  candidates<Index, Value, MemorySpace> materialized() const { return {accumulator, {}}; }

  /// Enqueues the accumulation by itself, where nothing is selected in the same pass.
  template <execution_space E>
  void materialize(E const& exec) const {
    Kokkos::parallel_for("oktopk::select::accumulate", detail::index_range<E>(exec, 0, size()),
                         detail::source_loading<accumulation>{*this});
  }
};

/// The values that a selection reads: they lie in memory, or are formed as they are read.
///
/// Positions run from 0 to `size()`. 2 to 5 are called from kernels.
///
/// 1. `size()` — the number of values.
/// 2. `index(i)` — the index that the value at a position stands for; indices ascend.
/// 3. `peek(i)` — the value at a position, at any time; changes nothing.
/// 4. `load(i)` — the same value, and leaves it in memory. `load_blocks(i, count, reach, masks)` — loads
///    `count` blocks of 64 values from i on, and tells in a mask each which have `magnitude_bits` of at least `reach`:
///    value b of a block in bit b.
/// 5. `loaded(i)` — a value that was loaded.
/// 6. `materialize(exec)` — loads all values. `materialized()` — them as candidates in memory, once all were loaded.
template <class S>
concept selection_source = gradient_index<typename S::index_type> && gradient_value<typename S::value_type> &&
                           requires(S const& source, std::int64_t position, std::uint64_t* masks) {
                             { source.size() } -> std::same_as<std::int64_t>;
                             { source.index(position) } -> std::same_as<typename S::index_type>;
                             { source.peek(position) } -> std::same_as<typename S::value_type>;
                             { source.load(position) } -> std::same_as<typename S::value_type>;
                             { source.loaded(position) } -> std::same_as<typename S::value_type>;
                             {
                               source.load_blocks(position, 1, detail::bits_of<typename S::value_type>{}, masks)
                             } -> std::same_as<void>;
                             source.materialized();
                           };

} // namespace oktopk
