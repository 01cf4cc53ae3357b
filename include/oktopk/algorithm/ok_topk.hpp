// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/local_selection.hpp>
#include <oktopk/algorithm/options.hpp>
#include <oktopk/algorithm/selecting_base.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/core/kokkos_ext/kernels.hpp>
#include <oktopk/exchange/balanced_allgatherv.hpp>
#include <oktopk/exchange/concept.hpp>
#include <oktopk/exchange/contributed_indices.hpp>
#include <oktopk/exchange/global_selection.hpp>
#include <oktopk/exchange/rounding_losses.hpp>
#include <oktopk/exchange/split_and_reduce.hpp>
#include <oktopk/format/coo.hpp>
#include <oktopk/partition/evened.hpp>
#include <oktopk/select/exact.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace oktopk {

/// All that Ok-Topk carries from one iteration to the next; a plain value.
template <gradient_value Value, selector LocalSelector, class GlobalSelector>
struct ok_topk_state {
  std::int64_t iteration = 0;
  typename LocalSelector::template state<Value> local;
  typename GlobalSelector::template state<Value> global;
  std::vector<std::int64_t> boundaries; ///< P+1 of them once there was a call

  /// For `save` and `load`.
  static std::string type_name() {
    return "ok_topk (local " + std::string(LocalSelector::name()) + ", global " + std::string(GlobalSelector::name()) +
           ", " + std::to_string(8 * sizeof(Value)) + "-bit values)";
  }

  template <class State, class Visit>
  static void each_part(State& state, Visit& visit) {
    visit(state.iteration);
    LocalSelector::template state<Value>::each_part(state.local, visit);
    GlobalSelector::template state<Value>::each_part(state.global, visit);
    visit(state.boundaries);
  }
};

/// Ok-Topk's sparse allreduce (paper, Algorithm 1), every step a policy: each rank selects its k largest gradient
/// entries, and every rank gets the k largest sums of the selected entries: Topk(sum over ranks of Topk(accumulator)).
///
/// Costs per call and rank, for selections of k: split and reduce sends 2k(P-1)/P words in P-1 messages where regions
/// are balanced (2k words at worst), balance and allgatherv at most 4k(P-1)/P in P + 2 ceil(log2 P) (equation 3).
/// Beside these, 2 words a message of headers and sizes, and for the exact global threshold at most 3k/32 words where
/// one digit of it is searched, as gradients move, in ceil(log2 P) messages more than a reused one takes; k/32 words
/// and as many messages for every digit more, k/2 where it jumps, or the histograms' least (see `control_words`). Sums
/// are formed in a fixed order: the same input gives the same bits in every run.
///
/// Both selections are exact unless told otherwise, which `exact` makes as cheap as reusing thresholds, and regions are
/// `evened`; the paper's choices are `reused_threshold` and `balanced`.
///
/// All ranks make the object together, with the same options and template arguments but for `E`; different ones are an
/// `error` on every rank. The object keeps a copy of the communicator and of the execution-space instance, which is the
/// only one it launches on and waits for.
template <execution_space E, communicator Comm, sparse_format Format = coo<>, selector LocalSelector = exact,
          class GlobalSelector = exact, class Partitioner = evened, schedule Schedule = rotated,
          class Gather = balanced_allgatherv>
class ok_topk : public selecting_base<E, Comm, Format> {
  using base = selecting_base<E, Comm, Format>;
  static_assert(global_selector<GlobalSelector, E, Comm, Format>,
                "oktopk: the global selector does not select among the ranks of this communicator");
  static_assert(partitioner<Partitioner, E, Comm>, "oktopk: the partitioner does not serve this communicator");
  static_assert(gather_policy<Gather, E, Comm, Format>, "oktopk: the gather does not serve this communicator");
  static_assert(encodes_on<Format, E>, "oktopk: the sparse format does not encode on this execution space");

public:
  using typename base::entries_type;
  using typename base::index_type;
  using typename base::memory_space;
  using typename base::update_type;
  using typename base::value_type;
  using state_type = ok_topk_state<value_type, LocalSelector, GlobalSelector>;

  /// What a call selects, and how each step works. `length` and one of `k` and `density` are needed, as in
  /// `{.length = n, .density = 0.01}`; the other members are the options of the policies, with useful defaults. All are
  /// the same on all ranks.
  struct options {
    std::int64_t length = 0;                          ///< of the accumulators
    std::optional<std::int64_t> k{};                  ///< entries to select, in [0, length]; this or density
    std::optional<double> density{};                  ///< k / length, in (0, 1]; k is rounded, and at least 1
    typename LocalSelector::options local_select{};   ///< lines 2 to 4: which entries of a rank
    typename GlobalSelector::options global_select{}; ///< lines 9 to 12: which of the sums
    typename Partitioner::options partition{};        ///< lines 5 to 7: how often regions are drawn anew
    typename Schedule::options schedule{};            ///< line 8: in which order ranks send
    typename Gather::options gather{};                ///< line 13: when parts are balanced
    Format format{};                                  ///< of the entries on the wire

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("format", how.format, "entries on the wire");
      visit("local", how.local_select, "selection of a rank's own entries");
      visit("global", how.global_select, "selection among the sums");
      visit("partition", how.partition, "regions of the ranks");
      visit("schedule", how.schedule, "order of the messages");
      visit("gather", how.gather, "balance of the parts");
    }
  };

  /// An allreduce over the ranks of `comm`, for calls on `exec`: `ok_topk(exec, comm, {.length = n, .density = 0.01})`.
  ///
  /// Keeps copies of `exec` and `comm`; buffers are allocated in the first calls. Collective: `how` is the same on all
  /// ranks, which costs one small agreement. Throws an `error`, the same on every rank: `k_out_of_range` (also where
  /// both or neither of `k` and `density` are given), `density_out_of_range`, `option_out_of_range` (a negative length,
  /// an option of a policy), `index_overflow` (a length that the index type cannot count), `ranks_disagree`.
  ok_topk(E exec, Comm comm, options const& how) : ok_topk(std::move(exec), std::move(comm), how, "ok_topk") {}

  std::string_view name() const { return name_; }

  /// 6k(P-1)/P for entries of two words (equation 3), for selections of k in balanced regions, k/2 for the histograms
  /// and candidates of the search for the global threshold, and `control_words`. Whatever the regions, 2k + 4k(P-1)/P
  /// and P-1 entries of rounding. For a format of another size: the most that it takes for as many entries in as many
  /// messages, wherever they lie.
  double bound_words() const {
    if (comm_.size() == 1) {
      return 0;
    }
    double const to_others = static_cast<double>(k_) * others_share();
    std::int64_t const most = std::numeric_limits<std::int64_t>::max() / (steps() + 1);
    // A part is forwarded in each step at most, and balanced before.
    std::int64_t const forwarded = std::min(length_, most) * (steps() + 1);
    return split_words_at_most(format_, comm_.size() - 1, to_others, {0, length_}) +
           split_words_at_most(format_, forwarded_pieces(), 2 * to_others, {0, forwarded}) + control_words() +
           static_cast<double>(k_) / 2;
  }

  /// Words that a call sends beside entries, at most: headers, sizes (once more when a threshold has gone stale, and of
  /// parts where the format leaves them open), the rounding of parts to 8 bytes, undecided candidates, boundaries, and
  /// the least that the histograms take; what these and the candidates take more is at most k/2, which is not in it.
  double control_words() const {
    double const ranks = comm_.size();
    double const messages = comm_.size() == 1 ? 0 : static_cast<double>(steps()) + 1;
    // The digits of a search in vain in a range, and of one among all magnitudes.
    double const digits = 2 * (8.0 * sizeof(value_type) - 1) / 4;
    double const rounding = entry_fills_words ? 0 : ranks - 1;
    double const sizes = Format::exact_size ? 0 : 2 * static_cast<double>(forwarded_pieces());
    double const unknown = Format::exact_size ? ranks - 1 : 2 * (ranks - 1) + messages; // of reduce; balance, gather
    return (2 + 2 + 2 * (2 + 4)) * (ranks - 1) + rounding + sizes + messages * (digits + 1) * 16 * 2 +
           partitioner_.bound_words(comm_.size()) + announcement_words<Comm>(unknown);
  }

  state_type const& state() const { return state_; }

  /// Goes on from a saved state. Collective; an `error` on every rank where it does not fit or differs between ranks.
  void restore(state_type const& saved) {
    agreement terms("ok_topk::restore");
    check_state(saved, terms);
    terms.check_on(comm_);
    state_ = saved;
  }

  /// One iteration of Algorithm 1. Collective. The accumulator is only read.
  template <accumulator_input<index_type, value_type, E> Input>
  update_type const& operator()(Input const& accumulator) {
    detail::profiling_region const profiled("oktopk::ok_topk");
    return base::make_call(name_, state_.iteration, [&](call_context<E, Comm>& call) -> update_type const& {
      state_type next = state_;
      // Lines 2 to 4: th_re_evaluate, and what reaches the threshold.
      auto const local_topk = local_selection_.run(call, accumulator, next.local);
      // Lines 5 to 7: space_repartition.
      if (partitioner_.due(call.iteration) || next.boundaries.empty()) {
        repartition(call, local_topk, next.boundaries);
      }
      // Line 8.
      auto const most_selected = local_selection_.most_selected(k_, length_);
      auto const reduced_topk = split_and_reduce_.run(call, local_topk, next.boundaries, most_selected);
      // Lines 9 to 12: th_re_evaluate of the sums, and what reaches the threshold.
      auto const global_topk = global_selection_.run(call, reduced_topk.sums, next.global, on_all_ranks(most_selected),
                                                     reduced_topk.checked);
      // Line 13: balance_and_allgatherv.
      auto const u = balance_and_allgatherv_.run(call, global_topk.entries, global_topk.counts);
      call.statistics.balanced = u.balanced;
      // Line 14: the local indexes that are among the global ones.
      auto const indexes = contributed_indices_.run(call, local_topk.indices, u.entries.indices);
      // Line 15.
      return base::finish_call(call, state_, std::move(next),
                               update_type(u.entries, indexes, losses(call, reduced_topk, global_topk, u.entries)));
    });
  }

protected:
  ok_topk(E exec, Comm comm, options const& how, char const* name)
      : base(std::move(exec), std::move(comm), how.length), name_(name), partitioner_(how.partition),
        local_selection_(LocalSelector(how.local_select)), space_repartition_(partitioner_),
        split_and_reduce_(Schedule(how.schedule), how.format), global_selection_(GlobalSelector(how.global_select)),
        balance_and_allgatherv_(Gather(how.gather), how.format), format_(how.format) {
    agreement terms("ok_topk");
    detail::check_length<index_type>(length_, terms);
    k_ = detail::resolve_k(length_, how.k, how.density, terms);
    terms.fact("length", length_).fact("k", k_).fact("format", format_.name());
    detail::check_policy("local selector", local_selection_.selector(), terms);
    detail::check_policy("global selector", global_selection_.selector(), terms);
    detail::check_policy("partitioner", partitioner_, terms);
    detail::check_policy("schedule", Schedule(how.schedule), terms);
    detail::check_policy("gather", Gather(how.gather), terms);
    terms.check_on(comm_);
  }

private:
  using base::comm_;
  using base::k_;
  using base::length_;
  using base::others_share;

  // Whether any number of entries is a multiple of 8 bytes.
  static constexpr bool entry_fills_words = (sizeof(index_type) + sizeof(value_type)) % 8 == 0;

  // Of the allgatherv.
  std::int64_t steps() const { return detail::ceil_log2(comm_.size()); }

  // The most encoded pieces that a rank sends to balance and to gather: balancing cuts P parts into 2P-1 pieces at
  // most.
  int forwarded_pieces() const { return (comm_.size() - 1) * static_cast<int>(steps() + 2); }

  // Of a lossy format: its rounding errors, each returned by the rank whose message it was.
  template <class Selection>
  entries_type losses(call_context<E, Comm>& call, split_and_reduce_result<Format, E> const& reduced_topk,
                      Selection const& global_topk, entries_type const& result) {
    if (!loses(format_)) {
      return {};
    }
    std::int64_t const position =
        std::accumulate(global_topk.counts.begin(), global_topk.counts.begin() + comm_.rank(), std::int64_t(0));
    return rounding_losses_.run(call, reduced_topk, global_topk.entries, result, position);
  }

  void repartition(call_context<E, Comm>& call, entries_type const& selection, std::vector<std::int64_t>& boundaries) {
    detail::profiling_region const profiled("oktopk::space_repartition");
    std::span<std::int64_t const> const found = space_repartition_.run(call, selection.indices);
    boundaries.assign(found.begin(), found.end());
    call.statistics.repartitioned = true;
  }

  // The most entries on all ranks together where a rank has no more than `of_a_rank`, or any number.
  std::int64_t on_all_ranks(std::optional<std::int64_t> of_a_rank) const {
    std::int64_t const most = of_a_rank.value_or(length_);
    return most > std::numeric_limits<std::int64_t>::max() / comm_.size() ? std::numeric_limits<std::int64_t>::max()
                                                                          : most * comm_.size();
  }

  void check_state(state_type const& saved, agreement& terms) const {
    auto const& b = saved.boundaries;
    bool const fits = b.empty() || (b.size() == static_cast<std::size_t>(comm_.size()) + 1 && b.front() == 0 &&
                                    b.back() == length_ && std::is_sorted(b.begin(), b.end()));
    detail::check_iteration(saved.iteration, terms);
    if (!fits) {
      terms.note(fault::bad_state, "the saved boundaries are of another length or number of ranks, or damaged");
    }
    detail::check_selector_state("local", saved.local, saved.iteration, terms);
    detail::check_selector_state("global", saved.global, saved.iteration, terms);
    terms.fact("iteration", saved.iteration);
    for (std::int64_t const boundary : b) {
      terms.fact("boundary", boundary);
    }
    saved.global.list_facts(terms);
  }

  char const* name_;
  state_type state_;
  Partitioner partitioner_;
  local_selection<E, Format, LocalSelector> local_selection_;
  typename Partitioner::template step<E, Comm> space_repartition_;
  split_and_reduce<E, Comm, Format, Schedule> split_and_reduce_;
  global_selection<E, Comm, Format, GlobalSelector> global_selection_;
  typename Gather::template step<E, Comm, Format> balance_and_allgatherv_;
  contributed_indices<E, index_type> contributed_indices_;
  rounding_losses<E, Format> rounding_losses_;
  Format format_;
};

/// `ok_topk allreduce(exec, comm, {.length = n, .k = 1000})`: the policies that no argument names are the default ones.
/// g++ does not find out by itself, since options in braces have no type to deduce from.
template <execution_space E, communicator Comm, class Options = typename ok_topk<E, Comm>::options>
ok_topk(E, Comm, Options const&) -> ok_topk<E, Comm>;

} // namespace oktopk
