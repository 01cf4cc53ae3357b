// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/agreement.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace oktopk::detail {

/// round(density x length), but at least 1 where there is an entry.
inline std::int64_t entries_at(double density, std::int64_t length) {
  std::int64_t const rounded = std::llround(density * static_cast<double>(length));
  return std::min(length, std::max<std::int64_t>(rounded, 1));
}

/// Returns k as given, or `entries_at` the density. Notes a fault if they give no valid k.
[[gnu::cold]] inline std::int64_t resolve_k(std::int64_t length, std::optional<std::int64_t> k,
                                            std::optional<double> density, agreement& terms) {
  if (k.has_value() == density.has_value()) {
    terms.note(fault::k_out_of_range, k.has_value() ? "give either k or density, not both" : "give k or density");
    return 0;
  }
  if (k) {
    if (*k < 0 || *k > length) {
      terms.note(fault::k_out_of_range,
                 "k = " + std::to_string(*k) + " is not in [0, length], length = " + std::to_string(length));
      return 0;
    }
    return *k;
  }
  if (!is_finite_magnitude(*density) || *density == 0 || *density > 1) {
    plain_text text;
    text << "density = " << *density << " is not in (0, 1]";
    terms.note(fault::density_out_of_range, text.str());
    return 0;
  }
  return entries_at(*density, length);
}

/// Notes a length that is negative or that the index type cannot count to.
template <gradient_index Index>
[[gnu::cold]] void check_length(std::int64_t length, agreement& terms) {
  if (length < 0) {
    terms.note(fault::option_out_of_range, "length = " + std::to_string(length) + " is negative");
  } else if (length > std::numeric_limits<Index>::max()) {
    terms.note(fault::index_overflow, "length = " + std::to_string(length) + " does not fit indices of " +
                                          std::to_string(8 * sizeof(Index)) + " bits; use a format with wider ones");
  } else if (length > fault_report::most_detail) {
    terms.note(fault::index_overflow, "length = " + std::to_string(length) + " is more than the messages can count, " +
                                          std::to_string(fault_report::most_detail));
  }
}

/// Notes the problem of a policy's options, if any, and adds the policy to the facts that the ranks compare.
template <class Policy>
[[gnu::cold]] void check_policy(char const* role, Policy const& policy, agreement& terms) {
  terms.note(fault::option_out_of_range, policy.problem());
  terms.fact(role, policy.describe());
}

/// Base of the states of algorithms, each a plain value. A state that has more than the iteration hides what follows.
struct call_state {
  std::int64_t iteration = 0; ///< calls so far

  bool operator==(call_state const&) const = default;

  /// Notes what is wrong with a saved state, and lists what must be equal on all ranks. Without: nothing.
  void check(agreement&, int /*ranks*/, std::int64_t /*length*/) const {}

  /// Forgets what belongs to this number of ranks (`for_other_ranks`). Without: nothing.
  void forget_ranks() {}
};

/// For the `check` of a state: notes the state of a selector that is impossible at that iteration.
template <class State>
void check_selector(char const* role, State const& state, std::int64_t iteration, agreement& terms) {
  if (!state.is_sound(iteration)) {
    terms.note(fault::bad_state, std::string("the saved state of the ") + role + " selector is damaged");
  }
}

/// Notes the fault of a saved state, if any: an iteration that no object can have reached or could continue from, or
/// what its `check` finds. Adds the values that must be equal on all ranks to the facts.
template <class State>
void check_state(State const& saved, int ranks, std::int64_t length, agreement& terms) {
  std::int64_t const iteration = saved.iteration;
  if (iteration < 0 || iteration > std::numeric_limits<std::int64_t>::max() / 2) {
    terms.note(fault::bad_state, "the saved iteration " + std::to_string(iteration) + " is damaged");
  }
  terms.fact("iteration", iteration);
  saved.check(terms, ranks, length);
}

/// The number of entries that a selection with these options should have.
template <class Options>
double expected_k(Options const& how) {
  auto const length = static_cast<double>(how.length);
  return how.k ? static_cast<double>(*how.k) : std::clamp(how.density.value_or(0) * length, 1.0, std::max(length, 1.0));
}

} // namespace oktopk::detail
