// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/integers.hpp>
#include <oktopk/core/options.hpp>

#include <concepts>
#include <numeric>
#include <vector>

namespace oktopk {

/// What a schedule need not say: each share goes straight to its owner, in one stage.
struct schedule_base {
  /// Whether `groups` may cut a range of ranks into groups of more than one.
  static constexpr bool has_stages = false;

  /// The number of groups that a stage cuts a range of ranks into, for each size of a range up to `ranks`; the same on all
  /// ranks. `destination` and `source` are of groups, in place of ranks.
  static std::vector<int> groups(int ranks, std::int64_t /*length*/, std::int64_t /*k*/) {
    std::vector<int> all(static_cast<std::size_t>(ranks) + 1);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
};

/// The order in which a rank exchanges messages with the others in split and reduce. It derives from `schedule_base`, which
/// has what it need not say.
///
/// * `destination(rank, step, ranks)`, `source(rank, step, ranks)` — for steps 1 .. P-1; over all steps each other rank
///   once, and if a sends to b in a step then b receives from a in that same step.
/// * `bucket()` — steps whose messages are in flight together, at least 1.
template <class S>
concept schedule = std::copy_constructible<S> && detail::made_from_options<S> && std::derived_from<S, schedule_base> &&
                   requires(S const& how, int number, std::int64_t wide) {
                     { how.destination(number, number, number) } -> std::same_as<int>;
                     { how.source(number, number, number) } -> std::same_as<int>;
                     { how.bucket() } -> std::same_as<int>;
                     { how.describe() } -> std::convertible_to<std::string>;
                     { how.problem() } -> std::convertible_to<std::string>;
                     { S::has_stages } -> std::convertible_to<bool>;
                     { how.groups(number, wide, wide) } -> std::same_as<std::vector<int>>;
                   };

/// Rotated destinations in buckets (paper, Fig. 2b): in each step every rank receives one message, so none is a hot
/// spot. Each share goes straight to its owner, in P-1 messages.
struct rotated : schedule_base {
  struct options {
    int bucket = 4; ///< messages each way in flight together, at least 1

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("bucket", how.bucket, "messages each way in flight together", at_least(1));
    }
  };

  rotated() : rotated(options{}) {}
  explicit rotated(options how) : options_(how) {}

  static int destination(int rank, int step, int ranks) { return (rank + step) % ranks; }
  static int source(int rank, int step, int ranks) { return (rank + ranks - step) % ranks; }
  int bucket() const { return options_.bucket; }
  std::string describe() const { return detail::describe_options("rotated", options_); }
  std::string problem() const { return detail::fault_of_options("rotated", options_); }

private:
  options options_;
};

namespace detail {

/// Ranks [first, last) of an order of all ranks.
struct rank_range {
  int first = 0;
  int last = 0;

  int size() const { return last - first; }

  /// One of several groups that it is cut into, as even as can be.
  rank_range group(int which, int groups) const {
    return {first + static_cast<int>(even_boundary(size(), groups, which)),
            first + static_cast<int>(even_boundary(size(), groups, which + 1))};
  }

  /// The most ranks whose entries one rank sums: one of each group, and its share of the ranks that larger groups have in
  /// excess.
  int most_summed(int groups) const {
    int const size_of_smaller = size() / groups;
    return groups + (size() % groups + size_of_smaller - 1) / size_of_smaller;
  }
};

/// The order of ranks in which each group of each stage is a range. Ranks that are in one place of the groups of the first
/// stage follow each other, so that these are near each other: what travels far are sums. `groups`: of a range of each
/// size.
inline void order_in_groups(std::vector<int> const& groups, rank_range places, int first, int stride,
                            std::vector<int>& order) {
  if (places.size() == 1) {
    order[static_cast<std::size_t>(places.first)] = first;
    return;
  }
  int const count = groups[static_cast<std::size_t>(places.size())];
  for (int group = 0; group < count; ++group) {
    order_in_groups(groups, places.group(group, count), first + group * stride, count * stride, order);
  }
}

} // namespace detail
} // namespace oktopk
