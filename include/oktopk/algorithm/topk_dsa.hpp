// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/base.hpp>
#include <oktopk/algorithm/local_selection.hpp>
#include <oktopk/algorithm/options.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/exchange/all_ranks.hpp>
#include <oktopk/exchange/allgatherv.hpp>
#include <oktopk/exchange/split_and_reduce.hpp>
#include <oktopk/format/coo_or_dense.hpp>
#include <oktopk/partition/uniform.hpp>
#include <oktopk/select/exact.hpp>
#include <oktopk/select/kernel/overflow.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace oktopk {

/// TopkDSA: SparCML's dynamic sparse allreduce (Renggli et al. 2019, DSAR_Split_allgather; Table 1 of the paper).
///
/// Sparse reduce-scatter over uniform regions, then allgather of the sums; a region goes dense on the wire where that
/// is smaller. The update is the exact sum of all ranks' selections, up to kP entries. For selections of k that lie
/// evenly over the regions each rank sends between 4k(P-1)/P words (selections that overlap fully) and (2k+n)(P-1)/P
/// (dense regions), in P-1 + ceil(log2 P) messages; beside these 2 words a message of header and 2(P-1) of sizes. Any
/// P.
template <execution_space E, communicator Comm, sparse_format Format = coo_or_dense<>, selector LocalSelector = exact>
class topk_dsa : public algorithm_base<E, Comm, typename Format::index_type, typename Format::value_type> {
  using base = algorithm_base<E, Comm, typename Format::index_type, typename Format::value_type>;
  static_assert(encodes_on<Format, E>, "oktopk: the sparse format does not encode on this execution space");
  static_assert(Format::lossless, "oktopk: topk_dsa takes lossless sparse formats");

public:
  using typename base::entries_type;
  using typename base::index_type;
  using typename base::update_type;
  using typename base::value_type;
  using state_type = selection_state<value_type, LocalSelector>;

  struct options {
    std::int64_t length = 0;         ///< of the accumulators
    std::optional<std::int64_t> k{}; ///< entries to select, in [0, length]; this or density
    std::optional<double> density{}; ///< k / length, in (0, 1]; k is rounded, and at least 1
    typename LocalSelector::options local_select{};
    rotated::options schedule{};
  };

  /// Collective.
  topk_dsa(E exec, Comm comm, options const& how)
      : base(std::move(exec), std::move(comm), how.length), local_(LocalSelector(how.local_select)),
        split_and_reduce_(rotated(how.schedule)) {
    k_ = detail::agree_on_selection<Format>(
        "topk_dsa", length_, how.k, how.density, local_.selector(), comm_,
        [&](agreement& terms) { detail::check_policy("schedule", rotated(how.schedule), terms); });
    boundaries_.resize(static_cast<std::size_t>(comm_.size()) + 1);
    for (std::size_t r = 0; r < boundaries_.size(); ++r) {
      boundaries_[r] = detail::even_boundary(length_, comm_.size(), static_cast<std::int64_t>(r));
    }
  }

  std::string_view name() const { return "topk_dsa"; }

  /// 2k words of selection, for it may all lie in others' regions; what the format takes for the sums of a region, at
  /// most n(P-1)/P in all where it goes dense, each part rounded up to 8 bytes; 4(P-1) of headers and sizes. For even
  /// selections Table 1's upper end, (2k+n)(P-1)/P.
  double bound_words() const {
    std::int64_t const ranks = comm_.size();
    if (ranks == 1) {
      return 0;
    }
    std::int64_t const width = length_ / ranks + (length_ % ranks != 0 ? 1 : 0);
    std::int64_t const sums = k_ > width / ranks ? width : k_ * ranks; // no more than are selected, or than there are
    double const control = local_.selector().bounded() ? 4 : 6; // sizes once more where nothing bounds a selection
    return static_cast<double>(k_) * base::words_per_entry + control * static_cast<double>(ranks - 1) +
           allgatherv_words_at_most<Format>(comm_.size(), sums, {0, width});
  }

  state_type const& state() const { return state_; }

  /// Goes on from a saved state. Collective.
  void restore(state_type const& saved) {
    detail::agree_on_selection_state("topk_dsa", saved, comm_);
    state_ = saved;
  }

  /// One iteration. Collective. The accumulator is only read.
  template <accumulator_input<index_type, value_type, E> Input>
  update_type const& operator()(Input const& accumulator) {
    auto const start = clock::now();
    statistics_ = {};
    state_type next = state_;
    fault_report mine;
    entries_type const selection =
        local_.run(exec_, accumulator, length_, k_, next.iteration, next.local, mine, statistics_);
    auto const selected = clock::now();

    auto const most =
        local_.selector().bounded() ? std::min(local_.selector().capacity(k_, length_), length_) : std::int64_t(-1);
    auto const reduced = split_and_reduce_.run(exec_, comm_, selection, boundaries_, most, mine);
    if (reduced.first_fault) {
      throw reduced.first_fault.as_error("topk_dsa", reduced.faulty_rank, length_);
    }
    all_ranks<E, Comm, Format> everybody(comm_, length_, length_, "topk_dsa",
                                         detail::non_finite_in(exec_, reduced.reduced, fault_subject::sum),
                                         all_ranks_workspace_);
    std::span<std::int64_t const> const sizes = everybody.gather_counts(reduced.reduced.size());
    auto const region_of = [this](std::size_t rank) { return region{boundaries_[rank], boundaries_[rank + 1]}; };
    entries_type const sums = gathering_.run(exec_, comm_, reduced.reduced, sizes, region_of);
    next.iteration += 1;
    state_ = next;
    update_ = update_type(sums, selection.indices.data(), selection.size(), {});
    detail::fence(exec_, "oktopk::topk_dsa::done");
    statistics_.global_selected = sums.size();
    statistics_.select_seconds = base::seconds(start, selected);
    statistics_.exchange_seconds = base::seconds(selected, clock::now());
    return update_;
  }

private:
  using base::comm_;
  using base::exec_;
  using base::k_;
  using base::length_;
  using base::statistics_;
  using base::update_;
  using typename base::clock;

  state_type state_;
  std::vector<std::int64_t> boundaries_;
  local_selection<E, Format, LocalSelector> local_;
  split_and_reduce<E, Comm, Format, rotated> split_and_reduce_;
  all_ranks_workspace<E, Comm, Format> all_ranks_workspace_;
  allgatherv<E, Comm, Format> gathering_;
};

} // namespace oktopk
