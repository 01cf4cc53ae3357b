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

namespace oktopk::detail {

/// The block at a place, where blocks at a distance of `stride` follow each other, `run` of them.
KOKKOS_INLINE_FUNCTION std::int64_t strided_block(std::int64_t place, std::int64_t run, std::int64_t stride) {
  return place % run * stride + place / run;
}

/// Blocks of a gradient, dealt out to ranks in turn, and the order in which those of a rank follow each other.
struct dealt_blocks {
  std::int64_t length;
  std::int64_t ranks;
  std::int64_t each; ///< blocks of a rank

  dealt_blocks(std::int64_t of_length, int for_ranks, int asked)
      : length(of_length), ranks(for_ranks), each(std::clamp<std::int64_t>(of_length / for_ranks, 1, asked)) {}

  std::int64_t count() const { return ranks * each; }
  std::int64_t begin(std::int64_t block) const { return even_boundary(length, count(), block); }
  std::int64_t width(std::int64_t block) const { return begin(block + 1) - begin(block); }
  /// The block at a place of the order.
  std::int64_t at(std::int64_t place) const { return strided_block(place, each, ranks); }
};

/// The blocks of a list of entries in another order: those from `positions` on, block by block.
template <gradient_index Index, gradient_value Value, class MemorySpace>
struct blocks_in_order {
  static constexpr bool single = false;

  sparse_ref<Index, Value, MemorySpace> entries;
  std::int64_t const* positions; ///< of the first entry of each block, and the end
  std::int64_t const* from;      ///< the first index of each block in the order of the list
  std::int64_t const* to;        ///< and in the other one
  std::int64_t stride;           ///< between blocks of the list that follow each other in the other order
  std::int64_t run;              ///< blocks at a stride
  Index* indices;
  Value* values;

  KOKKOS_INLINE_FUNCTION std::int64_t count(std::int64_t block) const {
    std::int64_t const at = strided_block(block, run, stride);
    return positions[at + 1] - positions[at];
  }

  KOKKOS_INLINE_FUNCTION std::int64_t write(std::int64_t block, std::int64_t place) const {
    std::int64_t const at = strided_block(block, run, stride);
    std::int64_t const shift = to[block] - from[at];
    for (std::int64_t i = positions[at]; i < positions[at + 1]; ++i, ++place) {
      indices[place] = static_cast<Index>(entries.indices(i) + shift);
      values[place] = entries.values(i);
    }
    return positions[at + 1] - positions[at];
  }
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
    return is_gradient_order() ? in_gradient
                               : moved(exec, in_gradient, by_gradient_, by_region_, dealt_.ranks, selection_);
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
    std::int64_t place = 0;
    while (overflow.detail >= dealt_.width(dealt_.at(place))) {
      overflow.detail -= dealt_.width(dealt_.at(place));
      place += 1;
    }
    overflow.detail += dealt_.begin(dealt_.at(place));
    call.faults = {};
    call.note(overflow);
  }

private:
  using starts_type = shared_numbers<std::int64_t, E>;

  bool is_gradient_order() const { return dealt_.each == 1; }

  entries_type back(E const& exec, entries_type const& in_regions, workspace_type& out) {
    return is_gradient_order() ? in_regions : moved(exec, in_regions, by_region_, by_gradient_, dealt_.each, out);
  }

  // The first indices of the blocks in both orders.
  void plan(E const& exec) {
    if (is_planned_) {
      return;
    }
    std::int64_t const blocks = dealt_.count();
    std::int64_t end = 0;
    by_gradient_.reserve(exec, blocks + 1);
    by_region_.reserve(exec, blocks + 1);
    positions_.reserve(exec, blocks + 1);
    for (std::int64_t i = 0; i <= blocks; ++i) {
      by_gradient_.host()[i] = dealt_.begin(i);
      by_region_.host()[i] = end;
      end += i < blocks ? dealt_.width(dealt_.at(i)) : 0;
    }
    by_gradient_.to_device(exec, blocks + 1);
    by_region_.to_device(exec, blocks + 1);
    is_planned_ = true;
  }

  entries_type moved(E const& exec, entries_type const& list, starts_type const& from, starts_type const& to,
                     std::int64_t stride, workspace_type& out) {
    plan(exec);
    std::int64_t const blocks = dealt_.count();
    using space = typename E::memory_space;
    enqueue_copy<space, space>(exec, positions_.data(), from.device().data(), blocks + 1);
    Kokkos::parallel_for("oktopk::region_order::positions", index_range<E>(exec, 0, blocks + 1),
                         boundary_search<Index>{list.indices.data(), list.size(), positions_.data()});
    out.reserve(exec, list.size());
    enqueue_in_order("oktopk::region_order::move", exec, blocks,
                     blocks_in_order<Index, Value, space>{list, positions_.data(), from.device().data(),
                                                          to.device().data(), stride, blocks / stride,
                                                          out.indices.data(), out.values.data()});
    return out.entries(list.size());
  }

  dealt_blocks dealt_;
  bool is_planned_ = false;
  starts_type by_gradient_{"oktopk::region_order::by_gradient"};
  starts_type by_region_{"oktopk::region_order::by_region"};
  buffer<std::int64_t, typename E::memory_space> positions_{"oktopk::region_order::positions"};
  workspace_type selection_;
  workspace_type result_;
  workspace_type losses_;
};

} // namespace oktopk::detail
