// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace oktopk {

/// A policy that a text can name: a line of a list in `catalogue/policies.hpp`.
template <class Policy>
struct alternative {
  using type = Policy;
  std::string_view name;
  std::string_view about;
};

namespace detail {

/// The options of one of several policies; a type of its own, for policies may share their type of options.
template <class Policy>
struct choice_of {
  using type = Policy;
  typename Policy::options options;
};

/// `OneOf<Policies...>` for a list of `alternative<Policies>...`.
template <template <class...> class OneOf, class List>
struct one_of_list;

template <template <class...> class OneOf, class... Policies>
struct one_of_list<OneOf, std::tuple<alternative<Policies>...> const> {
  using type = OneOf<Policies...>;
};

/// Calls `action` with the constant of that index.
template <std::size_t Count, class Action>
void with_index(std::size_t index, Action const& action) {
  [&]<std::size_t... Each>(std::index_sequence<Each...>) {
    (void)((index == Each && (action(std::integral_constant<std::size_t, Each>()), true)) || ...);
  }(std::make_index_sequence<Count>());
}

/// The policies of a choice, made from their options.
template <class... Policies>
std::variant<Policies...> made_from(std::variant<choice_of<Policies>...> const& chosen) {
  std::variant<Policies...> made;
  with_index<sizeof...(Policies)>(
      chosen.index(), [&](auto which) { made.template emplace<which()>(std::get<which()>(chosen).options); });
  return made;
}

} // namespace detail

} // namespace oktopk
