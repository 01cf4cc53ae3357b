// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/select/kth_magnitude.hpp>
#include <oktopk/select/narrow.hpp>
#include <oktopk/select/select_across.hpp>
#include <oktopk/select/take_above.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

namespace oktopk {

namespace detail {

/// Ends a selection of exactly min(k, candidates) entries of one rank, whose k-th magnitude is known.
template <execution_space E, gradient_index Index, gradient_value Value, selection_scope Scope>
void take_kth(E const& exec, candidates<Index, Value, typename E::memory_space> from, kth<Value> found, std::int64_t k,
              Scope& scope, selection_workspace<Index, Value, E>& workspace, selected& result) {
  result = {};
  if (k > 0) {
    result.count =
        take_above(exec, from, found.threshold, found.ties_wanted, found.ties_wanted == found.ties, k, workspace);
  }
  result.total = scope.share(result.count);
  result.reevaluated = true;
}

/// Selects exactly min(k, candidates) entries of one rank by histograms of all of them.
template <execution_space E, gradient_index Index, gradient_value Value, selection_scope Scope>
kth<Value> select_by_histograms(E const& exec, candidates<Index, Value, typename E::memory_space> from, std::int64_t k,
                                Scope& scope, selection_workspace<Index, Value, E>& workspace, selected& result) {
  auto const found = k > 0 ? kth_magnitude(exec, from, k, workspace) : kth<Value>{};
  take_kth(exec, from, found, k, scope, workspace, result);
  return found;
}

/// The same among candidates that are at least k and all reach `floor`.
template <execution_space E, gradient_index Index, gradient_value Value, selection_scope Scope>
kth<Value> select_above(E const& exec, candidates<Index, Value, typename E::memory_space> from, std::int64_t k,
                        bits_of<Value> floor, Scope& scope, selection_workspace<Index, Value, E>& workspace,
                        selected& result) {
  auto const found = kth_above(exec, from, k, floor, workspace);
  take_kth(exec, from, found, k, scope, workspace, result);
  return found;
}

/// Where 5/4 k values should lie, given that k reach `threshold` and `count` reach `guess`: between two magnitudes the
/// tail of gradients is about a power law.
template <gradient_value Value>
Value next_guess(Value threshold, std::int64_t k, Value guess, std::int64_t count) {
  double exponent = 3; // of a typical tail, where the two do not tell
  if (guess > 0 && guess < threshold && count > k) {
    exponent =
        std::log(static_cast<double>(count) / static_cast<double>(k)) / std::log(double(threshold) / double(guess));
  }
  double const factor = std::pow(1.25, -1 / exponent);
  return static_cast<Value>(double(threshold) * std::clamp(factor, 0.5, 0.9999));
}

/// Selects exactly min(k, candidates) entries of one rank, and improves the guess for the next time.
///
/// Guess, verify, refine. Gives the k-th magnitude.
template <execution_space E, selection_source Source, selection_scope Scope>
kth<typename Source::value_type>
select_alone(E const& exec, Source const& from, std::int64_t k, kth_guess<typename Source::value_type>& guess,
             Scope& scope, selection_workspace<typename Source::index_type, typename Source::value_type, E>& workspace,
             selected& result) {
  using index_type = typename Source::index_type;
  using value_type = typename Source::value_type;
  if (k <= 0 || few_candidates(k) >= from.size()) {
    from.settle(exec);
    return select_by_histograms<E, index_type, value_type>(exec, from.settled(), k, scope, workspace, result);
  }
  sampled_guess<value_type> sampled;
  if (guess.magnitude <= 0) {
    sampled = guess_from_sample(exec, from, k, workspace);
    guess.magnitude = sampled.safe;
  }
  std::int64_t count = narrow(exec, from, k, guess.magnitude, workspace);
  auto const values = from.settled();
  if (count < 0 && sampled.likely <= 0) {
    sampled = guess_from_sample(exec, values, k, workspace);
    guess.magnitude = sampled.safe;
    count = narrow(exec, values, k, guess.magnitude, workspace);
  }
  if (count < 0) {
    auto const found = kth_among_ties<E, index_type, value_type>(exec, values, k, sampled.likely, workspace);
    take_kth<E, index_type, value_type>(exec, values, found, k, scope, workspace, result);
    guess.magnitude = next_guess(magnitude_from_bits<value_type>(found.threshold), k, value_type(0), k);
    return found;
  }
  candidates<index_type, value_type, typename E::memory_space> const few(workspace.aside(count));
  auto const found = select_above(exec, few, k, magnitude_bits(guess.magnitude), scope, workspace, result);
  guess.magnitude = next_guess(magnitude_from_bits<value_type>(found.threshold), k, guess.magnitude, count);
  return found;
}

/// Selects exactly min(k, candidates in the scope) entries. Gives the pattern of the k-th magnitude.
template <execution_space E, selection_source Source, selection_scope Scope>
bits_of<typename Source::value_type> select_exactly(
    E const& exec, Source const& from, std::int64_t k, kth_guess<typename Source::value_type>& guess, Scope& scope,
    selection_workspace<typename Source::index_type, typename Source::value_type, E>& workspace, selected& result) {
  if constexpr (Scope::alone) {
    return select_alone(exec, from, k, guess, scope, workspace, result).threshold;
  } else {
    using index_type = typename Source::index_type;
    using value_type = typename Source::value_type;
    from.settle(exec);
    return select_across<E, index_type, value_type>(exec, from.settled(), k, guess, scope, workspace, result);
  }
}

} // namespace detail

/// Exactly k entries every time: the k largest magnitudes, ties to the lower index.
///
/// Guess, verify, refine (after the idea of arXiv 2604.22312). For one rank alone a magnitude somewhat below the k-th
/// is guessed, from the last call or from a sample; one pass takes the source and compacts what reaches it; if that is
/// at least k and not too many, the k-th is found among these few. A guess that fails costs another pass, with a guess
/// from a sample of the values themselves, and only where that fails too (most values tie) all are looked at again.
/// Across ranks, histograms of a range around the last k-th magnitude are summed, and of all magnitudes where it has
/// left that. The result does not depend on the guess.
struct exact {
  struct options {};

  template <gradient_value Value>
  struct state {
    kth_guess<Value> guess;

    bool is_sound(std::int64_t) const { return guess.is_sound(); }
    void list_facts(agreement& terms) const { guess.list_facts(terms); }
    bool operator==(state const&) const = default;

    /// For `save` and `load`.
    template <class State, class Visit>
    static void each_part(State& carried, Visit& visit) {
      kth_guess<Value>::each_part(carried.guess, visit);
    }
  };

  exact() : exact(options{}) {}
  explicit exact(options) {}

  static std::string name() { return "exact"; }
  std::string describe() const { return name(); }
  std::string fault() const { return {}; }
  bool bounded() const { return true; }

  std::int64_t capacity(std::int64_t k, std::int64_t) const { return k; }

  template <execution_space E, selection_source Source, selection_scope Scope>
  selected select(E const& exec, Source const& from, std::int64_t k, std::int64_t,
                  state<typename Source::value_type>& carried, Scope& scope,
                  selection_workspace<typename Source::index_type, typename Source::value_type, E>& workspace) const {
    selected result;
    detail::select_exactly(exec, from, k, carried.guess, scope, workspace, result);
    return result;
  }
};

} // namespace oktopk
