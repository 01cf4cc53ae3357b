// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/write_in_order.hpp>

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace oktopk::detail {

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

} // namespace oktopk::detail

namespace oktopk::detail {

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
  detail::shared_numbers<std::int64_t, E> numbers{"oktopk::select::numbers"}; ///< from kernels to the host
  detail::device_selection_workspace<E> on_device;
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
