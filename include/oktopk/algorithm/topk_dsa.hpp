// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/base.hpp>
#include <oktopk/algorithm/policies.hpp>
#include <oktopk/core/cost.hpp>
#include <oktopk/exchange/losses.hpp>
#include <oktopk/exchange/split_and_reduce.hpp>
#include <oktopk/format/coo_or_dense.hpp>
#include <oktopk/partition/uniform.hpp>

#include <limits>
#include <utility>
#include <vector>

namespace oktopk {

/// TopkDSA: SparCML's dynamic sparse allreduce (Renggli et al. 2019, DSAR_Split_allgather; Table 1 of the paper).
///
/// Sparse reduce-scatter over uniform regions, then allgather of the sums; a region is sent dense if that is smaller.
/// The update is the exact sum of all ranks' selections, up to kP entries. For selections of k that lie evenly over the
/// regions each rank sends between 4k(P-1)/P words (selections that overlap fully) and (2k+n)(P-1)/P (dense regions),
/// in P-1 + ceil(log2 P) messages. In addition, each message has a header of 2 words, and there are 2(P-1) words of
/// sizes. Any P.
template <class E, class Comm, class Policies = with_format<coo_or_dense<>>>
class topk_dsa : detail::checked_selection<E, Comm, Policies>, public selecting_base<E, Comm, Policies> {
  using base = selecting_base<E, Comm, Policies>;
  using typename base::format_type;

public:
  using typename base::update_type;

  struct options {
    detail::element_count length = 0;         ///< of the accumulators
    std::optional<detail::element_count> k{}; ///< entries to select, in [0, length]; this or density
    std::optional<double> density{};          ///< k / length, in (0, 1]; k is rounded, and at least 1
    typename Policies::local_selector::options local_select{};
    rotated::options schedule{};
    format_type format{}; ///< of the entries on the wire

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("format", how.format, "entries on the wire");
      visit("local", how.local_select, "selection of a rank's own entries");
      visit("schedule", how.schedule, "order of the messages");
    }
  };

  /// Collective.
  topk_dsa(E exec, Comm comm, options const& how)
      : base(std::move(exec), std::move(comm), how, "topk_dsa",
             [&](agreement& terms) { detail::check_policy("schedule", rotated(how.schedule), terms); }),
        split_and_reduce_(rotated(how.schedule), how.format), deliver_(everything(), how.format), losses_(how.format) {
    std::vector<std::int64_t> boundaries(static_cast<std::size_t>(comm_.size()) + 1);
    detail::even_regions(length_, boundaries);
    regions_.assign(base::exec_, boundaries, 1, std::numeric_limits<double>::infinity(), true);
  }

  /// 2k words of selection, since all of it may lie in regions of other ranks; the words of the format for the sums of
  /// a region, at most n(P-1)/P in all if it goes dense, each part rounded up to 8 bytes; 4(P-1) of headers and sizes.
  /// For even selections this is the upper end of Table 1, (2k+n)(P-1)/P.
  double bound_words() const {
    std::int64_t const brought = local_selection_.most_sent(k_);
    detail::call_size const size{
        comm_.size(), length_, k_, brought, local_selection_.most_selected(k_, length_), static_cast<double>(brought)};
    return (split_and_reduce_.bound_words(size) + deliver_.bound_words(size)).total(comm_);
  }

  /// The work of a steady call, for selections that fall independently.
  static detail::call_cost expected_cost(options const& how, int ranks) {
    double const k = detail::expected_k(how);
    auto const n = static_cast<double>(how.length);
    return detail::call_cost{.selected = n, .passes = 1} +
           decltype(split_and_reduce_)::expected_cost(how.format, rotated(how.schedule), ranks, how.length, k) +
           decltype(deliver_)::expected_cost(everything(), how.format, ranks, n,
                                             detail::expected_union(ranks, k, n) / ranks, k);
  }

  static allreduce_promises promises(options const& how) {
    allreduce_promises all = base::promises(how, allreduce_promises::order::of_owners, true);
    all.partition = uniform().describe();
    all.schedule = rotated(how.schedule).describe();
    return all;
  }

  /// As in `gradient_allreduce`.
  void fail(detail::fault_report const& why) { base::fail_in(*this, why); }

  /// One iteration. Collective. The accumulator is only read.
  template <accumulator_input<typename base::index_type, typename base::value_type, E> Input>
  update_type const& operator()(Input const& accumulator) {
    return base::make_call("oktopk::topk_dsa", [&](call_context<E, Comm>& call, typename base::state_type& next) {
      auto const selection = local_selection_.run(call, accumulator, next.local);
      auto const reduced = split_and_reduce_.run(call, selection, regions_);
      detail::no_state none;
      auto const sums = deliver_.run(call, reduced, regions_, none);
      auto const losses = losses_.run(call, reduced, sums, sums.all, regions_);
      return update_type(sums.all, selection.entries.indices, losses);
    });
  }

private:
  using base::comm_;
  using base::k_;
  using base::length_;
  using base::local_selection_;

  regions<E> regions_;
  detail::split_and_reduce<E, Comm, format_type, rotated> split_and_reduce_;
  everything::step<E, Comm, format_type> deliver_;
  detail::rounding_losses<E, format_type> losses_;
};

/// Deduces from options in braces, as `ok_topk` does.
template <class E, class Comm, class Options = typename topk_dsa<E, Comm>::options>
topk_dsa(E, Comm, Options const&) -> topk_dsa<E, Comm>;

} // namespace oktopk
