// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/cost.hpp>
#include <oktopk/exchange/allgatherv.hpp>
#include <oktopk/exchange/concept.hpp>
#include <oktopk/exchange/global_selection.hpp>
#include <oktopk/exchange/split_and_reduce.hpp>
#include <oktopk/partition/regions.hpp>
#include <oktopk/select/concept.hpp>

#include <algorithm>
#include <optional>
#include <string>

namespace oktopk {

namespace detail {

/// What a deliverer promises of each result.
struct delivery_promises {
  std::optional<selection_promises> global{}; ///< of the sums in it; none: all are
  std::string gather{};                       ///< how they reach all ranks, as `describe()` of a gather has it
};

template <class D>
concept has_deliverer_options = made_from_options<D> && requires(D const& deliverer) {
  { D::name() } -> std::convertible_to<std::string>;
  { deliverer.describe() } -> std::convertible_to<std::string>;
  { deliverer.problem() } -> std::convertible_to<std::string>;
  { deliverer.promises() } -> std::same_as<delivery_promises>;
};

template <class D, class E, class Comm, class Format>
concept delivers_for = std::constructible_from<typename D::template step<E, Comm, Format>, D const&, Format const&> &&
                       requires(typename D::template step<E, Comm, Format>& step, call_context<E, Comm>& call,
                                reduced<Format, E> const& mine, regions<E> const& owned,
                                typename D::template state<typename Format::value_type>& state) {
                         { step.run(call, mine, owned, state) } -> std::same_as<delivered<Format, E>>;
                         { std::as_const(step).bound_words(call_size()) } -> std::same_as<word_bound>;
                       };

} // namespace detail

/// Who gets what of the sums (Algorithm 1, lines 9 to 13): `search_and_gather`, `foreseen`, `everything`.
///
/// 1. `options` — a plain struct; `name()` names the type of a saved state, `describe()` returns the policy as a text that
///    the ranks compare, `problem()` says what is wrong with it (empty when nothing is); `promises()`.
/// 2. `state<Value>` — what it carries from call to call; as that of a `selector`.
/// 3. `step<E, Comm, Format>` — the deliverer at work, made from the policy and the format; owns its buffers.
/// 4. `step.run(call, mine, regions, state)` — collective; takes the sums of this rank's region. Gives the result, in
///    rank order and so in the order of the regions, valid until the next run. `state` is the same on all ranks, before and
///    after. All ranks hear of each other's faults, and of uneven regions, by the numbers in `call.header`; a fault is
///    thrown on every rank.
/// 5. `step.bound_words(size)` — the most words that one rank sends.
/// 6. `step::expected_cost(policy, format, ranks, length, sums, k)` — asked for by `automatic` alone: the work of a steady
///    call in which each region has `sums` entries.
template <class D, class E, class Comm, class Format>
concept deliverer = std::copy_constructible<D> && detail::has_deliverer_options<D> && detail::carries_state<D> &&
                    detail::delivers_for<D, E, Comm, Format>;

/// The k largest sums for all ranks: a global selector finds them, a gather brings them to all.
template <class Selector, class Gather = balanced_allgatherv>
struct search_and_gather {
  struct options {
    typename Selector::options global_select{}; ///< lines 9 to 12: which of the sums
    typename Gather::options gather{};          ///< line 13: how parts reach all ranks

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("global", how.global_select, "selection among the sums");
      visit("gather", how.gather, "how parts reach all ranks");
    }
  };

  template <gradient_value Value>
  using state = typename Selector::template state<Value>;

  search_and_gather() : search_and_gather(options{}) {}
  explicit search_and_gather(options const& how) : selector(how.global_select), gather(how.gather) {}

  static std::string name() { return std::string(Selector::name()); }
  std::string describe() const { return std::string(selector.describe()) + ", " + std::string(gather.describe()); }
  std::string problem() const {
    std::string const of_selector(selector.problem());
    return of_selector.empty() ? std::string(gather.problem()) : of_selector;
  }
  detail::delivery_promises promises() const { return {selector.promises(), std::string(gather.describe())}; }

  Selector selector;
  Gather gather;

  template <execution_space E, communicator Comm, sparse_format Format>
  class step {
    static_assert(global_selector<Selector, E, Comm, Format>,
                  "oktopk: the global selector does not select among the ranks: it is no global_selector");
    static_assert(gather_policy<Gather, E, Comm, Format>,
                  "oktopk: the gather does not serve this communicator: it is no gather_policy");

  public:
    [[gnu::cold]] step(search_and_gather const& how, Format const& format)
        : selection_(how.selector), gather_(how.gather, format) {}

    detail::delivered<Format, E> run(call_context<E, Comm>& call, detail::reduced<Format, E> const& mine,
                                     regions<E> const&, state<typename Format::value_type>& carried) {
      auto const chosen = selection_.run(call, mine.sums, carried, mine.most_brought);
      auto const all = gather_.run(call, chosen.entries, chosen.counts);
      call.statistics.balanced = all.balanced;
      return {all.entries, chosen.entries, chosen.counts};
    }

    word_bound bound_words(detail::call_size const& of) const {
      return selection_.bound_words(of.ranks, of.length, of.k) +
             gather_.bound_words(of.ranks, of.length, selection_.most_found(of.k));
    }

    static detail::call_cost expected_cost(search_and_gather const& how, Format const& format, int ranks, double length,
                                           double sums, double k) {
      return decltype(selection_)::expected_cost(ranks, sums, k) +
             decltype(gather_)::expected_cost(how.gather, format, ranks, length, k);
    }

  private:
    detail::global_selection<E, Comm, Format, Selector> selection_;
    typename Gather::template step<E, Comm, Format> gather_;
  };
};

/// All sums for all ranks.
///
/// 2(P-1) words of sizes in ceil(log2 P) messages, then an allgatherv of the regions' sums.
struct everything {
  struct options {};

  template <wire_value>
  using state = detail::no_state;

  everything() = default;
  explicit everything(options) {}

  static std::string name() { return "everything"; }
  static std::string describe() { return name(); }
  static std::string problem() { return {}; }
  static detail::delivery_promises promises() { return {}; }

  template <execution_space E, communicator Comm, sparse_format Format>
  class step {
  public:
    step(everything const&, Format const& format) : allgatherv_(format) {}

    detail::delivered<Format, E> run(call_context<E, Comm>& call, detail::reduced<Format, E> const& mine,
                                     regions<E> const& owned, detail::no_state&) {
      std::span<std::int64_t const> const sizes = gather_counts_.run(call, mine.sums.size());
      auto const region_of = [&](std::size_t rank) { return owned.region_of(static_cast<int>(rank)); };
      largest_region_ = *std::max_element(sizes.begin(), sizes.end());
      widest_region_ = 0;
      for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
        widest_region_ = std::max(widest_region_, region_of(rank).width());
      }
      return {allgatherv_.run(call, mine.sums, sizes, region_of), mine.sums, sizes};
    }

    /// For regions of one width. If no number bounds what other ranks bring: with the regions and sums of the last call.
    word_bound bound_words(detail::call_size const& of) const {
      std::int64_t const width = of.length / of.ranks + (of.length % of.ranks != 0 ? 1 : 0);
      std::int64_t const most_sums =
          of.brought > width / of.ranks ? width : of.brought * of.ranks; // no more than the region has
      return detail::count_gathering<Comm>::bound_words(of.ranks) +
             allgatherv_.bound_words(of.ranks, of.selected ? most_sums : std::max(most_sums, largest_region_),
                                     {0, of.selected ? width : std::max(width, widest_region_)});
    }

    static detail::call_cost expected_cost(everything const&, Format const& format, int ranks, double length,
                                           double sums, double) {
      return detail::call_cost{.messages = detail::doubling_steps(ranks), .bytes = 8.0 * (ranks - 1)} +
             decltype(allgatherv_)::expected_cost(format, ranks, length / ranks, sums);
    }

  private:
    std::int64_t largest_region_ = 0; // sums in it, in the last call
    std::int64_t widest_region_ = 0;  // its indices
    detail::count_gathering<Comm> gather_counts_;
    encoded_allgatherv<E, Comm, Format> allgatherv_;
  };
};

} // namespace oktopk
