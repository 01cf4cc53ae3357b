// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/base.hpp>
#include <oktopk/algorithm/policies.hpp>
#include <oktopk/core/cost.hpp>
#include <oktopk/exchange/allgatherv.hpp>
#include <oktopk/exchange/global_selection.hpp>
#include <oktopk/exchange/split_and_reduce.hpp>
#include <oktopk/partition/region_order.hpp>
#include <oktopk/partition/sampled.hpp>

#include <utility>

namespace oktopk {

/// Ok-Topk's sparse allreduce (paper, Algorithm 1), every step a policy: each rank selects its k largest gradient
/// entries, and every rank gets the k largest sums of the selected entries: Topk(sum over ranks of Topk(accumulator)).
///
/// Costs per call and rank, for selections of k: split and reduce sends 2k(P-1)/P words in P-1 messages if regions are
/// balanced (2k words at worst), balance and allgatherv at most 4k(P-1)/P in P + 2 ceil(log2 P) (equation 3). In
/// addition, each message has 2 words of headers and sizes. The exact global threshold adds ceil(log2 P) messages and at
/// most 3k/32 words if its search takes one digit, which is usual. Every further digit adds ceil(log2 P) messages and
/// k/32 words. If the threshold has left the range of the search, the digits take k/2 words in all. For a small k the
/// smallest histogram may take more. Sums are formed in a fixed order: the same input gives the same bits in every run.
/// Both selections are exact by default; the selector `exact` makes this as cheap as a reused threshold. Regions are
/// `sampled`. `paper_policies` has the paper's choices.
///
/// All ranks make the object together, with the same options and policies; different ones are an `error` on every rank.
/// The object keeps a copy of the communicator and of the instance. It launches only on this instance and waits for no
/// other.
template <class E, class Comm, class Policies = default_policies>
class ok_topk : detail::checked_policies<E, Comm, Policies>,
                public selecting_base<E, Comm, Policies, detail::ok_topk_state_of> {
  using base = selecting_base<E, Comm, Policies, detail::ok_topk_state_of>;
  using typename base::format_type;
  using typename base::local_selector_type;
  using global_selector_type = typename Policies::global_selector;
  using partitioner_type = typename Policies::partitioner;
  using schedule_type = typename Policies::schedule;
  using gather_type = typename Policies::gather;

public:
  using typename base::index_type;
  using typename base::update_type;
  using typename base::value_type;

  /// The selection of a call, and the options of each step. `length` and one of `k` and `density` are needed, as in
  /// `{.length = n, .density = 0.01}`; the other members are the options of the policies, with useful defaults. All are
  /// the same on all ranks. The extent of a view takes a cast: `static_cast<std::int64_t>(view.extent(0))`.
  struct options {
    detail::element_count length = 0;                       ///< of the accumulators
    std::optional<detail::element_count> k{};               ///< entries to select, in [0, length]; this or density
    std::optional<double> density{};                        ///< k / length, in (0, 1]; k is rounded, and at least 1
    typename local_selector_type::options local_select{};   ///< lines 2 to 4: which entries of a rank
    typename global_selector_type::options global_select{}; ///< lines 9 to 12: which of the sums
    typename partitioner_type::options partition{};         ///< lines 5 to 7: how often regions are made again
    typename schedule_type::options schedule{};             ///< line 8: how entries reach the owners
    typename gather_type::options gather{};                 ///< line 13: how parts reach all ranks
    format_type format{};                                   ///< of the entries on the wire

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("format", how.format, "entries on the wire");
      visit("local", how.local_select, "selection of a rank's own entries");
      visit("global", how.global_select, "selection among the sums");
      visit("partition", how.partition, "regions of the ranks");
      visit("reduce", how.schedule, "how entries reach the owners of their regions");
      visit("gather", how.gather, "how parts reach all ranks");
    }
  };

  /// An allreduce over the ranks of `comm`, for calls on `exec`: `ok_topk(exec, comm, {.length = n, .density = 0.01})`.
  ///
  /// Keeps copies of `exec` and `comm`; buffers are allocated in the first calls. Collective: `how` is the same on all
  /// ranks, which costs one small agreement. Throws an `error`, the same on every rank: `k_out_of_range` (also if both
  /// or neither of `k` and `density` are given), `density_out_of_range`, `option_out_of_range` (a negative length, an
  /// option of a policy), `index_overflow` (a length that the index type cannot count), `ranks_disagree`.
  ok_topk(E exec, Comm comm, options const& how) : ok_topk(std::move(exec), std::move(comm), how, "ok_topk") {}

  ~ok_topk();

  /// The sum of the most words that each step sends. For selections of k in balanced regions: 6k(P-1)/P for entries of
  /// two words (equation 3), k/2 to search the global threshold, headers, sizes and boundaries. For any regions:
  /// 2k + 4k(P-1)/P and P-1 entries of rounding. A selection without a bound counts with its size in the last call if
  /// that was more than k. For a format of another size: the most that it takes for as many entries and messages.
  double bound_words() const {
    int const ranks = base::comm_.size();
    double const to_others = static_cast<double>(local_selection_.most_sent(k_)) * ((ranks - 1.0) / ranks);
    return (split_and_reduce_.bound_words(ranks, length_, k_, to_others, local_selection_.most_selected(k_, length_)) +
            foreseen_gather_.bound_words(ranks, length_, k_) + global_selection_.bound_words(ranks, length_, k_) +
            balance_and_allgatherv_.bound_words(ranks, length_, global_selection_.most_found(k_)))
               .total(base::comm_) +
           detail::partition_words(partitioner_, ranks, k_);
  }

  /// The work of a steady call, for even selections; repartitions are too rare to count.
  static detail::call_cost expected_cost(options const& how, int ranks) {
    double const k = detail::expected_k(how);
    auto const n = static_cast<double>(how.length);
    detail::call_cost const selecting{.selected = n, .passes = 1};
    double const sums = detail::expected_union(ranks, k, n) / ranks;
    detail::call_cost const reducing =
        decltype(split_and_reduce_)::expected_cost(how.format, schedule_type(how.schedule), ranks, how.length, k);
    if (auto const foreseen = decltype(foreseen_gather_)::expected_cost(global_selector_type(how.global_select),
                                                                        how.format, ranks, n, sums, k)) {
      return selecting + reducing + *foreseen;
    }
    return selecting + reducing + decltype(global_selection_)::expected_cost(ranks, sums, k) +
           decltype(balance_and_allgatherv_)::expected_cost(gather_type(how.gather), how.format, ranks, n, k);
  }

  static allreduce_promises promises(options const& how) {
    allreduce_promises all = base::promises(how, allreduce_promises::order::of_owners);
    all.global = global_selector_type(how.global_select).promises();
    all.partition = partitioner_type(how.partition).describe();
    all.schedule = schedule_type(how.schedule).describe();
    all.gather = gather_type(how.gather).describe();
    return all;
  }

  /// As in `gradient_allreduce`.
  void fail(detail::fault_report const& why) { base::fail_in(*this, why); }

  /// One iteration of Algorithm 1. Collective. The accumulator is only read.
  template <accumulator_input<index_type, value_type, E> Input>
  update_type const& operator()(Input const& accumulator) {
    return iterate(detail::with_any_stride<value_type, E>(accumulator));
  }

protected:
  ok_topk(E exec, Comm comm, options const& how, char const* name);

private:
  using base::k_;
  using base::length_;
  using base::local_selection_;

  template <class Input>
  update_type const& iterate(Input const& accumulator);

  partitioner_type partitioner_;
  typename partitioner_type::template step<E, Comm> space_repartition_;
  detail::region_order<E, index_type, value_type, partitioner_type> region_order_;
  detail::split_and_reduce<E, Comm, format_type, schedule_type> split_and_reduce_;
  detail::foreseen_gather<E, Comm, format_type, global_selector_type> foreseen_gather_;
  detail::global_selection<E, Comm, format_type, global_selector_type> global_selection_;
  typename gather_type::template step<E, Comm, format_type> balance_and_allgatherv_;
  detail::contributed_indices<E, index_type> contributed_indices_;
  detail::rounding_losses<E, format_type> rounding_losses_;
};

template <class E, class Comm, class Policies>
ok_topk<E, Comm, Policies>::ok_topk(E exec, Comm comm, options const& how, char const* name)
    : base(std::move(exec), std::move(comm), how, name,
           [&](agreement& terms) {
             detail::check_policy("global selector", global_selector_type(how.global_select), terms);
             detail::check_policy("partitioner", partitioner_type(how.partition), terms);
             detail::check_policy("schedule", schedule_type(how.schedule), terms);
             detail::check_policy("gather", gather_type(how.gather), terms);
           }),
      partitioner_(how.partition), space_repartition_(partitioner_),
      region_order_(partitioner_, length_, base::comm_.size()),
      split_and_reduce_(schedule_type(how.schedule), how.format),
      foreseen_gather_(global_selector_type(how.global_select), how.format),
      global_selection_(global_selector_type(how.global_select)),
      balance_and_allgatherv_(gather_type(how.gather), how.format), rounding_losses_(how.format) {
}

template <class E, class Comm, class Policies>
ok_topk<E, Comm, Policies>::~ok_topk() = default;

/// @cond private
template <class E, class Comm, class Policies>
template <class Input>
auto ok_topk<E, Comm, Policies>::iterate(Input const& accumulator) -> update_type const& {
  return base::make_call("oktopk::ok_topk", [&](call_context<E, Comm>& call, typename base::state_type& next) {
    // Lines 2 to 4: th_re_evaluate, and the values that reach the threshold.
    auto const local_topk = local_selection_.run(call, accumulator, next.local);
    // Lines 5 to 7: space_repartition.
    if (partitioner_.due(call.iteration) || next.boundaries.empty() ||
        !detail::regions_fit(space_repartition_, call, local_topk.indices, next.boundaries)) {
      detail::profiling_region const repartitioning("oktopk::space_repartition");
      auto const found = space_repartition_.run(call, local_topk.indices);
      next.boundaries.assign(found.begin(), found.end());
      call.statistics.repartitioned = true;
    }
    // Line 8.
    auto const most_selected = local_selection_.most_selected(k_, length_);
    auto const reduced_topk =
        split_and_reduce_.run(call, region_order_.selection(call.exec, local_topk), next.boundaries, most_selected);
    region_order_.translate_overflow(call);
    // Lines 9 to 13: th_re_evaluate of the sums, the sums that reach the threshold, and balance_and_allgatherv.
    auto u = foreseen_gather_.run(call, reduced_topk.sums, next.boundaries, next.global);
    if (!u) {
      auto const global_topk = global_selection_.run(call, reduced_topk.sums, next.global, most_selected);
      auto const gathered = balance_and_allgatherv_.run(call, global_topk.entries, global_topk.counts);
      call.statistics.balanced = gathered.balanced;
      u = {gathered.entries, global_topk.entries, global_topk.counts};
    }
    // Line 14: the local indexes that are among the global ones.
    auto const all = region_order_.result(call.exec, u->all);
    auto const indexes = contributed_indices_.run(call.exec, local_topk.indices, all.indices);
    // The rounding errors of a lossy format. Each rank returns those of its own messages.
    auto const losses = rounding_losses_.run(call, reduced_topk, u->own, u->all, u->counts);
    // Line 15.
    return update_type(all, indexes, region_order_.losses(call.exec, losses));
  });
}
/// @endcond

/// For `ok_topk allreduce(exec, comm, {.length = n, .k = 1000})`: no argument names the policies, so they are the
/// default ones. g++ cannot deduce this by itself, since options in braces have no type.
template <class E, class Comm, class Options = typename ok_topk<E, Comm>::options>
ok_topk(E, Comm, Options const&) -> ok_topk<E, Comm>;

} // namespace oktopk
