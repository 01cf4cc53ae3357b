// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/options.hpp>
#include <oktopk/partition/balanced.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

namespace oktopk {

/// Regions with a bound for any input: none gets more than `most` times the mean of what all ranks have selected in
/// this very call, and P entries of rounding.
///
/// Before entries travel, ranks sum how many of them each region would get: one allreduce of P integers a call. If one
/// would get too many, the regions are made anew for this call: they begin with those of `balanced`, samples of all
/// ranks' selections, and rounds of such sums then move each boundary until it is right, by where entries lie on average
/// and by halves in turn, so at most 2 log2 n rounds; few in practice. An index that several ranks have selected is not
/// cut, so a region may get P entries more. `evened` is cheaper, and guarantees nothing for selections that move.
struct sampled {
  struct options {
    std::int64_t tau = 64; ///< iterations from one repartition to the next in any case, at least 1
    double most = 1.25;    ///< of the fullest region to the mean, above which regions are made anew; at least 1.01

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("tau", how.tau, "iterations from one partition to the next", at_least(1));
      visit("most", how.most, "fullest region to mean above which regions are made anew", at_least(1.01));
    }
  };

  sampled() : sampled(options{}) {}
  explicit sampled(options how) : options_(how) {}

  std::string describe() const { return detail::describe_options("sampled", options_); }
  std::string problem() const { return detail::fault_of_options("sampled", options_); }

  bool due(std::int64_t iteration) const { return iteration % options_.tau == 0; }
  static double bound_words(int ranks) { return (most_rounds + 2.0) * detail::allreduce_words_at_most(ranks, ranks); }

  template <execution_space E, communicator Comm>
  class step : detail::balancing_step<E, Comm> {
    using base = detail::balancing_step<E, Comm>;

  public:
    explicit step(sampled const& how) : base(0), most_(how.options_.most) {}

    /// True if these regions hold for this selection. Collective; the same on all ranks.
    template <gradient_index Index>
    bool fits(call_context<E, Comm>& call, array_ref<Index const, typename E::memory_space> const& selected,
              std::span<std::int64_t const> boundaries) {
      if (call.comm.size() == 1) {
        return true;
      }
      base::count(call, selected, boundaries);
      return are_even();
    }

    template <gradient_index Index>
    std::span<std::int64_t const> run(call_context<E, Comm>& call,
                                      array_ref<Index const, typename E::memory_space> const& selected) {
      base::run(call, selected);
      base::known_.assign(1, {0, 0});
      for (int round = 0; round < most_rounds && call.comm.size() > 1; ++round) {
        base::count(call, selected, base::boundaries_);
        if (!base::learn_counts() || are_even()) {
          break;
        }
        // A boundary whose count is near enough stays. Every other round takes the middle, so that the distance between
        // known counts shrinks whatever lies there.
        auto const total = static_cast<double>(base::counts_.back());
        auto const slack = static_cast<std::int64_t>(std::min((most_ - 1) / 2 * total / call.comm.size(), total));
        bool const halves = round % 2 == 1;
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
    bool are_even() const {
      auto const ranks = static_cast<double>(base::counts_.size());
      double const most = most_ * (static_cast<double>(base::counts_.back()) / ranks) + ranks;
      std::int64_t below = 0;
      for (std::int64_t const count : base::counts_) {
        if (static_cast<double>(count - below) > most) {
          return false;
        }
        below = count;
      }
      return true;
    }

    double most_;
  };

private:
  static constexpr int most_rounds = 128; // two for each bit of an index

  options options_;
};

} // namespace oktopk
