// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/base.hpp>
#include <oktopk/algorithm/policies.hpp>
#include <oktopk/core/cost.hpp>
#include <oktopk/exchange/losses.hpp>
#include <oktopk/exchange/split_and_reduce.hpp>
#include <oktopk/partition/sampled.hpp>
#include <oktopk/partition/space_repartition.hpp>

#include <cmath>
#include <limits>
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
  using partitioner_type = typename Policies::partitioner;
  using schedule_type = typename Policies::schedule;
  using deliverer_type = typename Policies::deliverer;
  using sums_type = typename Policies::sums;

public:
  using typename base::index_type;
  using typename base::update_type;
  using typename base::value_type;

  /// The selection of a call, and the options of each step. `length` and one of `k` and `density` are needed, as in
  /// `{.length = n, .density = 0.01}`; the other members are the options of the policies, with useful defaults. All are
  /// the same on all ranks. The extent of a view takes a cast: `static_cast<std::int64_t>(view.extent(0))`.
  struct options {
    detail::element_count length = 0;                     ///< of the accumulators
    std::optional<detail::element_count> k{};             ///< entries to select, in [0, length]; this or density
    std::optional<double> density{};                      ///< k / length, in (0, 1]; k is rounded, and at least 1
    typename local_selector_type::options local_select{}; ///< lines 2 to 4: which entries of a rank
    typename partitioner_type::options partition{};       ///< lines 5 to 7: how often regions are made again
    typename schedule_type::options schedule{};           ///< line 8: how entries reach the owners
    typename deliverer_type::options deliver{};           ///< lines 9 to 13: which of the sums, and how they reach all
    double result = 1;                                    ///< entries of the result, in k; at least 1
    typename sums_type::options sums{};                   ///< of what was selected, or of all that the ranks have
    format_type format{};                                 ///< of the entries on the wire

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("format", how.format, "entries on the wire");
      visit("local", how.local_select, "selection of a rank's own entries");
      visit("partition", how.partition, "regions of the ranks");
      visit("reduce", how.schedule, "how entries reach the owners of their regions");
      deliverer_type::options::each_option(how.deliver, visit);
      visit("result", how.result, "entries of the result, in k", at_least(1));
      sums_type::options::each_option(how.sums, visit);
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
    double const brought = static_cast<double>(local_selection_.most_sent(k_));
    detail::call_size const size{ranks,
                                 length_,
                                 k_,
                                 local_selection_.most_sent(k_),
                                 local_selection_.most_selected(k_, length_),
                                 brought * ((ranks - 1.0) / ranks)};
    detail::call_size of_result = size;
    of_result.k = result_size();
    return (split_and_reduce_.bound_words(size) + deliver_.bound_words(of_result)).total(base::comm_) +
           fill_.bound_words(ranks, std::max(of_result.k, base::last_call().global_selected)) +
           space_repartition_.bound_words(ranks, k_, base::state_.iteration, base::state_.boundaries);
  }

  /// The work of a steady call, for even selections; repartitions are too rare to count.
  static detail::call_cost expected_cost(options const& how, int ranks) {
    double const k = detail::expected_k(how);
    auto const n = static_cast<double>(how.length);
    auto const result = static_cast<double>(result_size(k, how.length, how.result));
    return detail::call_cost{.selected = n, .passes = 1} +
           decltype(split_and_reduce_)::expected_cost(how.format, schedule_type(how.schedule), ranks, how.length, k) +
           decltype(deliver_)::expected_cost(deliverer_type(how.deliver), how.format, ranks, n,
                                             detail::expected_union(ranks, k, n) / ranks, result) +
           decltype(fill_)::expected_cost(sums_type(how.sums), ranks, result);
  }

  static allreduce_promises promises(options const& how) {
    allreduce_promises all = base::promises(how, allreduce_promises::order::of_owners);
    detail::delivery_promises const delivered = deliverer_type(how.deliver).promises();
    all.global = delivered.global;
    all.result = how.result;
    all.full_sums = sums_type(how.sums).fills;
    all.gather = delivered.gather;
    all.partition = partitioner_type(how.partition).describe();
    all.schedule = schedule_type(how.schedule).describe();
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
  [[gnu::cold]] ok_topk(E exec, Comm comm, options const& how, char const* name);

private:
  using base::k_;
  using base::length_;
  using base::local_selection_;

  template <class Input>
  update_type const& iterate(Input const& accumulator);

  std::int64_t result_size() const { return result_size(static_cast<double>(k_), length_, result_); }

  static std::int64_t result_size(double k, std::int64_t length, double factor) {
    double const wanted = k * factor;
    return wanted < static_cast<double>(length) ? std::llround(wanted) : length;
  }

  detail::space_repartition<E, Comm, partitioner_type> space_repartition_;
  detail::split_and_reduce<E, Comm, format_type, schedule_type, typename Policies::template combiner<value_type>>
      split_and_reduce_;
  typename deliverer_type::template step<E, Comm, format_type> deliver_;
  detail::entries_buffer<index_type, value_type, E> restored_{"oktopk::ok_topk::restored"};
  detail::contributed_indices<E, index_type> contributed_;
  sums_type sums_;
  typename sums_type::template step<E, Comm, format_type> fill_;
  detail::rounding_losses<E, format_type> losses_;
  double result_;
};

template <class E, class Comm, class Policies>
ok_topk<E, Comm, Policies>::ok_topk(E exec, Comm comm, options const& how, char const* name)
    : base(std::move(exec), std::move(comm), how, name,
           [&](agreement& terms) {
             if (!(how.result >= 1 && how.result <= std::numeric_limits<double>::max())) {
               terms.note(fault::option_out_of_range,
                          "result = " + detail::decimal_text(how.result) + " is no factor of at least 1");
             }
             terms.fact("result", how.result)
                 .fact("sums", sums_type(how.sums).describe())
                 .fact("combiner", Policies::template combiner<value_type>::name());
             detail::check_policy("partitioner", partitioner_type(how.partition), terms);
             detail::check_policy("schedule", schedule_type(how.schedule), terms);
             detail::check_policy("deliverer", deliverer_type(how.deliver), terms);
           }),
      space_repartition_(partitioner_type(how.partition)), split_and_reduce_(schedule_type(how.schedule), how.format),
      deliver_(deliverer_type(how.deliver), how.format), sums_(how.sums), fill_(sums_), losses_(how.format),
      result_(how.result) {
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
    // Lines 5 to 7.
    auto const& regions = space_repartition_.run(call, local_topk.entries.indices, next.boundaries);
    // Line 8.
    auto const reduced_topk = split_and_reduce_.run(call, local_topk, regions);
    // Lines 9 to 13: th_re_evaluate of the sums, the sums that reach the threshold, and balance_and_allgatherv.
    call.k = result_size();
    auto const u = deliver_.run(call, reduced_topk, regions, next.global);
    call.k = k_;
    space_repartition_.learn(call, next.boundaries);
    auto const all = regions.restored(call.exec, u.all, restored_);
    if constexpr (sums_type::may_fill) {
      if (sums_.fills) { // beyond the paper: all that a rank has there contributes
        auto const values = detail::as_source<index_type, value_type, E>(accumulator).materialized().values;
        return update_type(fill_.run(call, values, all), all.indices, {});
      }
    }
    // Line 14: the local indexes that are among the global ones; and what a lossy format has rounded off.
    auto const indexes = contributed_.run(call.exec, local_topk.entries.indices, all.indices);
    auto const losses = losses_.run(call, reduced_topk, u, all, regions);
    // Line 15.
    return update_type(all, indexes, losses);
  });
}
/// @endcond

/// For `ok_topk allreduce(exec, comm, {.length = n, .k = 1000})`: no argument names the policies, so they are the
/// default ones. g++ cannot deduce this by itself, since options in braces have no type.
template <class E, class Comm, class Options = typename ok_topk<E, Comm>::options>
ok_topk(E, Comm, Options const&) -> ok_topk<E, Comm>;

} // namespace oktopk
