// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A policy that is chosen at run time keeps the contract of its kind, whichever of its list it is.

#include "partition/suite.hpp"
#include "select/suite.hpp"

#include <oktopk/catalogue/one_of.hpp>
#include <oktopk/catalogue/policies.hpp>

#include <tuple>

using namespace oktopk_tests;

namespace {

/// Calls `check(choice, name)` for every alternative of a list, with its own options.
template <class OneOf, class List, class Check>
void for_each_choice(List const& list, Check const& check) {
  auto const one = [&]<class Policy>(oktopk::detail::alternative<Policy> const& listed) {
    typename OneOf::options how;
    how.chosen = oktopk::detail::choice_of<Policy>();
    check(OneOf(how), std::string(listed.name));
  };
  std::apply([&](auto const&... each) { (one(each), ...); }, list);
}

} // namespace

TEST_CASE("one of several local selectors is a selector, whichever it is") {
  for_each_choice<oktopk::catalogue::any_local_selector>(
      oktopk::catalogue::local_selectors, [](auto const& chosen, std::string const& name) {
        INFO(name);
        check_selector(chosen, {.exactly_k = name == "exact" || name == "chunked" || name == "random",
                                .several_ranks = name != "gaussian" && name != "chunked" && name != "random",
                                .by_magnitude = name != "random"});
      });
}

TEST_CASE("one of several global selectors is a selector of several ranks, whichever it is") {
  for_each_choice<oktopk::catalogue::any_global_selector>(oktopk::catalogue::global_selectors,
                                                          [](auto const& chosen, std::string const& name) {
                                                            INFO(name);
                                                            check_selector(chosen, {.exactly_k = name == "exact"});
                                                          });
}

TEST_CASE("one of several partitioners is a partitioner, whichever it is") {
  for_each_choice<oktopk::catalogue::any_partitioner>(oktopk::catalogue::partitioners,
                                                      [](auto const& chosen, std::string const& name) {
                                                        INFO(name);
                                                        check_partitioner(chosen);
                                                      });
}
