// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/catalogue/algorithms.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

/// What each scheme of the catalogue costs, for `automatic`.
namespace oktopk::catalogue {

/// Up to so many ranks stages of few messages save so little that they are not tried.
inline constexpr int few_ranks = 8;

/// The texts of a scheme's variants that send different words or messages: formats and their values, or codecs of
/// messages; on many ranks stages of few messages too.
template <class E, class Value, class Index, class Scheme>
std::vector<std::string> variants_of(Scheme const& scheme, int ranks) {
  std::string const name(scheme.name);
  std::vector<std::string> texts{name};
  detail::option_reader in;
  scheme.template visit<E, Value, Index>(in, gradient_size{}, [](auto const&...) {});
  auto const has = [&](std::string_view key) {
    return std::ranges::any_of(in.known(), [&](auto const& option) { return option.key == key; });
  };
  auto const add = [&](std::string const& option) { texts.push_back(name + "(" + option + ")"); };
  if constexpr (Scheme::is_sparse) {
    for (std::string const& format : detail::names_of(formats)) {
      if (has("format") && format != scheme.format) {
        add("format=" + format);
      }
    }
    for (std::string const& values : detail::names_of(value_codecs)) {
      if (has("format")) {
        add("format=packed(values=" + values + ")");
      }
    }
    for (int groups = 4; has("reduce") && ranks > few_ranks && groups < ranks; groups *= 2) {
      std::string const stages = "global=foreseen, reduce=radix(" + std::to_string(groups) + ")";
      add(stages);
      add(stages + ", format=packed");
      add(stages + ", format=packed(values=bfloat16)");
    }
  } else if constexpr (Scheme::is_coded) {
    for (std::string const& codec : detail::names_of(codecs)) {
      add("codec=" + codec);
    }
  }
  return texts;
}

/// Sink of a visit: adds a variant as a forecast, if its algorithm has `expected_cost`.
struct forecasting {
  int ranks;
  bool in_free_order; // of messages
  std::vector<forecast>& all;
  std::string text;

  template <class Allreduce>
  void operator()(std::type_identity<Allreduce>, typename Allreduce::options const& how) {
    if constexpr (requires { Allreduce::expected_cost(how, ranks); }) {
      if (needs_free_order<Allreduce> && !in_free_order) {
        return;
      }
      forecast found;
      found.text = text;
      found.cost = Allreduce::expected_cost(how, ranks);
      auto const promised = Allreduce::promises(how);
      found.rounded = !promised.rounding.empty();
      found.dense = !promised.local;
      found.exact =
          !found.rounded && promised.global && promised.global->is_exact() && promised.schedule == rotated().describe();
      if constexpr (requires { how.format; }) {
        found.format = how.format.name();
      } else {
        found.format = Allreduce::coding();
      }
      // Dense schemes of the same cost differ in the ranks that they send to.
      auto const scheme = [](std::string const& of) { return of.substr(0, of.find('(')); };
      auto const same = [&](forecast const& each) {
        return each.cost == found.cost && each.format == found.format &&
               (!found.dense || scheme(each.text) == scheme(found.text));
      };
      if (std::none_of(all.begin(), all.end(), same)) { // else it is another name for the same work
        all.push_back(std::move(found));
      }
    }
  }
};

template <execution_space E, gradient_value Value, gradient_index Index, class>
std::vector<forecast> forecast_all(gradient_size const& size, int ranks, bool in_free_order) {
  std::vector<forecast> all;
  auto const add = [&](auto const& scheme) {
    for (std::string const& text : variants_of<E, Value, Index>(scheme, ranks)) {
      visit_request<E, Value, Index>(detail::allreduce_request::parse(text), size,
                                     forecasting{ranks, in_free_order, all, text});
    }
  };
  std::apply([&](auto const&... each) { (add(each), ...); }, algorithms);
  return all;
}

} // namespace oktopk::catalogue
