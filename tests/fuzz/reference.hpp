// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/record.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

// What the library is measured against: sequential code that shares nothing with it.
namespace oktopk_fuzz {

/// A selector, and what it did in a call.
struct selector_call {
  std::optional<oktopk::selection_promises> const& promised;
  bool trims = false; ///< whether it leaves out what it has beyond k
  selector_numbers const& before;
  selector_numbers const& after;
  std::int64_t selected = 0;
  bool reevaluated = false;
};

using oktopk_tests::all_entries;
using oktopk_tests::at_least;
using oktopk_tests::top;

inline bool is_negative_zero(double x) {
  return x == 0 && std::signbit(x);
}

inline double largest_of(numbers const& values) {
  double largest = 0;
  for (double const x : values) {
    largest = std::max(largest, std::fabs(x));
  }
  return largest;
}

inline bool all_finite(numbers const& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
}

/// The magnitude of the k-th largest; of the smallest where there are not so many, 0 where there is none.
inline double kth_magnitude(entries const& from, std::int64_t k) {
  entries const largest = top(from, k);
  return largest.size() == 0 ? 0 : smallest(largest);
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
inline entries choose_gaussian(value_type const& values, entries const& from, std::int64_t k, std::int64_t selected) {
  if (k == 0 || from.size() == 0) {
    return {};
  }
  auto const size = static_cast<long double>(from.size());
  long double mean = 0;
  for (double const x : from.values) {
    mean += static_cast<long double>(x) / size;
  }
  long double variance = 0;
  for (double const x : from.values) {
    long double const away = static_cast<long double>(x) - mean;
    variance += away / size * away;
  }
  long double const threshold =
      std::fabs(mean) + std::sqrt(variance) * upper_quantile(static_cast<long double>(k) / (2 * size));
  // Sums of doubles, and a threshold rounded to the type of the values.
  long double const slack =
      (static_cast<long double>(largest_of(from.values)) + threshold) * (values.bytes == 4 ? 1e-6L : 1e-11L) +
      static_cast<long double>(values.denormal);
  std::int64_t surely = 0;
  std::int64_t perhaps = 0;
  for (double const x : from.values) {
    auto const magnitude = std::fabs(static_cast<long double>(x));
    surely += magnitude > threshold + slack ? 1 : 0;
    perhaps += magnitude >= threshold - slack ? 1 : 0;
  }
  expect(selected >= surely && selected <= perhaps, "local_selection", selected, " were selected, where the threshold ",
         threshold, " lets ", surely, " to ", perhaps, " through");
  entries chosen = top(from, selected);
  expect(selected == 0 || at_least(from, kth_magnitude(from, selected)).size() == chosen.size(), "local_selection",
         selected, " were selected, which parts equal magnitudes");
  return chosen;
}

/// The largest of each chunk, k in all: as many of each as it has values in proportion, the last chunk rounded down.
inline entries choose_of_chunks(entries const& from, std::int64_t chunk, std::int64_t k) {
  std::int64_t const whole = from.size() / chunk;
  std::int64_t const rest = from.size() % chunk;
  std::int64_t const last = rest > 0 ? k * rest / from.size() : 0;
  entries chosen;
  for (std::int64_t which = 0; which * chunk < from.size(); ++which) {
    entries own;
    for (std::int64_t i = which * chunk; i < std::min((which + 1) * chunk, from.size()); ++i) {
      own.push_back(from.indices[static_cast<std::size_t>(i)], from.values[static_cast<std::size_t>(i)]);
    }
    auto const best = top(own, which == whole ? last : (which + 1) * (k - last) / whole - which * (k - last) / whole);
    for (std::size_t i = 0; i < best.indices.size(); ++i) {
      chosen.push_back(best.indices[i], best.values[i]);
    }
  }
  return chosen;
}

/// What a selector must choose from candidates, going by what it carried into the call, or by how many it has chosen
/// where it is a Gaussian one. One that has an age says whether it looked for the exact threshold, and carries it on.
inline entries choose(selector_call const& call, fuzz_case const& what, std::int64_t iteration, entries const& from) {
  std::int64_t const k = what.k;
  choice const how = rule_of(call.promised);
  if (how == choice::gaussian) {
    return choose_gaussian(what.values, from, k, call.selected);
  }
  if (k == 0) {
    return {};
  }
  if (how == choice::chunked) {
    return choose_of_chunks(from, static_cast<std::int64_t>(option_in(call.promised->rule, "chunk")), k);
  }
  bool const has_age = how != choice::exact;
  char const* const check = call.trims ? "local_selection" : "global_threshold";
  if (has_age && call.before.evaluated >= 0 &&
      static_cast<double>(iteration - call.before.evaluated) < option_in(call.promised->rule, "tau'")) {
    entries const reused = at_least(from, call.before.threshold);
    auto const count = static_cast<double>(reused.size());
    auto const wanted = static_cast<double>(k);
    if (how != choice::reused || (count >= call.promised->low * wanted && count <= call.promised->high * wanted)) {
      expect(!call.reevaluated, check, "the threshold was evaluated though it was neither due nor stale");
      expect(call.after.threshold == call.before.threshold, check, "the threshold has changed");
      bool const trimmed = call.trims && std::isfinite(call.promised->high) && count > wanted;
      return trimmed ? top(reused, k) : reused;
    }
  }
  double const kth = kth_magnitude(from, k);
  expect(!has_age || call.reevaluated, check, "the threshold was not evaluated though it was due or stale");
  expect(!has_age || from.size() < k || call.after.threshold == kth, check, "the threshold is ", call.after.threshold,
         " instead of ", kth);
  return how == choice::gathered ? at_least(from, kth) : top(from, k); // ties with the k-th stay
}

/// Entries by their indices.
inline entries ascending(entries const& from) {
  std::vector<std::pair<std::int64_t, double>> pairs;
  for (std::size_t i = 0; i < from.indices.size(); ++i) {
    pairs.emplace_back(from.indices[i], from.values[i]);
  }
  std::sort(pairs.begin(), pairs.end());
  entries sorted;
  for (auto const& [index, value] : pairs) {
    sorted.push_back(index, value);
  }
  return sorted;
}

/// A sum as the values of a case have it.
inline auto adder_of(fuzz_case const& what) {
  return [values = what.values](double a, double b) { return values.rounded(a + b); };
}

/// From rank 0 on.
inline entries sum_by_rank(fuzz_case const& what, std::vector<entries> parts) {
  std::reverse(parts.begin() + 1, parts.end()); // the other way round the ring
  std::vector<std::int64_t> one_region(parts.size() + 1, what.how.length);
  one_region[0] = 0;
  return oktopk_tests::sum_by_regions(parts, one_region, adder_of(what));
}

/// Ranks in the order in which all groups of all stages are ranges: of a range every g-th one is in a group, where
/// `cuts` has the number g of groups for each size of a range.
inline std::vector<std::size_t> order_in_stages(std::vector<std::size_t> const& range, std::vector<int> const& cuts) {
  auto const groups = static_cast<std::size_t>(cuts[range.size()]);
  std::vector<std::size_t> all;
  for (std::size_t group = 0; group < groups; ++group) {
    std::vector<std::size_t> members;
    for (std::size_t i = group; i < range.size(); i += groups) {
      members.push_back(range[i]);
    }
    if (members.size() > 1) {
      members = order_in_stages(members, cuts);
    }
    all.insert(all.end(), members.begin(), members.end());
  }
  return all;
}

/// In stages: a range of ranks in the order of stages is cut into groups, as even as can be. A rank adds, for the regions
/// of its group, what the ranks at its place have in the groups before, one group after the other. The last rank of a
/// larger group belongs to that place in a smaller one that the number of its group tells. `place_of` tells whose region
/// an index is in.
template <class PlaceOf>
entries sum_in_stages(fuzz_case const& what, std::vector<entries> const& parts, PlaceOf const& place_of,
                      std::vector<int> const& cuts, std::size_t first = 0) {
  if (parts.size() == 1) {
    return sum_by_rank(what, parts);
  }
  auto const groups = static_cast<std::size_t>(cuts[parts.size()]);
  auto const begin_of = [&](std::size_t group) {
    return parts.size() / groups * group + std::min(group, parts.size() % groups);
  };
  entries all;
  for (std::size_t group = 0; group < groups; ++group) {
    std::size_t const size = begin_of(group + 1) - begin_of(group);
    std::vector<entries> next;
    for (std::size_t place = 0; place < size; ++place) {
      std::vector<entries> summed{parts[begin_of(group) + place]};
      for (std::size_t step = 1; step < groups; ++step) {
        std::size_t const other = (group + groups - step) % groups;
        std::size_t const other_size = begin_of(other + 1) - begin_of(other);
        if (place < other_size) {
          summed.push_back(parts[begin_of(other) + place]);
        }
        if (other_size > size && other % size == place) {
          summed.push_back(parts[begin_of(other + 1) - 1]);
        }
      }
      entries const sums = sum_by_rank(what, summed);
      entries own;
      for (std::size_t i = 0; i < sums.indices.size(); ++i) {
        std::size_t const owner = place_of(sums.indices[i]);
        bool const is_own = owner >= first + begin_of(group) && owner < first + begin_of(group + 1);
        is_own ? own.push_back(sums.indices[i], sums.values[i]) : void();
      }
      next.push_back(own);
    }
    entries const sums = sum_in_stages(what, next, place_of, cuts, first + begin_of(group));
    for (std::size_t i = 0; i < sums.indices.size(); ++i) {
      all.push_back(sums.indices[i], sums.values[i]);
    }
  }
  return all;
}

/// The same for selections in the order of ranks.
inline entries sum_in_stages(fuzz_case const& what, std::vector<entries> const& parts,
                             std::vector<std::int64_t> const& boundaries, std::vector<int> const& cuts) {
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  order = order_in_stages(order, cuts);
  std::vector<entries> in_order;
  for (std::size_t const rank : order) {
    in_order.push_back(parts[rank]);
  }
  auto const place_of = [&](std::int64_t index) {
    auto const rank = std::upper_bound(boundaries.begin(), boundaries.end(), index) - boundaries.begin() - 1;
    return static_cast<std::size_t>(std::find(order.begin(), order.end(), static_cast<std::size_t>(rank)) -
                                    order.begin());
  };
  return ascending(sum_in_stages(what, in_order, place_of, cuts));
}

/// Up a tree whose nodes keep the k largest: at distance d = 1, 2, 4, ... rank r takes what r + d has. `overflow` is
/// set where a sum of any node is not finite.
inline entries sum_by_tree(fuzz_case const& what, std::vector<entries> const& parts, bool& overflow) {
  std::vector<entries> nodes;
  for (auto const& part : parts) {
    nodes.push_back(top(part, what.k));
  }
  for (std::size_t distance = 1; distance < nodes.size(); distance *= 2) {
    for (std::size_t rank = 0; rank + distance < nodes.size(); rank += 2 * distance) {
      entries const merged = sum_by_rank(what, {nodes[rank], nodes[rank + distance]});
      overflow = overflow || !all_finite(merged.values);
      nodes[rank] = top(merged, what.k);
    }
  }
  return nodes[0];
}

/// Whether all that is summed at an index is -0: then the sum may be a zero of either sign.
inline bool sums_negative_zeros(std::vector<entries> const& parts, std::int64_t index) {
  return std::all_of(parts.begin(), parts.end(), [&](entries const& part) {
    auto const at = std::lower_bound(part.indices.begin(), part.indices.end(), index);
    return at == part.indices.end() || *at != index ||
           is_negative_zero(part.values[static_cast<std::size_t>(at - part.indices.begin())]);
  });
}

/// The regions of a call; none if the call has made uneven ones, which its state has forgotten.
inline std::vector<std::int64_t> regions_used(seen_call const& seen) {
  auto const& mine = seen.ranks[0];
  return mine.after.boundaries.empty() && !mine.statistics.repartitioned ? mine.before.boundaries
                                                                         : mine.after.boundaries;
}

/// P + 1 boundaries of regions of equal width.
inline std::vector<std::int64_t> even_boundaries(std::int64_t length, std::int64_t ranks) {
  std::vector<std::int64_t> boundaries;
  for (std::int64_t r = 0; r <= ranks; ++r) {
    boundaries.push_back(length / ranks * r + std::min(r, length % ranks));
  }
  return boundaries;
}

/// The place of each index where regions follow each other: a region has so many blocks, which ranks take in turn.
inline std::vector<std::int64_t> places_in_regions(std::int64_t length, std::int64_t ranks, std::int64_t blocks) {
  blocks = ranks * std::max<std::int64_t>(std::min(blocks, length / ranks), 1);
  auto const begins = even_boundaries(length, blocks);
  std::vector<std::int64_t> places(static_cast<std::size_t>(length));
  std::int64_t place = 0;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    for (auto block = static_cast<std::size_t>(rank); block + 1 < begins.size();
         block += static_cast<std::size_t>(ranks)) {
      for (std::int64_t index = begins[block]; index < begins[block + 1]; ++index) {
        places[static_cast<std::size_t>(index)] = place++;
      }
    }
  }
  return places;
}

/// Entries whose indices are moved to other places, ascending.
inline entries moved_to(std::vector<std::int64_t> const& places, entries from) {
  for (std::int64_t& index : from.indices) {
    index = places[static_cast<std::size_t>(index)];
  }
  return ascending(from);
}

} // namespace oktopk_fuzz
