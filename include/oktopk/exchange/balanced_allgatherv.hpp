// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/cost.hpp>
#include <oktopk/core/options.hpp>
#include <oktopk/exchange/allgatherv.hpp>
#include <oktopk/exchange/balance.hpp>
#include <oktopk/exchange/concept.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

namespace oktopk {

/// The second phase (paper, section 3.1.2; Algorithm 1, line 13): balance where it is needed, then allgatherv.
///
/// The paper balances when the largest part exceeds 4 x the mean. That can never be for P <= 4, and below it a large
/// part is still forwarded up to ceil(log2 P) times; so by default this also balances when some rank would send more
/// than twice what balanced parts cost, which everybody can tell from the sizes. With it the phase sends at most
/// 4k(P-1)/P words a rank whatever the parts are, as the paper's equation (2) has it, up to P-1 entries of rounding.
///
/// And it balances where that is quicker: each step of the allgatherv takes as long as the largest message in it, and
/// to balance takes about one part and a few messages, which at many ranks is little beside the steps. It also does so
/// where the rank that sends most would send 15 % more than in balanced parts, and by balancing sends fewer entries, by
/// a quarter of what a message counts: parts drift apart until regions are made anew, and a few words are then saved
/// by all for about the same time.
struct balanced_allgatherv {
  struct options {
    double ratio = 4;       ///< of the largest part to the mean, above which to balance; at least 1
    bool bound_sent = true; ///< also balance when a rank would send more than twice 2k(P-1)/P words
    /// Also balance when that saves the time of more entries than this a message of balancing; about latency times
    /// bandwidth, which is near 2000 entries on slow networks and fast ones. Neither for that nor to send a few entries
    /// fewer where negative.
    std::int64_t message_entries = 2048;

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("ratio", how.ratio, "largest part to mean above which the gather balances", at_least(1));
      visit("bound_sent", how.bound_sent, "balance also where a rank would send over the bound");
      visit("message_entries", how.message_entries, "entries whose time a message of balancing may cost");
    }
  };

  balanced_allgatherv() : balanced_allgatherv(options{}) {}
  explicit balanced_allgatherv(options how) : options_(how) {}

  std::string describe() const { return detail::describe_options("balanced_allgatherv", options_); }

  std::string problem() const {
    return options_.ratio >= 1 ? std::string() : "the ratio of balanced_allgatherv is below 1";
  }

  /// Decides whether parts of these sizes are to be balanced first, and leaves the scheme of the pieces in `scheme`;
  /// the same on every rank.
  ///
  /// Where all parts together are meant to have `expected` entries, a rank that would send more than 8/5 of what so
  /// many balanced entries cost is reason to balance, too. A threshold that lets half as many again through, in regions
  /// that have drifted, stays within the bound that way.
  bool plan(std::span<std::int64_t const> sizes, std::vector<detail::transfer>& scheme,
            std::int64_t expected = 0) const {
    detail::balancing_scheme(sizes, scheme);
    if (wants(sizes, detail::cost_of(scheme), expected)) {
      return true;
    }
    detail::unbalanced_scheme(sizes, scheme);
    return false;
  }

  template <execution_space E, communicator Comm, sparse_format Format>
  class step;

private:
  // `cost`: of balancing.
  bool wants(std::span<std::int64_t const> sizes, detail::balancing_cost const& cost, std::int64_t expected) const {
    auto const ranks = static_cast<std::int64_t>(sizes.size());
    auto const others = static_cast<double>(ranks - 1);
    std::int64_t const total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0));
    double const mean = static_cast<double>(total) / static_cast<double>(ranks);
    auto const message_entries = static_cast<double>(options_.message_entries); // no option is too large for it
    // Entries that a rank sends in an allgatherv of balanced parts, at most.
    std::int64_t const even = (total + ranks - 1) / ranks * (ranks - 1);
    std::int64_t const sooner = detail::allgatherv_critical_entries(sizes) - even;
    bool const quicker = message_entries >= 0 && sooner > 0 &&
                         static_cast<double>(sooner) >
                             static_cast<double>(cost.entries) + static_cast<double>(cost.messages) * message_entries;
    if (static_cast<double>(*std::max_element(sizes.begin(), sizes.end())) > options_.ratio * mean || quicker) {
      return true;
    }
    if (!options_.bound_sent) {
      return false;
    }
    std::int64_t sent = 0; // by the rank that sends most unless parts are balanced
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      sent = std::max(sent, detail::allgatherv_entries_sent(sizes, rank));
    }
    double most = 2 * mean * others;
    if (expected > 0) {
      most = std::min(most, 1.6 * static_cast<double>(expected) * others / static_cast<double>(ranks));
    }
    std::int64_t const saved = sent - even - cost.entries;
    bool const sends_less = message_entries >= 0 && static_cast<double>(sent) > 1.15 * static_cast<double>(even) &&
                            saved > 0 && static_cast<double>(saved) >= message_entries / 4;
    return static_cast<double>(sent) > most || sends_less;
  }

  options options_;
};

/// The gather at work; see `gather_policy`.
template <execution_space E, communicator Comm, sparse_format Format>
class balanced_allgatherv::step {
public:
  explicit step(balanced_allgatherv const& how, Format const& format = {}) : policy_(how), allgatherv_(format) {}

  gathered<Format, E> run(call_context<E, Comm>& call, entries_of<Format, E> mine,
                          std::span<std::int64_t const> sizes) {
    allgatherv_.reserve_to_balance(call, std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0)));
    scheme_.reserve(2 * sizes.size());
    bool const balances = policy_.plan(sizes, scheme_, call.k);
    region const everything{0, call.length};
    auto const where = [everything](std::size_t) { return everything; };
    return {allgatherv_.run(call, mine, std::span<detail::transfer const>(scheme_), where), balances};
  }

  /// 2(P-1)/P of the entries whatever the parts are: P parts are cut into 2P-1 pieces at most. Unless `bound_sent`,
  /// what uneven parts below `ratio` times the mean may take in each step, where that is more.
  word_bound bound_words(int ranks, std::int64_t length, std::int64_t entries) const {
    if (ranks == 1) {
      return {};
    }
    double const all = static_cast<double>(entries);
    double forwarded = 2 * all * (ranks - 1.0) / ranks;
    if (!policy_.options_.bound_sent) {
      double uneven = 0;
      for (int have = 1; have < ranks; have *= 2) {
        uneven += all * std::min(1.0, policy_.options_.ratio * std::min(have, ranks - have) / ranks);
      }
      forwarded = std::max(forwarded + (ranks - 1), uneven); // balanced parts differ by an entry
    }
    int const pieces = (ranks - 1) * static_cast<int>(detail::ceil_log2(ranks) + 2);
    return allgatherv_.bound_words(ranks, length, forwarded, pieces) +
           word_bound{0, Format::exact_size ? 0 : detail::announcement_words<Comm>(ranks - 1)};
  }

  /// Parts of entries/P, which need no balancing.
  static call_cost expected_cost(Format const& format, int ranks, double length, double entries) {
    return allgatherv<E, Comm, Format>::expected_cost(format, ranks, length / ranks, entries / ranks);
  }

private:
  balanced_allgatherv policy_;
  allgatherv<E, Comm, Format> allgatherv_;
  std::vector<detail::transfer> scheme_;
};

} // namespace oktopk
