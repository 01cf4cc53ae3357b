// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "result.hpp"

#include <oktopk/catalogue/any_allreduce.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

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

/// Of the algorithm that a text names; the text is one that `make_allreduce` takes.
allreduce_promises promises_of(std::string const& text);

/// Of the regions of the last call: Ok-Topk's are in its state, the others' are even.
std::vector<std::int64_t> boundaries_of(oktopk::any_allreduce<space> const& algorithm, int ranks);

} // namespace oktopk_bench
