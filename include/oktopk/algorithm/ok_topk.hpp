// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/base.hpp>
#include <oktopk/algorithm/local_selection.hpp>
#include <oktopk/algorithm/options.hpp>
#include <oktopk/algorithm/paper/gathered_threshold.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/exchange/all_ranks.hpp>
#include <oktopk/exchange/balanced_allgatherv.hpp>
#include <oktopk/exchange/concept.hpp>
#include <oktopk/exchange/split_and_reduce.hpp>
#include <oktopk/format/coo.hpp>
#include <oktopk/partition/balanced.hpp>
#include <oktopk/partition/evened.hpp>
#include <oktopk/select/exact.hpp>
#include <oktopk/select/kernel/overflow.hpp>
#include <oktopk/select/reused_threshold.hpp>
#include <oktopk/sparse/sorted_sets.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace oktopk {

/// The gather of `paper_ok_topk`: balance above 4 x the mean and not otherwise.
struct paper_allgatherv : balanced_allgatherv {
  struct options {
    double ratio = 4; ///< of the largest part to the mean, above which to balance; at least 1
  };

  paper_allgatherv() : paper_allgatherv(options{}) {}
  explicit paper_allgatherv(options how) : balanced_allgatherv({how.ratio, false, -1}) {}
};

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

/// Ok-Topk's sparse allreduce (paper, Algorithm 1): Topk(sum over ranks of Topk(accumulator)), every step a policy.
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
class ok_topk : public algorithm_base<E, Comm, typename Format::index_type, typename Format::value_type> {
  using base = algorithm_base<E, Comm, typename Format::index_type, typename Format::value_type>;
  static_assert(global_selector<GlobalSelector, E, Comm, Format>,
                "oktopk: the global selector does not select among the ranks of this communicator");
  static_assert(partitioner<Partitioner, E, Comm>, "oktopk: the partitioner does not serve this communicator");
  static_assert(gather_policy<Gather, E, Comm, Format>, "oktopk: the gather does not serve this communicator");
  static_assert(encodes_on<Format, E>, "oktopk: the sparse format does not encode on this execution space");
  static_assert(Format::lossless, "oktopk: ok_topk takes lossless sparse formats");

public:
  using typename base::entries_type;
  using typename base::index_type;
  using typename base::memory_space;
  using typename base::update_type;
  using typename base::value_type;
  using state_type = ok_topk_state<value_type, LocalSelector, GlobalSelector>;

  struct options {
    std::int64_t length = 0;         ///< of the accumulators
    std::optional<std::int64_t> k{}; ///< entries to select, in [0, length]; this or density
    std::optional<double> density{}; ///< k / length, in (0, 1]; k is rounded, and at least 1
    typename LocalSelector::options local_select{};
    typename GlobalSelector::options global_select{};
    typename Partitioner::options partition{};
    typename Schedule::options schedule{};
    typename Gather::options gather{};
  };

  /// Collective.
  ok_topk(E exec, Comm comm, options const& how)
      : base(std::move(exec), std::move(comm), how.length), local_(LocalSelector(how.local_select)),
        global_(how.global_select), partitioner_(how.partition), gather_(how.gather),
        split_and_reduce_(Schedule(how.schedule)) {
    agreement terms("ok_topk");
    detail::check_length<index_type>(length_, terms);
    k_ = detail::resolve_k(length_, how.k, how.density, terms);
    terms.fact("length", length_).fact("k", k_).fact("format", Format::name());
    detail::check_policy("local selector", local_.selector(), terms);
    detail::check_policy("global selector", global_, terms);
    detail::check_policy("partitioner", partitioner_, terms);
    detail::check_policy("schedule", Schedule(how.schedule), terms);
    detail::check_policy("gather", gather_, terms);
    terms.settle(comm_);
    most_selected_ = std::min(local_.selector().capacity(k_, length_), length_);
  }

  std::string_view name() const { return is_paper ? "paper_ok_topk" : "ok_topk"; }

  /// 6k(P-1)/P for entries of two words (equation 3), for selections of k in
  /// balanced regions, and `control_words`. Whatever the regions, 2k + 4k(P-1)/P and P-1 entries of rounding.
  double bound_words() const {
    return 3 * static_cast<double>(k_) * others_share() * base::words_per_entry + control_words();
  }

  /// What a call sends beside entries, at most: headers, sizes (once more when a threshold has gone stale, and of parts
  /// where the format leaves them open), the rounding of parts to 8 bytes, undecided candidates, boundaries, and the
  /// least that the histograms take; what these and the candidates take more is at most k/2.
  double control_words() const {
    double const ranks = comm_.size();
    double const messages = comm_.size() == 1 ? 0 : detail::ceil_log2(comm_.size()) + 1;
    // The digits of a search in vain in a range, and of one among all magnitudes.
    double const digits = 2 * (8.0 * sizeof(value_type) - 1) / 4;
    double const gathered = (entry_fills_words ? 0 : 1) + (Format::exact_size ? 0 : 2);
    return (2 + 2 + 2 * (2 + 4) + gathered) * (ranks - 1) + messages * (digits + 1) * 16 * 2 +
           partitioner_.bound_words(comm_.size());
  }

  state_type const& state() const { return state_; }

  /// Goes on from a saved state. Collective; an `error` on every rank where it does not fit or differs between ranks.
  void restore(state_type const& saved) {
    agreement terms("ok_topk::restore");
    check_state(saved, terms);
    terms.settle(comm_);
    state_ = saved;
  }

  /// One iteration of Algorithm 1. Collective. The accumulator is only read.
  template <accumulator_input<index_type, value_type, E> Input>
  update_type const& operator()(Input const& accumulator) {
    auto const start = clock::now();
    statistics_ = {};
    state_type next = state_;
    fault_report mine;
    entries_type const selection =
        local_.run(exec_, accumulator, length_, k_, next.iteration, next.local, mine, statistics_);
    auto const local_selected = clock::now();

    if (partitioner_.due(next.iteration) || next.boundaries.empty()) {
      next.boundaries.resize(static_cast<std::size_t>(comm_.size()) + 1);
      partitioner_.partition(exec_, comm_, selection.indices, length_, std::span<std::int64_t>(next.boundaries),
                             partition_workspace_);
      statistics_.repartitioned = true;
    }
    auto const reduced = split_and_reduce_.run(exec_, comm_, selection, next.boundaries,
                                               local_.selector().bounded() ? most_selected_ : -1, mine);
    if (reduced.first_fault) {
      throw reduced.first_fault.as_error(std::string(name()), reduced.faulty_rank, length_);
    }
    auto const exchanged = clock::now();

    auto const chosen = select_globally(reduced.reduced, next);
    auto const global_selected = clock::now();

    auto const [sums, balanced] = gather_.template gather<E, Comm, Format>(
        exec_, comm_, chosen.entries, chosen.counts, {.length = length_, .expected = k_}, gather_workspace_);
    statistics_.balanced = balanced;
    contributed_.reserve(exec_, selection.size());
    std::int64_t const contributed =
        intersection<E, index_type>(exec_, selection.indices, sums.indices, contributed_.data());
    next.iteration += 1;
    state_ = std::move(next);
    update_ = update_type(sums, contributed_.data(), contributed, {});
    detail::fence(exec_, "oktopk::ok_topk::done");

    statistics_.global_selected = sums.size();
    statistics_.select_seconds = base::seconds(start, local_selected) + base::seconds(exchanged, global_selected);
    statistics_.exchange_seconds = base::seconds(start, clock::now()) - statistics_.select_seconds;
    return update_;
  }

private:
  using base::comm_;
  using base::exec_;
  using base::k_;
  using base::length_;
  using base::others_share;
  using base::statistics_;
  using base::update_;
  using typename base::clock;

  // Whether any number of entries is a multiple of 8 bytes.
  static constexpr bool entry_fills_words = (sizeof(index_type) + sizeof(value_type)) % 8 == 0;
  static constexpr bool is_paper = std::is_same_v<LocalSelector, unguarded_threshold> &&
                                   std::is_same_v<GlobalSelector, gathered_threshold> &&
                                   std::is_same_v<Partitioner, balanced> && std::is_same_v<Schedule, rotated> &&
                                   std::is_same_v<Gather, paper_allgatherv>;

  // Algorithm 1, lines 9 to 12, and the selection that the paper leaves to balance_and_allgatherv.
  selection<index_type, value_type, memory_space> select_globally(entries_type const& reduced, state_type& next) {
    fault_report const overflow = detail::non_finite_in(exec_, reduced, fault_subject::sum);
    std::int64_t const ranks = comm_.size();
    std::int64_t const most_candidates = most_selected_ > std::numeric_limits<std::int64_t>::max() / ranks
                                             ? std::numeric_limits<std::int64_t>::max()
                                             : most_selected_ * ranks;
    all_ranks<E, Comm, Format> everybody(comm_, most_candidates, length_, name(), overflow, all_ranks_workspace_);
    selection_context<E, index_type, value_type, all_ranks<E, Comm, Format>> const context{
        exec_, k_, next.iteration, everybody, global_workspace_};
    auto const chosen = global_.select(context, candidates<index_type, value_type, memory_space>(reduced), next.global);
    statistics_.global_reevaluated = chosen.reevaluated;
    return chosen;
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

  local_selection<E, Format, LocalSelector> local_;
  std::int64_t most_selected_ = 0;
  GlobalSelector global_;
  Partitioner partitioner_;
  Gather gather_;
  state_type state_;

  selection_workspace<index_type, value_type, E> global_workspace_;
  partition_workspace<E> partition_workspace_;
  split_and_reduce<E, Comm, Format, Schedule> split_and_reduce_;
  all_ranks_workspace<E, Comm, Format> all_ranks_workspace_;
  typename Gather::template workspace<E, Comm, Format> gather_workspace_;
  buffer<index_type, memory_space> contributed_{"oktopk::contributed"};
};

/// `ok_topk allreduce(exec, comm, {.length = n, .k = 1000})`: the policies that no argument names are the default ones.
/// g++ does not find out by itself, since options in braces have no type to deduce from.
template <execution_space E, communicator Comm, class Options = typename ok_topk<E, Comm>::options>
ok_topk(E, Comm, Options const&) -> ok_topk<E, Comm>;

/// Ok-Topk as published: thresholds reused for tau' = 32 iterations whatever they select, the global one from a gather
/// of all reduced entries; averaged balanced regions, tau = 64; rotated destinations in buckets; balance above 4 x the
/// mean; COO. For comparison: on re-evaluating iterations, and when a threshold has gone stale, it exceeds 6k(P-1)/P
/// words.
template <execution_space E, communicator Comm, sparse_format Format = coo<>>
using paper_ok_topk =
    ok_topk<E, Comm, Format, unguarded_threshold, gathered_threshold, balanced, rotated, paper_allgatherv>;

} // namespace oktopk
