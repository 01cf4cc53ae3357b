// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/options.hpp>
#include <oktopk/partition/balanced.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>

namespace oktopk {

/// Regions with a bound for any input: none gets more than `most` times the mean of what all ranks have selected, and P
/// entries of rounding. Then no rank receives more than that in the reduce phase.
///
/// Averaged boundaries (the paper's, `balanced`) balance only as far as the ranks' gradients are large in the same places:
/// with 128 ranks the fullest region can have twice the mean. Here the ranks sum how many entries lie below each
/// boundary, and move the boundaries so that regions are even by all such sums so far, twice: three allreduces of P
/// integers in all. That is done every tau iterations, and in iterations 1, 2, 4, ... before the first of these, since
/// regions of the very first gradient fit later ones badly.
///
/// Calls with k >= check_from x ceil(log2 P) sum first how many entries each region would get: one allreduce of P
/// integers, about 1/60 of the time of the smallest of them. If a region would get too many, the regions are made anew for
/// this very call. In calls with fewer entries the check would cost too much. There a rank that got too many says so with
/// the sizes that the ranks exchange anyway, and the next call makes regions anew: that costs no message in a call whose
/// regions are even, and one call that is not. Four times the square root of k more than the mean can be chance, and is
/// taken. It is not noticed in the stages of `radix`.
///
/// If regions that are made are not even after the two moves, boundaries are moved until no region gets too many, by where
/// entries lie on average and by halves in turn: at most 2 log2 n more sums, few in practice. An index that several ranks
/// have selected is not cut, so a region may get P entries more.
struct sampled : partitioner_base {
  struct options {
    std::int64_t tau = 64; ///< iterations from one repartition to the next in any case, at least 1
    double most = 1.25;    ///< of the fullest region to the mean, above which regions are made anew
    std::int64_t check_from =
        1 << 15; ///< k for each of ceil(log2 P) messages from which on calls are checked in advance

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("tau", how.tau, "iterations from one partition to the next", at_least(1));
      visit("most", how.most, "fullest region to mean above which regions are made anew", at_least(1.01));
      visit("check_from", how.check_from,
            "k for each of ceil(log2 P) messages, from which on calls are checked in advance", at_least(0));
    }
  };

  sampled() : sampled(options{}) {}
  explicit sampled(options how) : options_(how) {}

  std::string describe() const { return detail::describe_options("sampled", options_); }
  std::string problem() const { return detail::fault_of_options("sampled", options_); }

  bool due(std::int64_t iteration) const {
    bool const is_early = iteration < options_.tau && std::has_single_bit(static_cast<std::uint64_t>(iteration));
    return iteration % options_.tau == 0 || is_early;
  }

  double most_load() const { return options_.most; }

  double bound_words(int ranks, std::int64_t k, bool are_new) const {
    int const rounds = checks(options_, ranks, k) || are_new ? most_rounds + 1 : 0;
    return (rounds + evening_rounds + 1) * detail::allreduce_words_at_most(ranks, ranks);
  }

  template <execution_space E, communicator Comm>
  class step : public detail::balancing_step<E, Comm> {
    using base = detail::balancing_step<E, Comm>;

  public:
    explicit step(sampled const& how) : base(evening_rounds), how_(how.options_) {}

    /// True if these regions hold for this selection. Collective; the same on all ranks.
    template <gradient_index Index>
    bool fits(call_context<E, Comm>& call, array_ref<Index const, typename E::memory_space> const& selected,
              std::span<std::int64_t const> boundaries) {
      if (!checks(how_, call.comm.size(), call.k)) {
        return true;
      }
      base::count(call, selected, boundaries);
      return are_even();
    }

    template <gradient_index Index>
    std::span<std::int64_t const> run(call_context<E, Comm>& call,
                                      array_ref<Index const, typename E::memory_space> const& selected,
                                      bool were_uneven) {
      base::run(call, selected);
      // If the last but one move has left regions even, so has the last one, as a rule.
      bool const bounds = were_uneven || checks(how_, call.comm.size(), call.k) ||
                          (call.comm.size() > 1 && !are_even(4 * std::sqrt(static_cast<double>(call.k))));
      bool halves = false;
      for (int round = 0; round < most_rounds && bounds; ++round) {
        base::count(call, selected, base::boundaries_);
        bool const moved = base::learn_counts();
        if (are_even() || (halves && !moved)) {
          break;
        }
        // A boundary whose count is near enough stays. Every other round takes the middle, so that the distance between
        // known counts shrinks whatever lies there.
        halves = !halves;
        auto const total = static_cast<double>(base::counts_.back());
        auto const slack = static_cast<std::int64_t>(std::min((how_.most - 1) / 2 * total / call.comm.size(), total));
        using known = detail::known_count;
        detail::move_boundaries(base::known_, base::boundaries_, [=](std::int64_t wanted, known low, known high) {
          return wanted - low.below <= slack    ? low.index
                 : high.below - wanted <= slack ? high.index
                 : halves                       ? low.index + (high.index - low.index) / 2
                                                : detail::place_of_even(wanted, low, high);
        });
      }
      return base::boundaries_;
    }

  private:
    // `chance`: entries that a region may have beyond the mean in any case.
    bool are_even(double chance = 0) const {
      auto const ranks = static_cast<double>(base::counts_.size());
      double const mean = static_cast<double>(base::counts_.back()) / ranks;
      double const most = std::max(how_.most * mean, mean + chance) + ranks;
      std::int64_t below = 0;
      for (std::int64_t const count : base::counts_) {
        if (static_cast<double>(count - below) > most) {
          return false;
        }
        below = count;
      }
      return true;
    }

    options how_;
  };

private:
  static constexpr int most_rounds = 128; // two for each bit of an index
  static constexpr int evening_rounds = 2;

  static bool checks(options const& how, int ranks, std::int64_t k) {
    return ranks > 1 && k / detail::ceil_log2(ranks) >= how.check_from;
  }

  options options_;
};

} // namespace oktopk
