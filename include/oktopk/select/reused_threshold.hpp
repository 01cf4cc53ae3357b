// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/options.hpp>
#include <oktopk/select/concept.hpp>
#include <oktopk/select/exact.hpp>
#include <oktopk/select/kernel/compact.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace oktopk {

/// The paper's selection (section 3.1.3): the exact threshold every tau' iterations, reused in between.
///
/// Beyond the paper, a threshold that has gone stale — the count leaves [low k, high k] — is re-evaluated at once, so
/// that a jump of the gradients cannot flood the network: at most `high k` entries are ever selected. Re-evaluation
/// selects exactly k. A rank that selects alone drops the entries beyond k again, at almost no cost, so that a local
/// selection has at most k entries.
struct reused_threshold : selector_base {
  struct options {
    std::int64_t tau_prime = 32; ///< iterations from one re-evaluation to the next, at least 1
    double low = 2.0 / 3;        ///< in [0, 1]
    double high = 3.0 / 2;       ///< at least 1

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("tau_prime", how.tau_prime, "iterations that a threshold holds", at_least(1));
      visit("low", how.low, "fewest entries that a reused threshold may select, in multiples of k", between(0, 1));
      visit("high", how.high, "most entries that a reused threshold may select, in multiples of k", at_least(1));
    }
  };

  template <gradient_value Value>
  struct state {
    Value threshold = 0;
    detail::search_guess<Value> guess; ///< for the next re-evaluation, as `exact` has it
    std::int64_t evaluated = -1;       ///< iteration of the last re-evaluation; none yet when -1

    bool is_sound(std::int64_t iteration) const {
      return detail::is_finite_magnitude(threshold) && guess.is_sound() && evaluated >= -1 && evaluated < iteration;
    }

    void list_facts(agreement& terms) const {
      terms.fact("threshold", threshold).fact("re-evaluated in", evaluated);
      guess.list_facts(terms);
    }

    bool operator==(state const&) const = default;

    /// For `save` and `load`.
    template <class State, class Visit>
    static void each_part(State& carried, Visit& visit) {
      visit(carried.threshold);
      detail::search_guess<Value>::each_part(carried.guess, visit);
      visit(carried.evaluated);
    }
  };

  reused_threshold() : reused_threshold(options{}) {}
  explicit reused_threshold(options how) : options_(how) {}

  static std::string name() { return "reused_threshold"; }

  std::string describe() const { return detail::describe_options(name(), options_); }

  std::string problem() const {
    if (options_.tau_prime >= 1 && !(options_.low >= 0 && options_.low <= 1 && options_.high >= 1)) {
      return "the band of reused_threshold must have low in [0, 1] and high at least 1";
    }
    return detail::fault_of_options(name(), options_);
  }

  bool bounded() const { return detail::is_finite(options_.high); }

  selection_promises promises() const {
    bool const reuses = options_.tau_prime > 1;
    return {.rule = describe(), .low = reuses ? options_.low : 1, .high = reuses ? options_.high : 1, .largest = true};
  }

  std::int64_t capacity(std::int64_t k, std::int64_t length) const {
    // With -ffast-math a product with infinity may be anything.
    double const most = bounded() ? std::floor(options_.high * static_cast<double>(k)) : static_cast<double>(length);
    return most < static_cast<double>(length) ? static_cast<std::int64_t>(most) : length;
  }

  template <execution_space E, gradient_index Index, gradient_value Value, selection_group Group,
            selection_source Source>
  selection<Index, Value, typename E::memory_space> select(selection_context<E, Index, Value, Group> const& context,
                                                           Source const& source, state<Value>& carried) const {
    auto const& [exec, k, iteration, group, workspace] = context;
    detail::exact_search<E, Index, Value, Group> search(context);
    bool const reuses = k > 0 && carried.evaluated >= 0 && iteration - carried.evaluated < options_.tau_prime;
    if (reuses) {
      auto const least = detail::magnitude_bits(carried.threshold);
      if (bounded()) {
        workspace.reserve(exec, std::min(capacity(k, source.size()), source.size()));
      }
      std::int64_t const count = detail::compact(exec, source, least, workspace, !bounded());
      std::span<std::int64_t const> const counts = group.gather_counts(count);
      if (in_band(std::accumulate(counts.begin(), counts.end(), std::int64_t(0)), k)) {
        if (count > workspace.indices.capacity()) {
          workspace.reserve(exec, count);
          detail::compact(exec, source.materialized(), least, workspace);
        }
        if constexpr (Group::alone) {
          if (bounded() && count > k) { // to drop the entries beyond k costs almost nothing
            workspace.swap_buffers();
            detail::candidates<Index, Value, typename E::memory_space> const chosen(workspace.previous(count));
            auto trimmed = search.select_above(chosen, carried.threshold);
            trimmed.reevaluated = false;
            return trimmed;
          }
        }
        return {workspace.entries(count), counts, false};
      }
      carried.guess = {}; // it was made from a threshold that has gone stale
    }
    auto result = reuses ? search.run(source.materialized(), carried.guess) : search.run(source, carried.guess);
    if (k > 0 && result.total() > 0) { // an empty selection has no threshold
      carried.threshold = detail::magnitude_from_bits<Value>(search.threshold());
      carried.evaluated = iteration;
    }
    return result;
  }

private:
  bool in_band(std::int64_t total, std::int64_t k) const {
    return static_cast<double>(total) >= options_.low * static_cast<double>(k) &&
           (!bounded() || static_cast<double>(total) <= options_.high * static_cast<double>(k));
  }

  options options_;
};

/// `reused_threshold` without the band: exactly the paper's rule, which has no bound between re-evaluations.
struct unguarded_threshold : reused_threshold {
  struct options {
    std::int64_t tau_prime = 32; ///< iterations from one re-evaluation to the next, at least 1

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("tau_prime", how.tau_prime, "iterations that a threshold holds", at_least(1));
    }
  };

  unguarded_threshold() : unguarded_threshold(options{}) {}
  explicit unguarded_threshold(options how) : reused_threshold({how.tau_prime, 0, detail::infinity<double>}) {}

  static std::string name() { return "unguarded_threshold"; }
};

} // namespace oktopk
