// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/cost.hpp>
#include <oktopk/core/options.hpp>
#include <oktopk/exchange/schedule.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace oktopk {

/// Shares that are summed on the way to their owner: about (r-1) log_r P messages for a radix r and any P, where
/// `rotated` has P-1.
///
/// In a stage a range of ranks is cut into r groups, as even as can be: every r-th rank is in one group. Each rank sends
/// to one rank of every other group what it has for the regions of that group, and adds what it gets for its own; then
/// each group is a range of the next stage. So the first stage is among r ranks whose numbers follow each other, as those
/// of a node do, and what goes farther has been summed there. An entry travels up to log_r P times, less often where
/// selections overlap: sums of many ranks are fewer than their entries. Within a stage messages are those of `rotated`, of
/// groups in place of ranks. By default each range is cut so that the call costs least, as far as `k`, `n` and P tell,
/// for selections that overlap as those of training do: few and large messages, or many of them, stay in one stage. The
/// same on all ranks.
struct radix : schedule_base {
  static constexpr bool has_stages = true;

  struct options {
    int bucket = 8; ///< messages each way in flight together, at least 1
    int radix = 0;  ///< groups that a stage cuts a range of ranks into, at least 2; 0: as many as cost least

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("bucket", how.bucket, "messages each way in flight together", at_least(1));
      visit("radix", how.radix, "groups of a stage, 0 for as many as cost least", at_least(0));
    }
  };

  radix() : radix(options{}) {}
  explicit radix(options how) : options_(how) {}

  static int destination(int rank, int step, int ranks) { return rotated::destination(rank, step, ranks); }
  static int source(int rank, int step, int ranks) { return rotated::source(rank, step, ranks); }
  int bucket() const { return options_.bucket; }
  std::string describe() const { return detail::describe_options("radix", options_); }

  std::string problem() const {
    return options_.radix == 1 ? "radix = 1 of radix cuts nothing" : detail::fault_of_options("radix", options_);
  }

  std::vector<int> groups(int ranks, std::int64_t length, std::int64_t k) const {
    std::vector<int> all(static_cast<std::size_t>(ranks) + 1, 1);
    std::vector<double> costs(all.size(), 0); // of a stage and those after it, in the time of an entry
    for (int range = 2; range <= ranks; ++range) {
      auto const at = static_cast<std::size_t>(range);
      all[at] = std::min(options_.radix, range);
      if (options_.radix > 0) {
        continue;
      }
      double const held =
          detail::expected_similar_union(ranks / range, static_cast<double>(k), static_cast<double>(length)) * range /
          ranks;
      costs[at] = std::numeric_limits<double>::max();
      for (int left = (range + 1) / 2; left > 0; --left) { // ranks of the largest group
        int const others = (range + left - 1) / left - 1;
        int const bucket = std::clamp(options_.bucket, 1, others);
        int const rounds = (others - 1 + bucket) / bucket;
        double const waits = rounds + 1 + 0.25 * (others - rounds);
        double const cost =
            held * others / (others + 1) + waits * message_entries + costs[static_cast<std::size_t>(left)];
        if (cost < costs[at]) {
          costs[at] = cost;
          all[at] = others + 1;
        }
      }
    }
    return all;
  }

private:
  // Entries that take as long as a message that waits for another one, or as a stage beside; a message that does not
  // wait costs a quarter. Latency times bandwidth is about the same on slow networks and fast ones, as in
  // `balanced_allgatherv`.
  static constexpr double message_entries = 2048;

  options options_;
};

} // namespace oktopk
