// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/record.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

// What the library is measured against: sequential code that shares nothing with it.
namespace oktopk_fuzz {

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

/// Sums in a fixed order, and where all that was added was -0: there the sum may be a zero of either sign.
template <class Value>
struct sums {
  entries<Value> entries_of;
  std::vector<bool> free_sign;
};

using oktopk_tests::all_entries;
using oktopk_tests::at_least;
using oktopk_tests::top;

/// The magnitude of the k-th largest; of the smallest where there are not so many, 0 where there is none.
template <class Value>
Value kth_magnitude(entries<Value> const& from, std::int64_t k) {
  entries<Value> const largest = top(from, k);
  return largest.size() == 0 ? Value(0) : smallest(largest);
}

// The x for which a standard normal number is larger with this probability, at most one half.
inline long double upper_quantile(long double probability) {
  long double low = 0;
  long double high = 40;
  for (int step = 0; step < 200; ++step) {
    long double const middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0L)) / 2 > probability ? low : high) = middle;
  }
  return low;
}

// All that reaches |mean| + standard deviation x quantile(1 - k / 2n), and nothing else: which entries these are
// follows from their number, if that is right.
template <class Value>
chosen<Value> choose_gaussian(entries<Value> const& from, std::int64_t k, std::int64_t observed) {
  chosen<Value> result;
  result.reevaluated = true;
  if (k == 0 || from.size() == 0) {
    return result;
  }
  auto const size = static_cast<long double>(from.size());
  long double mean = 0;
  long double largest = 0;
  for (Value const x : from.values) {
    mean += static_cast<long double>(x) / size;
    largest = std::max(largest, std::fabs(static_cast<long double>(x)));
  }
  long double variance = 0;
  for (Value const x : from.values) {
    long double const away = static_cast<long double>(x) - mean;
    variance += away / size * away;
  }
  long double const threshold =
      std::fabs(mean) + std::sqrt(variance) * upper_quantile(static_cast<long double>(k) / (2 * size));
  // Sums of doubles, and a threshold rounded to the type of the values.
  long double const slack = (largest + threshold) * (sizeof(Value) == 4 ? 1e-6L : 1e-11L) +
                            static_cast<long double>(std::numeric_limits<Value>::denorm_min());
  std::int64_t surely = 0;
  std::int64_t perhaps = 0;
  for (Value const x : from.values) {
    auto const magnitude = std::fabs(static_cast<long double>(x));
    surely += magnitude > threshold + slack ? 1 : 0;
    perhaps += magnitude >= threshold - slack ? 1 : 0;
  }
  if (observed < surely || observed > perhaps) {
    result.wrong = std::to_string(observed) + " were selected, where the threshold " +
                   in_words(static_cast<double>(threshold)) + " lets " + std::to_string(surely) + " to " +
                   std::to_string(perhaps) + " through";
    return result;
  }
  result.selection = top(from, observed);
  if (observed > 0 && at_least(from, kth_magnitude(from, observed)).size() != result.selection.size()) {
    result.wrong = std::to_string(observed) + " were selected, which parts equal magnitudes";
  }
  return result;
}

/// What a selector must choose from candidates, going by what it carried into the call; `observed` is how many it has
/// chosen, which is how a Gaussian selection is followed.
template <class Value>
chosen<Value> choose(selector_rule rule, selector_numbers<Value> const& carried, std::int64_t iteration,
                     entries<Value> const& from, std::int64_t k, std::int64_t observed) {
  if (rule.how == choice::gaussian) {
    return choose_gaussian(from, k, observed);
  }
  chosen<Value> result;
  if (k == 0) {
    return result;
  }
  bool const has_age = rule.how != choice::exact;
  bool const fresh = has_age && carried.evaluated >= 0 && iteration - carried.evaluated < rule.tau_prime;
  if (fresh) {
    entries<Value> const reused = at_least(from, carried.threshold);
    auto const count = static_cast<double>(reused.size());
    auto const wanted = static_cast<double>(k);
    if (rule.how != choice::reused || (count >= rule.low * wanted && count <= rule.high * wanted)) {
      bool const trimmed = rule.trims && rule.how == choice::reused && std::isfinite(rule.high) && count > wanted;
      result.selection = trimmed ? top(reused, k) : reused;
      result.has_threshold = true;
      result.threshold = carried.threshold;
      return result;
    }
  }
  result.reevaluated = true;
  result.selection = top(from, k);
  if (has_age && static_cast<std::int64_t>(from.size()) >= k) {
    result.has_threshold = true;
    result.threshold = kth_magnitude(from, k);
  }
  if (rule.how == choice::gathered) { // ties with the k-th stay
    result.selection = at_least(from, kth_magnitude(from, k));
  }
  return result;
}

// A dense sum that knows what was added where.
template <class Value>
class accumulated {
public:
  explicit accumulated(std::int64_t length)
      : values_(static_cast<std::size_t>(length), Value(0)), touched_(values_.size(), 0) {}

  void add(std::int64_t index, Value value) {
    auto const i = static_cast<std::size_t>(index);
    values_[i] += value;
    touched_[i] = static_cast<char>(touched_[i] | (is_negative_zero(value) ? 1 : 2));
  }

  void add(entries<Value> const& part) {
    for (std::size_t i = 0; i < part.indices.size(); ++i) {
      add(part.indices[i], part.values[i]);
    }
  }

  sums<Value> taken() const {
    sums<Value> all;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (touched_[i] != 0) {
        all.entries_of.push_back(static_cast<std::int64_t>(i), values_[i]);
        all.free_sign.push_back(touched_[i] == 1);
      }
    }
    return all;
  }

private:
  std::vector<Value> values_;
  std::vector<char> touched_;
};

template <class Value>
std::size_t first_from(entries<Value> const& part, std::int64_t index) {
  return static_cast<std::size_t>(std::lower_bound(part.indices.begin(), part.indices.end(), index) -
                                  part.indices.begin());
}

/// At the owner of each region its own entries first, then those of the rank below, and so on round the ring.
template <class Value>
sums<Value> sums_by_regions(std::vector<entries<Value>> const& parts, std::vector<std::int64_t> const& boundaries) {
  accumulated<Value> all(boundaries.back());
  for (std::size_t owner = 0; owner < parts.size(); ++owner) {
    for (std::size_t step = 0; step < parts.size(); ++step) {
      auto const& part = parts[(owner + parts.size() - step) % parts.size()];
      std::size_t const end = first_from(part, boundaries[owner + 1]);
      for (std::size_t i = first_from(part, boundaries[owner]); i < end; ++i) {
        all.add(part.indices[i], part.values[i]);
      }
    }
  }
  return all.taken();
}

/// From rank 0 on.
template <class Value>
sums<Value> sum_by_rank(std::vector<entries<Value>> const& parts, std::int64_t length) {
  accumulated<Value> all(length);
  for (auto const& part : parts) {
    all.add(part);
  }
  return all.taken();
}

/// Up a tree whose nodes keep the k largest: at distance d = 1, 2, 4, ... rank r takes what r + d has. `overflow` is
/// set where a sum of any node is not finite.
template <class Value>
sums<Value> sum_by_tree(std::vector<entries<Value>> const& parts, std::int64_t length, std::int64_t k, bool& overflow) {
  std::vector<entries<Value>> nodes;
  for (auto const& part : parts) {
    nodes.push_back(top(part, k));
  }
  for (std::size_t distance = 1; distance < nodes.size(); distance *= 2) {
    for (std::size_t rank = 0; rank + distance < nodes.size(); rank += 2 * distance) {
      auto const merged = sum_by_rank<Value>({nodes[rank], nodes[rank + distance]}, length).entries_of;
      for (Value const x : merged.values) {
        overflow = overflow || !std::isfinite(x);
      }
      nodes[rank] = top(merged, k);
    }
  }
  sums<Value> result;
  result.entries_of = nodes[0];
  // Which zeros may have either sign follows from all that was put in.
  auto const everything = sum_by_rank(parts, length);
  for (std::int64_t const index : nodes[0].indices) {
    result.free_sign.push_back(everything.free_sign[first_from(everything.entries_of, index)]);
  }
  return result;
}

/// P + 1 boundaries of regions of equal width.
inline std::vector<std::int64_t> even_boundaries(std::int64_t length, int ranks) {
  std::vector<std::int64_t> boundaries(static_cast<std::size_t>(ranks) + 1);
  for (std::int64_t r = 0; r <= ranks; ++r) {
    boundaries[static_cast<std::size_t>(r)] = length / ranks * r + std::min<std::int64_t>(r, length % ranks);
  }
  return boundaries;
}

} // namespace oktopk_fuzz
