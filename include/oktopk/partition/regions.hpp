// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/integers.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/core/write_in_order.hpp>
#include <oktopk/sparse/arithmetic.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace oktopk {

namespace detail {

/// P+1 boundaries of regions that differ by one at most.
inline void even_regions(std::int64_t length, std::span<std::int64_t> boundaries) {
  auto const regions = static_cast<std::int64_t>(boundaries.size()) - 1;
  for (std::size_t r = 0; r < boundaries.size(); ++r) {
    boundaries[r] = even_boundary(length, regions, static_cast<std::int64_t>(r));
  }
}

/// The blocks of a list of entries, one after the other in another order.
template <gradient_index Index, wire_value Value, class MemorySpace, class Width>
struct blocks_in_order {
  static constexpr bool single = false;

  sparse_ref<Index, Value, MemorySpace> entries;
  std::int64_t const* positions; ///< of the first entry of each block, and the end
  std::int64_t const* from;      ///< the first index of each block in the order of the list
  std::int64_t const* to;        ///< and in the other one, by place
  std::int64_t const* block_at;  ///< the block at each place of the other order
  Index* indices;
  Value* values;
  Width width;

  KOKKOS_INLINE_FUNCTION std::int64_t count(std::int64_t place) const {
    std::int64_t const block = block_at[place];
    return positions[block + 1] - positions[block];
  }

  KOKKOS_INLINE_FUNCTION std::int64_t write(std::int64_t place, std::int64_t position) const {
    std::int64_t const block = block_at[place];
    std::int64_t const shift = to[place] - from[block];
    for (std::int64_t i = positions[block]; i < positions[block + 1]; ++i, ++position) {
      indices[position] = static_cast<Index>(entries.indices(i) + shift);
      for (std::int64_t j = 0; j < width; ++j) {
        values[position * width + j] = entries.values(i * width + j);
      }
    }
    return positions[block + 1] - positions[block];
  }
};

} // namespace detail

/// Who owns which index: one region of the gradient for each rank, and an order of its indices in which every region is
/// contiguous. It is the gradient's own order unless a partitioner deals out blocks, or `compose` brings regions into
/// the order of a schedule's groups.
///
/// The same on all ranks; sends nothing. Boundaries and places are of the order, indices of lists as each function says.
/// Arrays only grow; what is unchanged since the last call is not made again. One list in another order takes a search
/// for each block and one pass.
template <execution_space E>
class regions {
public:
  /// Region r is [boundaries[r], boundaries[r + 1]) of the order, and holds `blocks` blocks of the gradient, which is
  /// cut into P x `blocks` even ones that are dealt out in turn; fewer blocks than that if a region has not so many
  /// indices. `most_load`: see there. `are_new`: they were made in this call.
  void assign(E const& exec, std::span<std::int64_t const> boundaries, int blocks, double most_load, bool are_new) {
    are_new_ = are_new;
    most_load_ = most_load;
    std::int64_t const ranks = std::ssize(boundaries) - 1;
    std::int64_t const each = std::clamp<std::int64_t>(boundaries.back() / ranks, 1, blocks);
    if (each == blocks_ && std::ranges::equal(boundaries, boundaries_)) {
      return;
    }
    ranks_.clear();
    blocks_ = each;
    boundaries_.assign(boundaries.begin(), boundaries.end());
    plan(exec);
  }

  /// The regions of others in another order of ranks. Nothing is made again if neither has changed.
  void compose(E const& exec, regions const& of, std::span<int const> ranks) {
    are_new_ = of.are_new_;
    most_load_ = of.most_load_;
    if (blocks_ == of.blocks_ && std::ranges::equal(by_rank_, of.boundaries_) && std::ranges::equal(ranks, ranks_)) {
      return;
    }
    blocks_ = of.blocks_;
    ranks_.assign(ranks.begin(), ranks.end());
    by_rank_.assign(of.boundaries_.begin(), of.boundaries_.end());
    boundaries_.assign(1, of.boundaries_.front());
    for (int const rank : ranks) {
      boundaries_.push_back(boundaries_.back() + of.region_of(rank).width());
    }
    plan(exec);
  }

  /// Whether they were made in this call.
  bool are_new() const { return are_new_; }

  /// How full a region may be, as a multiple of what it has if all are even, before it is too full to be used again.
  double most_load() const { return most_load_; }

  /// P+1 numbers: from 0 to the length.
  std::span<std::int64_t const> boundaries() const { return boundaries_; }

  /// The region at a place: that of the rank of this number, unless they were composed with an order of ranks.
  region region_of(int place) const {
    return {boundaries_[static_cast<std::size_t>(place)], boundaries_[static_cast<std::size_t>(place) + 1]};
  }

  /// The rank that owns an index of the gradient.
  int owner(std::int64_t index) const {
    if (is_identity()) {
      return static_cast<int>(std::ranges::upper_bound(boundaries_, index) - boundaries_.begin()) - 1;
    }
    return static_cast<int>(place_in(given_, index) % ranks());
  }

  /// A list of the gradient in the order. It lies in `out`, or is the list itself.
  template <gradient_index Index, wire_value Value, class Width>
  sparse_ref<Index, Value, typename E::memory_space>
  arranged(E const& exec, sparse_ref<Index, Value, typename E::memory_space> const& list,
           detail::entries_buffer<Index, Value, E, Width>& out) const {
    return is_identity() ? list : moved(exec, list, given_, wanted_, out);
  }

  /// And back.
  template <gradient_index Index, wire_value Value, class Width>
  sparse_ref<Index, Value, typename E::memory_space>
  restored(E const& exec, sparse_ref<Index, Value, typename E::memory_space> const& list,
           detail::entries_buffer<Index, Value, E, Width>& out) const {
    return is_identity() ? list : moved(exec, list, wanted_, given_, out);
  }

  /// The index of the gradient at an index of the order.
  std::int64_t restored(std::int64_t index) const {
    if (is_identity()) {
      return index;
    }
    std::int64_t const place = place_in(wanted_, index);
    return given_.begins.host()[wanted_.other.host()[place]] + index - wanted_.begins.host()[place];
  }

  /// Whether the order is that of the gradient.
  bool is_identity() const { return blocks_ == 1 && ranks_.empty(); }

private:
  // The blocks in an order, by place.
  struct order {
    detail::shared_numbers<std::int64_t, E> begins{"oktopk::regions::begins"};
    detail::shared_numbers<std::int64_t, E> other{"oktopk::regions::other"}; ///< their places in the other order
  };

  std::int64_t ranks() const { return std::ssize(boundaries_) - 1; }
  std::int64_t count() const { return ranks() * blocks_; }

  // The place of the block in which an index lies.
  std::int64_t place_in(order const& of, std::int64_t index) const {
    std::span const begins(of.begins.host(), static_cast<std::size_t>(count()));
    return std::ranges::upper_bound(begins, index) - begins.begin() - 1;
  }

  std::int64_t begin_of(std::int64_t block) const {
    return blocks_ == 1 ? (ranks_.empty() ? boundaries_ : by_rank_)[static_cast<std::size_t>(block)]
                        : detail::even_boundary(boundaries_.back(), count(), block);
  }

  // The block at a place: those of a rank are P apart in the gradient.
  std::int64_t block_at(std::int64_t place) const {
    std::int64_t const owner = place / blocks_;
    std::int64_t const rank = ranks_.empty() ? owner : ranks_[static_cast<std::size_t>(owner)];
    return place % blocks_ * ranks() + rank;
  }

  void plan(E const& exec) {
    if (is_identity()) {
      return;
    }
    std::int64_t const blocks = count();
    for (order* const each : {&given_, &wanted_}) {
      each->begins.reserve(exec, blocks + 1);
      each->other.reserve(exec, blocks);
    }
    positions_.reserve(exec, blocks + 1);
    std::int64_t end = boundaries_.front();
    for (std::int64_t place = 0; place < blocks; ++place) {
      std::int64_t const block = block_at(place);
      given_.begins.host()[place] = begin_of(place);
      given_.other.host()[block] = place;
      wanted_.begins.host()[place] = end;
      wanted_.other.host()[place] = block;
      end += begin_of(block + 1) - begin_of(block);
    }
    given_.begins.host()[blocks] = boundaries_.back();
    wanted_.begins.host()[blocks] = boundaries_.back();
    for (order* const each : {&given_, &wanted_}) {
      each->begins.to_device(exec, blocks + 1);
      each->other.to_device(exec, blocks);
    }
  }

  template <gradient_index Index, wire_value Value, class Width>
  sparse_ref<Index, Value, typename E::memory_space>
  moved(E const& exec, sparse_ref<Index, Value, typename E::memory_space> const& list, order const& from,
        order const& to, detail::entries_buffer<Index, Value, E, Width>& out) const {
    using space = typename E::memory_space;
    detail::enqueue_copy<space, space>(exec, positions_.data(), from.begins.device().data(), count() + 1);
    Kokkos::parallel_for("oktopk::regions::positions", detail::index_range<E>(exec, 0, count() + 1),
                         detail::boundary_search<Index>{list.indices.data(), list.size(), positions_.data()});
    out.reserve(exec, list.size());
    detail::enqueue_in_order("oktopk::regions::move", exec, count(),
                             detail::blocks_in_order<Index, Value, space, Width>{
                                 list, positions_.data(), from.begins.device().data(), to.begins.device().data(),
                                 to.other.device().data(), out.indices.data(), out.values.data(), out.width});
    return out.entries(list.size());
  }

  std::vector<std::int64_t> boundaries_;
  std::vector<std::int64_t> by_rank_; // of the regions that were composed
  std::vector<int> ranks_;            // at the places of the order; empty if each is at its own
  std::int64_t blocks_ = 1;
  double most_load_ = 0;
  bool are_new_ = false;
  order given_;
  order wanted_;
  detail::buffer<std::int64_t, typename E::memory_space> positions_{"oktopk::regions::positions"};
};

} // namespace oktopk
