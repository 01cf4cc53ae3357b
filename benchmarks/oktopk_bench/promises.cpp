// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "promises.hpp"

#include <oktopk/catalogue/algorithms.hpp>
#include <oktopk/core/checkpoint.hpp>

#include <algorithm>
#include <concepts>
#include <sstream>
#include <type_traits>
#include <variant>

// All that looks into every algorithm of the catalogue, once for all communicators.
namespace oktopk_bench {

namespace {

/// The promise of the selector that has these options: exact, a band, k in all from chunks or at random places, or
/// none.
template <class Options>
selection_promise promise_of(Options const& how) {
  if constexpr (requires { how.chosen; }) {
    return std::visit([](auto const& choice) { return promise_of(choice.options); }, how.chosen);
  } else if constexpr (std::same_as<Options, oktopk::exact::options>) {
    return {true, 1, 1};
  } else if constexpr (std::same_as<Options, oktopk::detail::foreseen_search::options>) {
    return {.exact = true, .low = 1, .high = 1, .as_rounded = true};
  } else if constexpr (std::same_as<Options, oktopk::chunked::options>) {
    return how.per_chunk == 0 ? selection_promise{.low = 1, .high = 1, .one_threshold = false}
                              : selection_promise{.one_threshold = false};
  } else if constexpr (std::same_as<Options, oktopk::random_k::options>) {
    return {.low = 1, .high = 1, .one_threshold = false};
  } else if constexpr (requires { selection_promise{false, how.low, how.high}; }) {
    return {false, how.low, how.high};
  } else {
    return {};
  }
}

template <class Allreduce>
inline constexpr bool sums_everything = false;

template <class E, class Comm, class Value, class Index, class Reduce>
inline constexpr bool sums_everything<oktopk::dense<E, Comm, Value, Index, Reduce>> = Reduce::lossless;

template <class Allreduce>
allreduce_promises promises_of(typename Allreduce::options const& how) {
  allreduce_promises promised;
  promised.everything = sums_everything<Allreduce>;
  if constexpr (requires { how.local_select; }) {
    promised.local = promise_of(how.local_select);
    promised.selects = promised.all_contribute = true;
  }
  if constexpr (requires { how.deliver; }) {
    promised.global = promise_of(how.deliver.global_select);
    promised.all_contribute = false;
  }
  if constexpr (requires { how.return_dropped; }) {
    promised.exact_sums = promised.all_contribute = how.return_dropped;
    promised.coded = coded_messages::tree;
  } else if constexpr (requires { how.schedule; }) {
    promised.coded = coded_messages::regions;
  }
  if constexpr (requires { how.format.values(); }) {
    promised.rounding = oktopk::detail::is_lossy(how.format) ? how.format.values().name() : std::string();
  }
  if (promised.global && promised.global->as_rounded && !promised.rounding.empty()) {
    promised.global->one_threshold = false; // of the sums as their owners have them
    promised.sums = coded_sums::with_others;
  }
  if constexpr (requires { how.partition.chosen; }) {
    promised.contiguous = std::visit(
        []<class One>(One const& one) {
          if constexpr (std::same_as<typename One::type, oktopk::uniform>) {
            return one.options.blocks == 1;
          }
          return true;
        },
        how.partition.chosen);
  }
  return promised;
}

} // namespace

allreduce_promises promises_of(std::string const& text) {
  allreduce_promises promised;
  oktopk::catalogue::visit_request<Kokkos::DefaultHostExecutionSpace, float, std::int32_t>(
      oktopk::detail::allreduce_request::parse(text), {},
      [&]<class Allreduce>(std::type_identity<Allreduce>, typename Allreduce::options const& how) {
        promised = promises_of<Allreduce>(how);
      });
  return promised;
}

std::vector<std::int64_t> boundaries_of(oktopk::any_allreduce<space> const& algorithm, int ranks) {
  std::vector<std::int64_t> boundaries;
  auto const take_from = [&]<class Allreduce>(std::type_identity<Allreduce>) {
    auto const& checkpoint = algorithm.state().checkpoint;
    std::istringstream in(std::string(checkpoint.begin(), checkpoint.end()));
    boundaries = oktopk::load<typename Allreduce::state_type>(in).boundaries;
  };
  using format = oktopk::coo<>; // the state does not depend on it
  if (algorithm.name() == "ok_topk") {
    take_from(std::type_identity<oktopk::catalogue::any_ok_topk<space, oktopk::any_communicator, format>>());
  } else if (algorithm.name() == "paper_ok_topk") {
    take_from(std::type_identity<oktopk::paper_ok_topk<space, oktopk::any_communicator,
                                                       oktopk::with_format<format, oktopk::paper_policies>>>());
  } else {
    for (std::int64_t rank = 0; rank <= ranks; ++rank) {
      boundaries.push_back(algorithm.length() / ranks * rank + std::min(rank, algorithm.length() % ranks));
    }
  }
  return boundaries;
}

} // namespace oktopk_bench
