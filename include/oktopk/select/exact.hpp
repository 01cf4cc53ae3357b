// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/select/concept.hpp>
#include <oktopk/select/exact_search.hpp>

#include <cstdint>
#include <string>

namespace oktopk {

/// Exactly k entries every time: the k largest magnitudes, ties to the lower index.
///
/// One rank alone reads its values little more than once, and not again to form the accumulator; several ranks sum one
/// histogram where the k-th magnitude moves as gradients do. `detail::exact_search` says how. The result does not
/// depend on the guess that is carried from call to call.
struct exact {
  struct options {};

  template <gradient_value Value>
  struct state {
    detail::search_guess<Value> guess;

    bool is_sound(std::int64_t) const { return guess.is_sound(); }
    void list_facts(agreement& terms) const { guess.list_facts(terms); }
    bool operator==(state const&) const = default;

    /// For `save` and `load`.
    template <class State, class Visit>
    static void each_part(State& carried, Visit& visit) {
      detail::search_guess<Value>::each_part(carried.guess, visit);
    }
  };

  exact() : exact(options{}) {}
  explicit exact(options) {}

  static std::string name() { return "exact"; }
  std::string describe() const { return name(); }
  std::string problem() const { return {}; }
  bool bounded() const { return true; }

  std::int64_t capacity(std::int64_t k, std::int64_t) const { return k; }

  template <execution_space E, gradient_index Index, gradient_value Value, selection_group Group,
            selection_source Source>
  selection<Index, Value, typename E::memory_space> select(selection_context<E, Index, Value, Group> const& context,
                                                           Source const& source, state<Value>& carried) const {
    detail::exact_search<E, Index, Value, Group> search(context);
    return search.run(source, carried.guess);
  }
};

} // namespace oktopk
