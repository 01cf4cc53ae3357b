// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/facts.hpp"
#include "fuzz/numbers.hpp"
#include "fuzz/options.hpp"

#include <cstdint>
#include <string>
#include <vector>

// What the library is measured against: sequential code that shares nothing with it.
namespace oktopk_fuzz {

template <class Value>
entries<Value> all_of(std::vector<Value> const& dense);

/// The k entries of the largest magnitudes, ties to the lower index; all where there are not so many.
template <class Value>
entries<Value> top(entries<Value> const& from, std::int64_t k);

/// The magnitude of the k-th largest; of the smallest where there are not so many, 0 where there is none.
template <class Value>
Value kth_magnitude(entries<Value> const& from, std::int64_t k);

/// What a selector must choose, and how.
template <class Value>
struct chosen {
  entries<Value> selection;
  bool reevaluated = false;   ///< whether it must have looked for the exact threshold
  bool has_threshold = false; ///< whether `threshold` must be carried on
  Value threshold = 0;
  std::string wrong; ///< what is wrong with what it did, in words
};

/// A selector's options.
struct selector_rule {
  choice how = choice::exact;
  std::int64_t tau_prime = 1;
  double low = 0;
  double high = 0;
  bool trims = false; ///< whether it leaves out what it has beyond k
};

/// What a selector must choose from candidates, going by what it carried into the call; `observed` is how many it has
/// chosen, which is how a Gaussian selection is followed.
template <class Value>
chosen<Value> choose(selector_rule rule, selector_numbers<Value> const& carried, std::int64_t iteration,
                     entries<Value> const& from, std::int64_t k, std::int64_t observed);

/// Sums in a fixed order, and where all that was added was -0: there the sum may be a zero of either sign.
template <class Value>
struct sums {
  entries<Value> entries_of;
  std::vector<bool> free_sign;
};

/// At the owner of each region its own entries first, then those of the rank below, and so on round the ring.
template <class Value>
sums<Value> sum_by_regions(std::vector<entries<Value>> const& parts, std::vector<std::int64_t> const& boundaries);

/// From rank 0 on.
template <class Value>
sums<Value> sum_by_rank(std::vector<entries<Value>> const& parts, std::int64_t length);

/// Up a tree whose nodes keep the k largest: at distance d = 1, 2, 4, ... rank r takes what r + d has. `overflow` is
/// set where a sum of any node is not finite.
template <class Value>
sums<Value> sum_by_tree(std::vector<entries<Value>> const& parts, std::int64_t length, std::int64_t k, bool& overflow);

/// P + 1 boundaries of regions of equal width.
std::vector<std::int64_t> even_boundaries(std::int64_t length, int ranks);

} // namespace oktopk_fuzz
