// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/checks/checks.hpp"

#include "fuzz/reference.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>

namespace oktopk_fuzz {

namespace {

// How far a codec's decoded value may be off, where `largest` is the largest magnitude around it.
long double rounding_of(facts const& about, options const& how, long double largest) {
  bool const single = about.value_bytes == 4;
  long double const rate = std::exp2(1.0L - static_cast<long double>(how.codec_rate));
  switch (about.codec) {
  case rounding::none: return 0;
  case rounding::bfloat16: return std::max(largest, 0x1p-126L) * (0x1p-8L + 0x1p-23L);
  case rounding::block_float: {
    long double const least = single ? static_cast<long double>(std::numeric_limits<float>::min())
                                     : static_cast<long double>(std::numeric_limits<double>::min());
    return 2 * std::max(largest, least) * rate * (1 + rate);
  }
  case rounding::zfp: return std::max(largest * 1024 * rate, single ? 0x1p-98L : 0x1p-962L);
  }
  return 0;
}

} // namespace

template <class Value>
verdict check_dense(seen_call<Value> const& seen) {
  auto const n = static_cast<std::size_t>(seen.length());
  bool all_negative_zero = true;
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    auto const& mine = seen.ranks[rank];
    bool all = mine.update.indices.size() == n && mine.contributed.size() == n;
    for (std::size_t i = 0; i < n && all; ++i) {
      all = mine.contributed[i] == static_cast<std::int64_t>(i);
    }
    if (!all || mine.statistics.local_selected != seen.length()) {
      return finding{"dense_form",
                     "rank " + std::to_string(rank) + ": not every index is in the update or contributed"};
    }
    if (seen.about.lossless() && mine.returned.size() > 0) {
      return finding{"returned",
                     "rank " + std::to_string(rank) + ": something is returned, and nothing was rounded off"};
    }
  }
  // Of zeros, too, the sum is that of IEEE arithmetic: -0 of nothing but -0.
  for (std::size_t i = 0; i < n && seen.about.lossless(); ++i) {
    all_negative_zero = true;
    for (auto const& each : seen.accumulators) {
      all_negative_zero = all_negative_zero && is_negative_zero(each[i]);
    }
    if (!all_negative_zero && is_negative_zero(seen.ranks[0].update.values[i])) {
      return finding{"zero_sign", "the sum at index " + std::to_string(i) + " is -0, though not all that is summed is"};
    }
  }
  // What is rounded off: once by each rank of what it has summed so far; or once a step.
  long double most = 0;
  for (auto const& each : seen.accumulators) {
    long double largest = 0;
    for (Value const x : each) {
      largest = std::max(largest, std::fabs(static_cast<long double>(x)));
    }
    most += largest;
  }
  for (std::size_t step = 0; step < seen.ranks.size(); ++step) {
    most += rounding_of(seen.about, seen.what.how, most);
  }
  long double const times =
      seen.about.sums_round_once ? 1 : 2 + std::ceil(std::log2(static_cast<long double>(seen.ranks.size())));
  long double const limit = times * rounding_of(seen.about, seen.what.how, most);
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    auto const& returned = seen.ranks[rank].returned;
    for (std::size_t i = 0; i < returned.indices.size(); ++i) {
      if (std::fabs(static_cast<long double>(returned.values[i])) > limit) {
        return finding{"rounded_off", "rank " + std::to_string(rank) + " returns " +
                                          in_words(static_cast<double>(returned.values[i])) + " at index " +
                                          std::to_string(returned.indices[i]) + ", at most " +
                                          in_words(static_cast<double>(limit)) + " may be rounded off"};
      }
    }
  }
  return {};
}

template verdict check_dense(seen_call<float> const&);
template verdict check_dense(seen_call<double> const&);

namespace {

// A selector that has an age says whether it looked for the exact threshold, and carries it on.
template <class Value>
std::string wrong_threshold(chosen<Value> const& expected, bool has_age, bool reevaluated,
                            selector_numbers<Value> const& carried) {
  if (!expected.wrong.empty()) {
    return expected.wrong;
  }
  if (has_age && expected.reevaluated != reevaluated) {
    return expected.reevaluated ? "the threshold was not evaluated though it was due or stale"
                                : "the threshold was evaluated though it was neither due nor stale";
  }
  if (has_age && expected.has_threshold && carried.threshold != expected.threshold) {
    return "the threshold is " + in_words(static_cast<double>(carried.threshold)) + " instead of " +
           in_words(static_cast<double>(expected.threshold));
  }
  return {};
}

bool has_age(choice how) {
  return how == choice::reused || how == choice::unguarded || how == choice::gathered;
}

std::string unlike(std::vector<std::int64_t> const& is, std::vector<std::int64_t> const& expected) {
  for (std::size_t i = 0; i < std::max(is.size(), expected.size()); ++i) {
    if (i >= is.size() || i >= expected.size() || is[i] != expected[i]) {
      return std::to_string(is.size()) + " instead of " + std::to_string(expected.size()) + "; at " +
             std::to_string(i) + " " + (i < is.size() ? std::to_string(is[i]) : "none") + " instead of " +
             (i < expected.size() ? std::to_string(expected[i]) : "none");
    }
  }
  return {};
}

template <class Value>
verdict wrong_values(entries<Value> const& update, entries<Value> const& expected, std::vector<bool> const& free_sign) {
  if (auto const text = unlike(update.indices, expected.indices); !text.empty()) {
    return finding{"update_indices", "indices of the update: " + text};
  }
  for (std::size_t i = 0; i < update.indices.size(); ++i) {
    Value const is = update.values[i];
    Value const should = expected.values[i];
    if (same_bits(is, should) || (is == 0 && should == 0 && free_sign[i])) {
      continue;
    }
    return finding{is == 0 && should == 0 ? "zero_sign" : "update_values",
                   "the sum at index " + std::to_string(update.indices[i]) + " is " +
                       in_words(static_cast<double>(is)) + " instead of " + in_words(static_cast<double>(should))};
  }
  return {};
}

template <class Value>
verdict wrong_contributions(seen_call<Value> const& seen, std::vector<entries<Value>> const& selections) {
  bool const all = seen.about.all_contribute() || (seen.about.kind == family::gtopk && seen.what.how.return_dropped);
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    auto const& selected = selections[rank].indices;
    auto const& mine = seen.ranks[rank];
    std::vector<std::int64_t> expected;
    if (all) {
      expected = selected;
    } else {
      std::set_intersection(selected.begin(), selected.end(), mine.update.indices.begin(), mine.update.indices.end(),
                            std::back_inserter(expected));
    }
    if (auto const text = unlike(mine.contributed, expected); !text.empty()) {
      return finding{"contributed", "rank " + std::to_string(rank) + ": contributed: " + text};
    }
    bool const may_return = seen.about.kind == family::gtopk && seen.what.how.return_dropped;
    if (!may_return && mine.returned.size() > 0) {
      return finding{"returned", "rank " + std::to_string(rank) + ": something is returned, and nothing was dropped"};
    }
  }
  return {};
}

// The update, of the sums of all selections: their largest, as the global selector has it.
template <class Value>
verdict wrong_global_selection(seen_call<Value> const& seen, sums<Value> const& all) {
  auto const& mine = seen.ranks[0];
  options const& how = seen.what.how;
  for (std::size_t i = 0; i < all.entries_of.indices.size() && seen.what.k > 0; ++i) {
    if (!std::isfinite(all.entries_of.values[i])) {
      return finding{"overflow_missing", "the sum at index " + std::to_string(all.entries_of.indices[i]) +
                                             " overflows, and nobody says so"};
    }
  }
  selector_rule const rule{seen.about.global, how.global_tau_prime, how.global_low, how.global_high, false};
  auto const expected = choose(rule, mine.before.global, mine.before.iteration, all.entries_of, seen.what.k,
                               mine.statistics.global_selected);
  if (auto const text = wrong_threshold(expected, has_age(rule.how) && seen.what.k > 0,
                                        mine.statistics.global_reevaluated, mine.after.global);
      !text.empty()) {
    return finding{"global_threshold", text};
  }
  std::vector<bool> free_sign;
  std::size_t at = 0;
  for (std::int64_t const index : expected.selection.indices) {
    while (all.entries_of.indices[at] != index) {
      at += 1;
    }
    free_sign.push_back(all.free_sign[at]);
  }
  return wrong_values(mine.update, expected.selection, free_sign);
}

} // namespace

template <class Value>
verdict check_local_selection(seen_call<Value> const& seen, std::vector<entries<Value>>& selections) {
  options const& how = seen.what.how;
  selector_rule const rule{seen.about.local, how.local_tau_prime, how.local_low, how.local_high, true};
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    auto const& mine = seen.ranks[rank];
    auto expected = choose(rule, mine.before.local, mine.before.iteration, all_entries(seen.accumulators[rank]),
                           seen.what.k, mine.statistics.local_selected);
    std::string text = wrong_threshold(expected, has_age(rule.how) && seen.what.k > 0,
                                       mine.statistics.local_reevaluated, mine.after.local);
    if (text.empty() && static_cast<std::int64_t>(expected.selection.size()) != mine.statistics.local_selected) {
      text = std::to_string(mine.statistics.local_selected) + " entries were selected instead of " +
             std::to_string(expected.selection.size());
    }
    if (!text.empty()) {
      return finding{"local_selection", "rank " + std::to_string(rank) + ": " + text};
    }
    selections.push_back(std::move(expected.selection));
  }
  return {};
}

template <class Value>
verdict check_update(seen_call<Value> const& seen, std::vector<entries<Value>> const& selections) {
  if (auto wrong = wrong_contributions(seen, selections)) {
    return wrong;
  }
  auto const& mine = seen.ranks[0];
  auto const whole = [&](sums<Value> const& all) { return wrong_values(mine.update, all.entries_of, all.free_sign); };
  switch (seen.about.kind) {
  case family::ok_topk: return wrong_global_selection(seen, sums_by_regions(selections, mine.after.boundaries));
  case family::topk_a: return whole(sum_by_rank(selections, seen.length()));
  case family::topk_dsa:
    return whole(sums_by_regions(selections, even_boundaries(seen.length(), static_cast<int>(seen.ranks.size()))));
  case family::gtopk: {
    bool overflow = false;
    auto const root = sum_by_tree(selections, seen.length(), seen.what.k, overflow);
    if (overflow) {
      return finding{"overflow_missing", "the sum of a node overflows, and nobody says so"};
    }
    return whole(root);
  }
  case family::dense: break;
  }
  return {};
}

template verdict check_local_selection(seen_call<float> const&, std::vector<entries<float>>&);
template verdict check_update(seen_call<float> const&, std::vector<entries<float>> const&);

template verdict check_local_selection(seen_call<double> const&, std::vector<entries<double>>&);
template verdict check_update(seen_call<double> const&, std::vector<entries<double>> const&);

} // namespace oktopk_fuzz
