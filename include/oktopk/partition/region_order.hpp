// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/core/write_in_order.hpp>
#include <oktopk/partition/concept.hpp>
#include <oktopk/select/kernel/source.hpp>
#include <oktopk/sparse/arithmetic.hpp>

#include <algorithm>
#include <cstdint>
#include <span>

namespace oktopk::detail {

/// Blocks of a gradient, dealt out to ranks in turn, and the order in which those of a rank follow each other.
struct dealt_blocks {
  std::int64_t length;
  std::int64_t ranks;
  std::int64_t each; ///< blocks of a rank

  dealt_blocks(std::int64_t of_length, int for_ranks, int asked)
      : length(of_length), ranks(for_ranks), each(std::clamp<std::int64_t>(of_length / for_ranks, 1, asked)) {}

  std::int64_t count() const { return ranks * each; }
  std::int64_t begin(std::int64_t block) const { return even_boundary(length, count(), block); }
  /// The block at a place of the order: those of a rank are `ranks` apart in the gradient.
  std::int64_t at(std::int64_t place) const { return place % each * ranks + place / each; }
};

/// The blocks of a list of entries, one after the other in another order.
template <gradient_index Index, gradient_value Value, class MemorySpace>
struct blocks_in_order {
  static constexpr bool single = false;

  sparse_ref<Index, Value, MemorySpace> entries;
  std::int64_t const* positions; ///< of the first entry of each block, and the end
  std::int64_t const* from;      ///< the first index of each block in the order of the list
  std::int64_t const* to;        ///< and in the other one, by place
  std::int64_t const* block_at;  ///< the block at each place of the other order
  Index* indices;
  Value* values;

  KOKKOS_INLINE_FUNCTION std::int64_t count(std::int64_t place) const {
    std::int64_t const block = block_at[place];
    return positions[block + 1] - positions[block];
  }

  KOKKOS_INLINE_FUNCTION std::int64_t write(std::int64_t place, std::int64_t position) const {
    std::int64_t const block = block_at[place];
    std::int64_t const shift = to[place] - from[block];
    for (std::int64_t i = positions[block]; i < positions[block + 1]; ++i, ++position) {
      indices[position] = static_cast<Index>(entries.indices(i) + shift);
      values[position] = entries.values(i);
    }
    return positions[block + 1] - positions[block];
  }
};

/// An order of the blocks of a vector, for lists of its entries: brings their blocks, and so their indices, into this
/// order and back. Reads a list once.
template <execution_space E, gradient_index Index, gradient_value Value>
class block_order {
public:
  using entries_type = sparse_ref<Index, Value, typename E::memory_space>;
  using workspace_type = selection_workspace<Index, Value, E>;

  /// `begin(i)` is the first index of block i, `block_at(place)` the block at a place of the order.
  template <class Begin, class BlockAt>
  void plan(E const& exec, std::int64_t blocks, Begin const& begin, BlockAt const& block_at) {
    blocks_ = blocks;
    for (order* const each : {&given_, &wanted_}) {
      each->begins.reserve(exec, blocks + 1);
      each->other.reserve(exec, blocks);
    }
    positions_.reserve(exec, blocks + 1);
    std::int64_t end = begin(0);
    for (std::int64_t place = 0; place < blocks; ++place) {
      std::int64_t const block = block_at(place);
      given_.begins.host()[place] = begin(place);
      given_.other.host()[block] = place;
      wanted_.begins.host()[place] = end;
      wanted_.other.host()[place] = block;
      end += begin(block + 1) - begin(block);
    }
    given_.begins.host()[blocks] = begin(blocks);
    wanted_.begins.host()[blocks] = end;
    for (order* const each : {&given_, &wanted_}) {
      each->begins.to_device(exec, blocks + 1);
      each->other.to_device(exec, blocks);
    }
  }

  /// Where the blocks begin in the order, by place, and the end.
  std::span<std::int64_t const> begins() const {
    return {wanted_.begins.host(), static_cast<std::size_t>(blocks_) + 1};
  }

  /// A list with its blocks in the order. It lies in `out`.
  entries_type arranged(E const& exec, entries_type const& list, workspace_type& out) {
    return moved(exec, list, given_, wanted_, out);
  }

  /// And back.
  entries_type restored(E const& exec, entries_type const& list, workspace_type& out) {
    return moved(exec, list, wanted_, given_, out);
  }

  std::int64_t restored(std::int64_t index) const {
    auto const place = std::ranges::upper_bound(begins(), index) - begins().begin() - 1;
    return given_.begins.host()[wanted_.other.host()[place]] + index - begins()[static_cast<std::size_t>(place)];
  }

private:
  // The blocks in an order, by place.
  struct order {
    shared_numbers<std::int64_t, E> begins{"oktopk::block_order::begins"};
    shared_numbers<std::int64_t, E> other{"oktopk::block_order::other"}; ///< their places in the other order
  };

  entries_type moved(E const& exec, entries_type const& list, order const& from, order const& to, workspace_type& out) {
    using space = typename E::memory_space;
    enqueue_copy<space, space>(exec, positions_.data(), from.begins.device().data(), blocks_ + 1);
    Kokkos::parallel_for("oktopk::block_order::positions", index_range<E>(exec, 0, blocks_ + 1),
                         boundary_search<Index>{list.indices.data(), list.size(), positions_.data()});
    out.reserve(exec, list.size());
    enqueue_in_order("oktopk::block_order::move", exec, blocks_,
                     blocks_in_order<Index, Value, space>{list, positions_.data(), from.begins.device().data(),
                                                          to.begins.device().data(), to.other.device().data(),
                                                          out.indices.data(), out.values.data()});
    return out.entries(list.size());
  }

  std::int64_t blocks_ = 0;
  order given_;
  order wanted_;
  buffer<std::int64_t, typename E::memory_space> positions_{"oktopk::block_order::positions"};
};

/// Lists in the order of the regions, in which each region is contiguous, and back in that of the gradient: the same
/// order if the partitioner deals out no blocks.
template <execution_space E, gradient_index Index, gradient_value Value, class Partitioner>
class region_order {
public:
  using entries_type = sparse_ref<Index, Value, typename E::memory_space>;

  region_order(Partitioner const&, std::int64_t, int) {}

  static entries_type selection(E const&, entries_type const& list) { return list; }
  static entries_type result(E const&, entries_type const& list) { return list; }
  static entries_type losses(E const&, entries_type const& list) { return list; }
  template <class Call>
  static void translate_overflow(Call const&) {}
};

template <execution_space E, gradient_index Index, gradient_value Value, class Partitioner>
  requires deals_blocks<Partitioner>
class region_order<E, Index, Value, Partitioner> {
public:
  using entries_type = sparse_ref<Index, Value, typename E::memory_space>;
  using workspace_type = selection_workspace<Index, Value, E>;

  region_order(Partitioner const& how, std::int64_t length, int ranks) : dealt_(length, ranks, how.blocks()) {}

  /// Valid until the next call of the same function.
  entries_type selection(E const& exec, entries_type const& in_gradient) {
    if (is_gradient_order()) {
      return in_gradient;
    }
    if (!is_planned_) {
      order_.plan(
          exec, dealt_.count(), [this](std::int64_t block) { return dealt_.begin(block); },
          [this](std::int64_t place) { return dealt_.at(place); });
      is_planned_ = true;
    }
    return order_.arranged(exec, in_gradient, selection_);
  }
  entries_type result(E const& exec, entries_type const& in_regions) { return back(exec, in_regions, result_); }
  entries_type losses(E const& exec, entries_type const& in_regions) { return back(exec, in_regions, losses_); }

  /// An overflow that was found in the order of regions names an index of the gradient.
  template <class Call>
  void translate_overflow(Call& call) const {
    fault_report overflow = call.faults.report();
    if (is_gradient_order() || !overflow || overflow.subject != fault_subject::sum) {
      return;
    }
    overflow.detail = order_.restored(overflow.detail);
    call.faults = {};
    call.note(overflow);
  }

private:
  bool is_gradient_order() const { return dealt_.each == 1; }

  entries_type back(E const& exec, entries_type const& in_regions, workspace_type& out) {
    return is_gradient_order() ? in_regions : order_.restored(exec, in_regions, out);
  }

  dealt_blocks dealt_;
  bool is_planned_ = false;
  block_order<E, Index, Value> order_;
  workspace_type selection_;
  workspace_type result_;
  workspace_type losses_;
};

} // namespace oktopk::detail
