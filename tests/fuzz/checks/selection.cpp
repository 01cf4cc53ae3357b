// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/checks/checks.hpp"

#include "fuzz/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

namespace oktopk_fuzz {

namespace {

// How far a codec's decoded value may be off, where `largest` is the largest magnitude around it.
long double rounding_of(facts const& about, long double largest) {
  std::string const& code = about.promised.rounding; // `block_float 8` has 8 bits a value
  long double const rate = std::exp2(1.0L - std::strtold(code.c_str() + policy_in(code).size(), nullptr));
  switch (about.codec()) {
  case rounding::none: return 0;
  case rounding::bfloat16: return std::max(largest, 0x1p-126L) * (0x1p-8L + 0x1p-23L);
  case rounding::float16: return std::max({largest * 0x1p-11L, 0x1p-25L, largest - 65504});
  case rounding::block_float:
    return 2 * std::max(largest, static_cast<long double>(about.values.least)) * rate * (1 + rate);
  case rounding::zfp: return std::max(largest * 1024 * rate, about.values.bytes == 4 ? 0x1p-98L : 0x1p-962L);
  case rounding::other: return std::numeric_limits<long double>::infinity();
  }
  return 0;
}

void check_indices(char const* check, std::vector<std::int64_t> const& is, std::vector<std::int64_t> const& expected) {
  auto const [a, b] = std::mismatch(is.begin(), is.end(), expected.begin(), expected.end());
  expect(is == expected, check, is.size(), " indices instead of ", expected.size(), "; at ", a - is.begin(), " ",
         a == is.end() ? "none" : std::to_string(*a), " instead of ",
         b == expected.end() ? "none" : std::to_string(*b));
}

// The update, to the bit; a sum of negative zeros may be a zero of either sign.
void check_values(seen_call const& seen, entries const& expected, std::vector<entries> const& selections) {
  entries const& update = seen.ranks[0].update;
  check_indices("update_indices", update.indices, expected.indices);
  for (std::size_t i = 0; i < update.indices.size(); ++i) {
    double const is = update.values[i];
    double const should = expected.values[i];
    bool const zeros = is == 0 && should == 0;
    if (!same_bits(is, should)) {
      expect(zeros && sums_negative_zeros(selections, update.indices[i]), zeros ? "zero_sign" : "update_values",
             "the sum at index ", update.indices[i], " is ", is, " instead of ", should);
    }
  }
}

// Values of the update are sums of all that the ranks have there, within rounding.
void check_full_sums(seen_call const& seen) {
  entries const& update = seen.ranks[0].update;
  for (std::size_t i = 0; i < update.indices.size(); ++i) {
    long double sum = 0;
    long double size = 0;
    for (numbers const& each : seen.accumulators) {
      auto const x = static_cast<long double>(each[static_cast<std::size_t>(update.indices[i])]);
      sum += x;
      size += std::fabs(x);
    }
    long double const most =
        static_cast<long double>(seen.ranks.size()) * (static_cast<long double>(seen.about.values.epsilon) * size +
                                                       static_cast<long double>(seen.about.values.denormal));
    expect(std::fabs(static_cast<long double>(update.values[i]) - sum) <= most, "full_sums", "the sum at index ",
           update.indices[i], " is ", update.values[i], " instead of ", sum);
  }
}

// The update, of the sums of all selections: their largest, as the global selector has it.
entries choose_globally(seen_call const& seen, entries const& all) {
  call_record const& mine = seen.ranks[0];
  for (std::size_t i = 0; i < all.indices.size() && seen.what.k > 0; ++i) {
    expect(std::isfinite(all.values[i]), "overflow_missing", "the sum at index ", all.indices[i],
           " overflows, and nobody says so");
  }
  fuzz_case of_result = seen.what;
  of_result.k = seen.result_size();
  return choose({seen.about.promised.global, false, mine.before.global, mine.after.global,
                 mine.statistics.global_selected, mine.statistics.global_reevaluated},
                of_result, mine.before.iteration, all);
}

entries expected_update(seen_call const& seen, std::vector<entries> const& selections) {
  bool overflow = false;
  entries update;
  using enum oktopk::allreduce_promises::order;
  switch (seen.about.promised.sums) {
  case of_owners: {
    if (!seen.about.promised.global) {
      return oktopk_tests::sum_by_regions(selections, even_boundaries(seen.length(), seen.what.ranks),
                                          adder_of(seen.what));
    }
    auto const boundaries = regions_used(seen);
    if (boundaries.empty()) {
      return seen.ranks[0].update; // made and forgotten in one call: nobody knows the order of sums
    }
    auto const places = places_in_regions(seen.length(), seen.what.ranks, seen.about.blocks());
    std::vector<std::int64_t> indices(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      indices[static_cast<std::size_t>(places[i])] = static_cast<std::int64_t>(i);
    }
    std::vector<entries> parts;
    for (auto const& each : selections) {
      parts.push_back(moved_to(places, each));
    }
    auto const cuts = seen.about.cuts(seen.what.ranks, seen.length(), seen.what.k);
    entries const sums = cuts.empty() ? oktopk_tests::sum_by_regions(parts, boundaries, adder_of(seen.what))
                                      : sum_in_stages(seen.what, parts, boundaries, cuts);
    return moved_to(indices, choose_globally(seen, sums));
  }
  case of_ranks: return sum_by_rank(seen.what, selections);
  case of_tree: update = sum_by_tree(seen.what, selections, overflow); break;
  case any: break;
  }
  expect(!overflow, "overflow_missing", "the sum of a node overflows, and nobody says so");
  return update;
}

} // namespace

void check_dense(seen_call const& seen) {
  auto const n = static_cast<std::size_t>(seen.length());
  std::vector<std::int64_t> every;
  for (std::int64_t i = 0; i < seen.length(); ++i) {
    every.push_back(i);
  }
  check_each(seen.ranks, [&](call_record const& mine, std::size_t) {
    expect(mine.update.indices == every && mine.contributed == every && mine.statistics.local_selected == seen.length(),
           "dense_form", "not every index is in the update or contributed");
    expect(!seen.about.lossless() || mine.returned.size() == 0, "returned",
           "something is returned, and nothing was rounded off");
  });
  // Of zeros, too, the sum is that of IEEE arithmetic: -0 of nothing but -0.
  for (std::size_t i = 0; i < n && seen.about.lossless(); ++i) {
    expect(!is_negative_zero(seen.ranks[0].update.values[i]) ||
               std::all_of(seen.accumulators.begin(), seen.accumulators.end(),
                           [&](numbers const& each) { return is_negative_zero(each[i]); }),
           "zero_sign", "the sum at index ", i, " is -0, though not all that is summed is");
  }
  // What is rounded off: once a step at most, and the result.
  long double most = 0;
  for (numbers const& each : seen.accumulators) {
    most += static_cast<long double>(largest_of(each));
  }
  for (std::size_t step = 0; step < seen.ranks.size(); ++step) {
    most += rounding_of(seen.about, most);
  }
  long double const times = 2 + std::ceil(std::log2(static_cast<long double>(seen.ranks.size())));
  long double const limit = times * rounding_of(seen.about, most);
  check_each(seen.ranks, [&](call_record const& mine, std::size_t) {
    for (std::size_t i = 0; i < mine.returned.indices.size(); ++i) {
      expect(std::fabs(static_cast<long double>(mine.returned.values[i])) <= limit, "rounded_off",
             mine.returned.values[i], " is returned at index ", mine.returned.indices[i], ", at most ", limit,
             " may be rounded off");
    }
  });
}

std::vector<entries> check_selections(seen_call const& seen) {
  std::vector<entries> selections;
  check_each(seen.ranks, [&](call_record const& mine, std::size_t rank) {
    std::int64_t const count = mine.statistics.local_selected;
    selections.push_back(choose({seen.about.promised.local, true, mine.before.local, mine.after.local, count,
                                 mine.statistics.local_reevaluated},
                                seen.what, mine.before.iteration, all_entries(seen.accumulators[rank])));
    auto const& selected = selections.back().indices;
    expect(selections.back().size() == count, "local_selection", count, " entries were selected instead of ",
           selected.size());
    std::vector<std::int64_t> expected = selected;
    if (seen.about.promised.full_sums) {
      expected = mine.update.indices;
    } else if (!seen.about.promised.all_contribute) {
      expected.clear();
      std::set_intersection(selected.begin(), selected.end(), mine.update.indices.begin(), mine.update.indices.end(),
                            std::back_inserter(expected));
    }
    check_indices("contributed", mine.contributed, expected);
    bool const may_round = !seen.about.lossless() && !seen.about.promised.full_sums;
    expect(seen.about.returns_dropped() || may_round || mine.returned.size() == 0, "returned",
           "something is returned, and nothing was dropped");
  });
  if (seen.about.promised.full_sums) {
    check_full_sums(seen);
  }
  if (seen.about.knows_update()) {
    entries const expected = expected_update(seen, selections);
    seen.about.promised.full_sums ? check_indices("update_indices", seen.ranks[0].update.indices, expected.indices)
                                  : check_values(seen, expected, selections);
  }
  return selections;
}

} // namespace oktopk_fuzz
