// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/core/sparse.hpp>
#include <oktopk/core/write_in_order.hpp>
#include <oktopk/select/kernel/magnitude_mask.hpp>
#include <oktopk/sparse/arithmetic.hpp>

#include <limits>
#include <utility>
#include <vector>

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

} // namespace detail

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

namespace oktopk::detail {

// The buffers of a selection.

/// Neighbours that one warp looks at, as positions in an array.
struct candidate_run {
  std::int64_t begin = 0;
  std::int64_t size = 0;
};

/// More entries than there can be.
inline constexpr std::int64_t every_entry = std::numeric_limits<std::int64_t>::max();

/// The knowledge of a device's kernels of a selection, so that none must ask the host. All zero before, and after.
struct selection_record {
  std::int64_t arrived = 0;    ///< teams of the running kernel
  std::int64_t count = 0;      ///< candidates that pass the first filter
  std::int64_t wanted = 0;     ///< of those that share the digits found, how many belong to the k largest
  std::int64_t prefix = 0;     ///< the digits found, of the place in the range
  std::int64_t below_last = 0; ///< 1 where the place is not the last one of the range
  std::int64_t kept = 0;       ///< entries of the selection
  std::int64_t not_finite = 0; ///< `every_entry` less the least index of such an entry of the selection
};

/// The buffers of kernels on a device for each other and the host; empty where there is no device.
template <execution_space E>
struct device_selection_workspace {
  using memory_space = typename E::memory_space;

  buffer<candidate_run, memory_space> pieces{"oktopk::select::pieces"};
  buffer<std::int64_t, memory_space> numbers{"oktopk::select::piece_numbers"}; ///< two a piece
  buffer<std::int64_t, memory_space> sums{"oktopk::select::sums", true};       ///< of a digit; zero between kernels
  buffer<std::uint32_t, memory_space> sums_u32{"oktopk::select::sums", true};  ///< where they are below 2^32
  buffer<selection_record, memory_space> record{"oktopk::select::record", true};
  shared_numbers<selection_record, E> host_copy{"oktopk::select::told"};
  order_workspace<E> order;

  void reserve(E const& exec, std::int64_t most_pieces) {
    pieces.reserve(exec, most_pieces);
    numbers.reserve(exec, 2 * most_pieces);
    record.reserve(exec, 1);
    host_copy.reserve(exec, 1);
  }
};

/// The buffers of one selector, used again in each of its selections.
///
/// 1. The result of a selection lies in it until the next selection in the same workspace.
/// 2. It grows and never shrinks: selections of like sizes allocate nothing after the first few.
/// 3. It belongs to one execution-space instance and one selection at a time.
template <gradient_index Index, gradient_value Value, execution_space E>
struct selection_workspace {
  using memory_space = typename E::memory_space;
  using entries_type = sparse_ref<Index, Value, memory_space>;

  buffer<Index, memory_space> indices{"oktopk::select::indices"}; ///< of the entries that are being written
  buffer<Value, memory_space> values{"oktopk::select::values"};
  buffer<Index, memory_space> previous_indices{"oktopk::select::indices"}; ///< of the entries that are read from
  buffer<Value, memory_space> previous_values{"oktopk::select::values"};
  buffer<Index, memory_space> chunk_indices{"oktopk::select::chunk_indices"}; ///< what each thread wrote, to be joined
  buffer<Value, memory_space> chunk_values{"oktopk::select::chunk_values"};
  buffer<std::int64_t, memory_space> chunk_counts{"oktopk::select::chunk_counts"};
  shared_numbers<std::int64_t, E> numbers{"oktopk::select::numbers"}; ///< from kernels to the host
  device_selection_workspace<E> on_device;
  buffer<std::int64_t, memory_space> histograms{"oktopk::select::histograms"};
  std::vector<std::int64_t> row;       ///< what this rank tells the others of its undecided candidates
  std::vector<std::int64_t> undecided; ///< the magnitude patterns that all ranks have told

  /// Makes room for the entries of a selection; may lose those that are there.
  void reserve(E const& exec, std::int64_t count) {
    indices.reserve(exec, count);
    values.reserve(exec, count);
  }

  entries_type entries(std::int64_t count) const { return {indices.data(), values.data(), count}; }

  /// Makes the entries that were written the previous ones, so that a selection from them has room to write.
  void swap_buffers() {
    std::swap(indices, previous_indices);
    std::swap(values, previous_values);
  }

  entries_type previous(std::int64_t count) const { return {previous_indices.data(), previous_values.data(), count}; }
};

template <class Source, execution_space E>
using workspace_for = selection_workspace<typename Source::index_type, typename Source::value_type, E>;

} // namespace oktopk::detail
