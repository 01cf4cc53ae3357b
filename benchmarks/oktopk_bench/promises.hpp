// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/catalogue/algorithms.hpp>
#include <oktopk/comm/self.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

namespace oktopk_bench {

/// The number of entries that a selection takes, in multiples of k.
struct selection_promise {
  bool exact = false; ///< the k largest magnitudes, ties to the lower index; of the sums: as they reach their owners
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  bool one_threshold = true; ///< nothing that is left out is larger than what is selected
  bool as_rounded = false;   ///< by the values that all ranks have, also where a format has rounded them
};

/// The messages whose values a format codes.
enum class coded_messages {
  selections, ///< each rank's selection, whole, which every rank decodes, its own too
  regions,    ///< the share of a selection that lies in another rank's region; then the chosen sums of a region, to all
  tree        ///< the partial sums of each node of a tree, and the result of its root
};

/// What is coded together of the chosen sums of a region, where a format codes them.
enum class coded_sums {
  parts,      ///< all of them, or as parts are cut where they are balanced
  pieces,     ///< from the first one on, as many as the mean of the regions
  with_others ///< all of them and some that are not chosen
};

/// The properties of an algorithm's results that follow from its policies.
struct allreduce_promises {
  bool selects = false;    ///< takes k or a density; dense schemes do not
  bool everything = false; ///< all entries of all ranks, summed without loss
  bool exact_sums = true;  ///< each value is the sum of the contributions, less the entries returned
  std::string rounding{};  ///< the code of the values on the wire where it rounds them, such as "bfloat16"; else empty
  coded_messages coded = coded_messages::selections;
  coded_sums sums = coded_sums::parts;
  bool contiguous = true;      ///< the region of each rank
  bool all_contribute = false; ///< every selected entry contributes, also one that is not in the result
  selection_promise local;
  std::optional<selection_promise> global; ///< of the sums; none where the ranks do not select together
};

/// The promise of the selector that has these options: exact, a band, k in all from chunks or at random places, or
/// none.
template <class Options>
selection_promise promise_of(Options const& how) {
  if constexpr (requires { how.chosen; }) {
    return std::visit([](auto const& choice) { return promise_of(choice.options); }, how.chosen);
  } else if constexpr (std::same_as<Options, oktopk::exact::options>) {
    return {true, 1, 1};
  } else if constexpr (std::same_as<Options, oktopk::foreseen::options>) {
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
  if constexpr (requires { how.global_select; }) {
    promised.global = promise_of(how.global_select);
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
  if constexpr (requires { how.gather.chosen; }) {
    bool const in_ring =
        std::visit([]<class One>(One const&) { return std::same_as<typename One::type, oktopk::ring_allgatherv>; },
                   how.gather.chosen);
    promised.sums = in_ring && promised.sums == coded_sums::parts ? coded_sums::pieces : promised.sums;
  }
  return promised;
}

/// Of the algorithm that a text names; the text is one that `make_allreduce` takes.
inline allreduce_promises promises_of(std::string const& text) {
  allreduce_promises promised;
  oktopk::catalogue::visit_request<Kokkos::DefaultHostExecutionSpace, float, std::int32_t>(
      oktopk::detail::allreduce_request::parse(text), {},
      [&]<class Allreduce>(std::type_identity<Allreduce>, typename Allreduce::options const& how) {
        promised = promises_of<Allreduce>(how);
      });
  return promised;
}

} // namespace oktopk_bench
