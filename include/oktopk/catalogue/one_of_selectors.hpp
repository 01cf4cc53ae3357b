// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/catalogue/one_of.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/select/concept.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace oktopk {

/// A selector that is one of several, chosen at run time by its options.
///
/// An algorithm that takes it is compiled once and not once for each of them; the results are those of the chosen one.
/// A selector for local selections only, or for global ones only, goes with others of its kind.
template <class... Selectors>
class one_of_selectors {
public:
  struct options {
    std::variant<detail::choice_of<Selectors>...> chosen;
  };

  /// The state of one of them, the chosen one after the first selection.
  template <gradient_value Value>
  struct state {
    std::variant<typename Selectors::template state<Value>...> one;

    bool is_sound(std::int64_t iteration) const {
      return std::visit([&](auto const& own) { return own.is_sound(iteration); }, one);
    }

    void list_facts(agreement& terms) const {
      terms.fact("selector", name());
      std::visit([&](auto const& own) { own.list_facts(terms); }, one);
    }

    /// For `save` and `load`: the name of the selector, and its own state.
    template <class State, class Visit>
    static void each_part(State& carried, Visit& visit) {
      std::string const own = carried.name();
      std::vector<char> name(own.begin(), own.end());
      visit(name);
      if constexpr (!std::is_const_v<State>) {
        carried.become(std::string(name.begin(), name.end()));
      }
      detail::with_index<sizeof...(Selectors)>(carried.one.index(), [&](auto which) {
        std::variant_alternative_t<which(), decltype(one)>::each_part(std::get<which()>(carried.one), visit);
      });
    }

  private:
    static std::vector<std::string> names() { return {std::string(Selectors::name())...}; }
    std::string name() const { return names()[one.index()]; }

    void become(std::string const& name) {
      bool known = false;
      detail::with_index<sizeof...(Selectors)>(index_of(name), [&](auto which) {
        one.template emplace<which()>();
        known = true;
      });
      if (!known) {
        throw error(fault::bad_file, "the checkpoint holds the state of an unknown selector");
      }
    }

    static std::size_t index_of(std::string const& name) {
      auto const all = names();
      std::size_t index = 0;
      while (index < all.size() && all[index] != name) {
        index += 1;
      }
      return index;
    }
  };

  one_of_selectors() : one_of_selectors(options{}) {}
  explicit one_of_selectors(options const& how) : chosen_(detail::made_from(how.chosen)) {}

  static std::string name() { return "one_of_selectors"; }

  std::string describe() const {
    return std::visit([](auto const& one) { return std::string(one.describe()); }, chosen_);
  }

  std::string problem() const {
    return std::visit([](auto const& one) { return std::string(one.problem()); }, chosen_);
  }

  bool bounded() const {
    return std::visit([](auto const& one) { return one.bounded(); }, chosen_);
  }

  std::int64_t capacity(std::int64_t k, std::int64_t length) const {
    return std::visit([&](auto const& one) { return one.capacity(k, length); }, chosen_);
  }

  template <execution_space E, gradient_index Index, gradient_value Value, selection_group Group,
            selection_source Source>
    requires(selects_from<Selectors, E, Index, Value, Group, Source> && ...)
  selection<Index, Value, typename E::memory_space> select(selection_context<E, Index, Value, Group> const& context,
                                                           Source const& source, state<Value>& carried) const {
    selection<Index, Value, typename E::memory_space> result;
    detail::with_index<sizeof...(Selectors)>(chosen_.index(), [&](auto which) {
      if (carried.one.index() != which()) {
        carried.one.template emplace<which()>();
      }
      result = std::get<which()>(chosen_).select(context, source, std::get<which()>(carried.one));
    });
    return result;
  }

private:
  std::variant<Selectors...> chosen_;
};

} // namespace oktopk
