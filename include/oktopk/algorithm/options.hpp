// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/agreement.hpp>
#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/select/concept.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <sstream>
#include <string>

namespace oktopk::detail {

/// k as given, or round(density x length) but at least 1; notes a fault where that makes no sense.
inline std::int64_t resolve_k(std::int64_t length, std::optional<std::int64_t> k, std::optional<double> density,
                              agreement& terms) {
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
  if (!(*density > 0 && *density <= 1)) {
    std::ostringstream text;
    text << "density = " << *density << " is not in (0, 1]";
    terms.note(fault::density_out_of_range, text.str());
    return 0;
  }
  std::int64_t const rounded = std::llround(*density * static_cast<double>(length));
  return std::min(length, std::max<std::int64_t>(rounded, 1));
}

/// Notes a length that is negative or that the index type cannot count to.
template <gradient_index Index>
void check_length(std::int64_t length, agreement& terms) {
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

/// Notes what a policy says is wrong with its options, and writes the policy down for the ranks to compare.
template <class Policy>
void check_policy(char const* role, Policy const& policy, agreement& terms) {
  if (std::string const sentence = policy.problem(); !sentence.empty()) {
    terms.note(fault::option_out_of_range, sentence);
  }
  terms.fact(role, policy.describe());
}

/// The agreement of all schemes that only select locally: length, k, format, selector, and the facts of
/// `more(agreement)`. Gives k. Collective.
template <sparse_format Format, selector LocalSelector, communicator Comm, class More>
std::int64_t agree_on_selection(char const* algorithm, std::int64_t length, std::optional<std::int64_t> k,
                                std::optional<double> density, Format const& format, LocalSelector const& local,
                                Comm& comm, More const& more) {
  agreement terms(algorithm);
  check_length<typename Format::index_type>(length, terms);
  std::int64_t const resolved = resolve_k(length, k, density, terms);
  terms.fact("length", length).fact("k", resolved).fact("format", format.name());
  check_policy("local selector", local, terms);
  more(terms);
  terms.check_on(comm);
  return resolved;
}

/// Notes an iteration that no object can have come to, or could not go on from.
inline void check_iteration(std::int64_t iteration, agreement& terms) {
  if (iteration < 0 || iteration > std::numeric_limits<std::int64_t>::max() / 2) {
    terms.note(fault::bad_state, "the saved iteration " + std::to_string(iteration) + " is damaged");
  }
}

/// Notes saved boundaries of regions that are none, where there are some.
inline void check_boundaries(std::span<std::int64_t const> saved, int ranks, std::int64_t length, agreement& terms) {
  bool const fits = saved.empty() || (saved.size() == static_cast<std::size_t>(ranks) + 1 && saved.front() == 0 &&
                                      saved.back() == length && std::is_sorted(saved.begin(), saved.end()));
  if (!fits) {
    terms.note(fault::bad_state, "the saved boundaries are of another length or number of ranks, or damaged");
  }
}

/// Notes a selector's state that it cannot have carried into that iteration.
template <class State>
void check_selector_state(char const* role, State const& state, std::int64_t iteration, agreement& terms) {
  if (!state.is_sound(iteration)) {
    terms.note(fault::bad_state, std::string("the saved state of the ") + role + " selector is damaged");
  }
}

/// Agrees on a state of an iteration and nothing else. Collective.
template <communicator Comm>
void agree_on_iteration(std::string const& algorithm, std::int64_t iteration, Comm& comm) {
  agreement terms(algorithm + "::restore");
  check_iteration(iteration, terms);
  terms.fact("iteration", iteration).check_on(comm);
}

/// Agrees on a state of iterations and local selections: ranks compare the iteration, and each checks its own
/// selector's state. Collective.
template <class State, communicator Comm>
void agree_on_selection_state(std::string const& algorithm, State const& saved, Comm& comm) {
  agreement terms(algorithm + "::restore");
  check_iteration(saved.iteration, terms);
  check_selector_state("local", saved.local, saved.iteration, terms);
  terms.fact("iteration", saved.iteration).check_on(comm);
}

} // namespace oktopk::detail
