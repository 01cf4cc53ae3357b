// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/select/concept.hpp>

/// Every value whose magnitude is at least 1, however many they are; nothing where k is 0.
struct at_least_one {
  struct options {};

  template <oktopk::gradient_value Value>
  struct state { // all that is carried from call to call: here nothing
    static bool is_sound(std::int64_t) { return true; }
    static void list_facts(oktopk::agreement&) {}
    template <class State, class Visit>
    static void each_part(State&, Visit&) {}
  };

  at_least_one() : at_least_one(options{}) {}
  explicit at_least_one(options) {}

  static std::string name() { return "at_least_one"; }
  static std::string describe() { return name(); }
  static std::string problem() { return {}; }
  static bool bounded() { return false; }
  static std::int64_t capacity(std::int64_t, std::int64_t length) { return length; }

  template <oktopk::execution_space E, oktopk::gradient_index Index, oktopk::gradient_value Value,
            oktopk::selection_group Group, oktopk::selection_source Source>
  oktopk::selection<Index, Value, typename E::memory_space>
  select(oktopk::selection_context<E, Index, Value, Group> const& context, Source const& source, state<Value>&) const {
    context.workspace.reserve(context.exec, source.size());
    Index* const indices = context.workspace.indices.data();
    Value* const values = context.workspace.values.data();
    bool const any = context.k > 0;
    Source const from = source;
    std::int64_t count = 0;
    Kokkos::parallel_scan(
        "at_least_one::select", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(context.exec, 0, from.size()),
        KOKKOS_LAMBDA(std::int64_t i, std::int64_t & position, bool final) {
          Value const x = final ? from.load(i) : from.peek(i); // every value is loaded, selected or not
          if (any && (x >= 1 || x <= -1 || x != x)) {          // a NaN counts as the largest
            if (final) {
              indices[position] = from.index(i);
              values[position] = x;
            }
            position += 1;
          }
        },
        count);
    context.exec.fence();
    return {context.workspace.entries(count), context.group.gather_counts(count), false};
  }
};
