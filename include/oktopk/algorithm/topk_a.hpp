// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/base.hpp>
#include <oktopk/algorithm/local_selection.hpp>
#include <oktopk/algorithm/options.hpp>
#include <oktopk/exchange/all_ranks.hpp>
#include <oktopk/exchange/allgatherv.hpp>
#include <oktopk/format/coo.hpp>
#include <oktopk/select/exact.hpp>
#include <oktopk/select/kernel/overflow.hpp>
#include <oktopk/sparse/region_sum.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace oktopk {

/// TopkA: allgather of the local selections, summed on every rank (SparCML's SSAR_Allgather, Renggli et al. 2019; Shi
/// et al. 2019; Table 1 of the paper).
///
/// The update is the exact sum of all ranks' selections: up to kP entries, every selected entry contributes. For
/// selections of k each rank sends 2k(P-1) words in ceil(log2 P) messages, and 2(P-1) words of sizes in as many: any P.
/// The volume grows with P and passes dense's at P about n/k. Holds one value and one bit per element of the gradient.
template <execution_space E, communicator Comm, sparse_format Format = coo<>, selector LocalSelector = exact>
class topk_a : public algorithm_base<E, Comm, typename Format::index_type, typename Format::value_type> {
  using base = algorithm_base<E, Comm, typename Format::index_type, typename Format::value_type>;
  static_assert(encodes_on<Format, E>, "oktopk: the sparse format does not encode on this execution space");
  static_assert(Format::lossless, "oktopk: topk_a takes lossless sparse formats");

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
  };

  /// Collective.
  topk_a(E exec, Comm comm, options const& how) : topk_a(std::move(exec), std::move(comm), how, "topk_a") {}

  std::string_view name() const { return name_; }

  /// 2k(P-1) for entries of two words, for selections of k, and 2(P-1) of sizes; P-1 words of rounding where an entry
  /// is no multiple of 8 bytes.
  double bound_words() const { return bound_for(k_); }

  state_type const& state() const { return state_; }

  /// Goes on from a saved state. Collective.
  void restore(state_type const& saved) {
    detail::agree_on_selection_state(name_, saved, comm_);
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

    all_ranks<E, Comm, Format> everybody(comm_, length_, length_, name_, mine, all_ranks_workspace_);
    std::span<std::int64_t const> const sizes = everybody.gather_counts(selection.size());
    entries_type const all = gathering_.run(exec_, comm_, selection, sizes, length_);
    sum_.open(exec_, {0, length_});
    std::int64_t position = 0;
    for (std::int64_t const size : sizes) {
      sum_.add(exec_, all.slice(position, position + size));
      position += size;
    }
    entries_type const sums = sum_.extract(exec_);
    if (auto const overflow = detail::non_finite_in(exec_, sums, fault_subject::sum)) { // every rank has the same sums
      throw overflow.as_error(name_, comm_.rank(), length_);
    }
    next.iteration += 1;
    state_ = next;
    update_ = update_type(sums, selection.indices.data(), selection.size(), {});
    statistics_.global_selected = sums.size();
    statistics_.select_seconds = base::seconds(start, selected);
    statistics_.exchange_seconds = base::seconds(selected, clock::now());
    return update_;
  }

protected:
  topk_a(E exec, Comm comm, options const& how, char const* name)
      : base(std::move(exec), std::move(comm), how.length), name_(name), local_(LocalSelector(how.local_select)) {
    k_ = detail::agree_on_selection<Format>(name_, length_, how.k, how.density, local_.selector(), comm_,
                                            [](agreement&) {});
  }

  /// The words that a rank sends where no selection has more entries than these.
  double bound_for(std::int64_t entries) const {
    return allgatherv_words_at_most<Format>(comm_.size(), entries, {0, length_}) + 2 * (comm_.size() - 1);
  }

  /// The most entries any rank selected in the last call.
  std::int64_t largest_selection() const {
    auto const& sizes = all_ranks_workspace_.counts;
    return sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
  }

  using base::comm_;

private:
  using base::exec_;
  using base::k_;
  using base::length_;
  using base::statistics_;
  using base::update_;
  using typename base::clock;

  char const* name_;
  state_type state_;
  local_selection<E, Format, LocalSelector> local_;
  all_ranks_workspace<E, Comm, Format> all_ranks_workspace_;
  allgatherv<E, Comm, Format> gathering_;
  region_sum<index_type, value_type, E> sum_;
};

} // namespace oktopk
