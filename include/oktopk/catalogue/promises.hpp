// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/select/chunked.hpp>
#include <oktopk/select/exact.hpp>

#include <concepts>
#include <limits>
#include <optional>
#include <string>

namespace oktopk {

/// The number of entries that a selection takes, in multiples of k.
struct selection_promise {
  bool exact = false; ///< the k largest magnitudes, ties to the lower index; of the sums: as they reach their owners
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  bool one_threshold = true; ///< nothing that is left out is larger than what is selected
};

/// The messages whose values a format codes.
enum class coded_messages {
  selections, ///< each rank's selection, whole, which every rank decodes, its own too
  regions,    ///< the share of a selection that lies in another rank's region; then the chosen sums of a region, to all
  tree        ///< the partial sums of each node of a tree, and the result of its root
};

/// The properties of an algorithm's results that follow from its policies, for programs that verify them.
struct allreduce_promises {
  bool selects = false;    ///< takes k or a density; dense schemes do not
  bool everything = false; ///< all entries of all ranks, summed without loss
  bool exact_sums = true;  ///< each value is the sum of the contributions, less the entries returned
  std::string rounding{};  ///< the code of the values on the wire where it rounds them, such as "bfloat16"; else empty
  coded_messages coded = coded_messages::selections;
  bool all_contribute = false; ///< every selected entry contributes, also one that is not in the result
  selection_promise local;
  std::optional<selection_promise> global; ///< of the sums; none where the ranks do not select together
};

namespace detail {

/// The promise of the selector that has these options: exact, a band, k in all from chunks, or none.
template <class Options>
selection_promise promise_of(Options const& how) {
  if constexpr (std::same_as<Options, exact::options>) {
    return {true, 1, 1};
  } else if constexpr (std::same_as<Options, chunked::options>) {
    return how.per_chunk == 0 ? selection_promise{.low = 1, .high = 1, .one_threshold = false}
                              : selection_promise{.one_threshold = false};
  } else if constexpr (requires { selection_promise{false, how.low, how.high}; }) {
    return {false, how.low, how.high};
  } else {
    return {};
  }
}

} // namespace detail

} // namespace oktopk
