// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/checks/checks.hpp"

#include "fuzz/reference.hpp"

#include <algorithm>
#include <cmath>

namespace oktopk_fuzz {

namespace {

void expect_at_most(char const* what, double is, double most) {
  expect(is <= most, "volume", what, ": ", is, " words sent, at most ", most);
}

double levels(std::size_t ranks) {
  return std::ceil(std::log2(static_cast<double>(ranks)));
}

/// The most words of so many entries in so many pieces, in a format whose size depends on the entries.
double words_of_pieces(seen_call const& seen, double count, double pieces) {
  auto const whole = seen.about.most_bytes(static_cast<std::int64_t>(count), seen.length());
  return (static_cast<double>(whole) + pieces * static_cast<double>(seen.about.piece_bytes)) / 4;
}

/// The stages of the reduce phase, for one rank.
struct stages {
  double count = 0;
  std::int64_t messages = 0; ///< sent
  bool uneven = false;       ///< some ranks receive more than they send
};

stages stages_of(seen_call const& seen, std::size_t rank) {
  auto const ranks = static_cast<int>(seen.ranks.size());
  auto const cuts = seen.about.cuts(ranks, seen.length(), seen.what.k);
  if (cuts.empty() || ranks == 1) {
    return {1, ranks - 1, false};
  }
  stages found;
  int place = static_cast<int>(rank);
  for (int range = ranks; range > 1;) { // every g-th rank is in a group
    int const groups = cuts[static_cast<std::size_t>(range)];
    found.count += 1;
    found.messages += groups - 1;
    found.uneven = found.uneven || range % groups != 0;
    range = range / groups + (place % groups < range % groups ? 1 : 0);
    place /= groups;
  }
  return found;
}

/// The words of `ok_topk`, phase by phase, as docs/algorithms.md has them; for whatever was selected.
void check_ok_topk(seen_call const& seen, std::vector<std::int64_t> indices, std::size_t rank) {
  using oktopk::phase;
  auto const& mine = seen.ranks[rank];
  auto const& about = seen.about;
  auto const sent = [&](phase p) { return mine.traffic[static_cast<std::size_t>(p)].words_sent(); };
  auto const ranks = static_cast<double>(seen.ranks.size());
  double const others = ranks - 1;
  bool const folds = (seen.ranks.size() & (seen.ranks.size() - 1)) != 0;
  double const rounds = levels(seen.ranks.size()) + (folds ? 1 : 0);
  double const e = about.entry_words();
  auto const k = static_cast<double>(seen.what.k);
  auto const chosen = static_cast<double>(mine.update.size());
  // Of full sums a dense sum of as many values, by halving and doubling: twice where ranks fold.
  double const full = about.promised.full_sums ? (chosen + 2) * static_cast<double>(about.values.bytes) / 4 : 0;
  auto const& global = *about.promised.global;
  choice const rule = rule_of(about.promised.global);
  bool const gathers = rule == choice::gathered && mine.statistics.global_reevaluated;

  // What lies in other regions, and a header of two words a message.
  auto const places = places_in_regions(seen.length(), seen.what.ranks, seen.about.blocks());
  for (std::int64_t& index : indices) {
    index = places[static_cast<std::size_t>(index)];
  }
  std::sort(indices.begin(), indices.end());
  auto const b = regions_used(seen);
  auto const own = b.empty() ? 0.0
                             : static_cast<double>(std::ranges::lower_bound(indices, b[rank + 1]) -
                                                   std::ranges::lower_bound(indices, b[rank]));
  double const outside = static_cast<double>(indices.size()) - own;
  double const reduced = about.exact_size ? e * outside + others * (2 + (e == 3 ? 1 : 0))
                                          : words_of_pieces(seen, outside, others) + others * 2;
  stages const of_reduce = stages_of(seen, rank);
  // Later stages pass on sums, of no more entries than there are.
  double const passed_on = about.exact_size ? e * static_cast<double>(seen.length())
                                            : words_of_pieces(seen, static_cast<double>(seen.length()), others);
  expect_at_most("reduce", sent(phase::reduce),
                 full + reduced + (of_reduce.count - 1) * (passed_on + others * (4 + (e == 3 ? 1 : 0))));
  // Balancing and gathering: twice all but one part, parts that differ by an entry, each from a multiple of 8 bytes on.
  bool const bounded = about.promised.gather.find("bound_sent false") == std::string::npos;
  double const part_rounding = others * (e + (e == 3 ? 1 : 0));
  // Where a format's size depends on the entries: every owner's piece, cut at most once for each part.
  double const once = about.exact_size ? e * chosen : words_of_pieces(seen, chosen, 2 * ranks);
  double const balanced = about.exact_size ? 2 * once * others / ranks + part_rounding : 2 * once;
  double const uneven = levels(seen.ranks.size()) * once + balanced; // each step may send all there is
  // A gather that foresees: twice the last result and 16 entries of each rank, a header of each.
  auto const of_result = static_cast<double>(seen.result_size());
  double const most = 2 * of_result + 16 * ranks;
  double const foreseen = !global.as_sent    ? 0
                          : about.exact_size ? e * most + others * (2 + (e == 3 ? 1 : 0))
                                             : words_of_pieces(seen, most, ranks) + others * 2;
  if (!gathers) {
    expect_at_most("balance and gather", sent(phase::balance) + sent(phase::gather),
                   (bounded ? balanced : uneven) + foreseen + 2 * full);
  }
  expect_at_most("sizes", sent(phase::control), 6 * others); // announced, told, told again when stale
  // Regions that are checked: two sums to even them, 128 more, and the one that finds them uneven.
  std::string const regions = policy_in(about.promised.partition);
  double const sums = regions == "uniform"            ? 0
                      : regions == "balanced"         ? mine.statistics.repartitioned ? 1 : 0
                      : mine.statistics.repartitioned ? 132
                                                      : 1;
  expect_at_most("partition", sent(phase::partition), sums * 2 * ranks * rounds);
  // k/2 in all, or the least that histograms of 16 counts take, for a search in a range and one among all magnitudes.
  double const digits = 2 * (8.0 * about.values.bytes - 1) / 4 + 2;
  double const least = rounds * digits * 16 * 2 + 20 * others;
  bool const searches = rule == choice::exact || (rule != choice::gathered && mine.statistics.global_reevaluated);
  expect_at_most("threshold", gathers ? 0 : sent(phase::threshold), searches ? of_result / 2 + least : 0);
  // Of full sums one a halving, and one a doubling; folded ranks and their neighbours have another number of them,
  // and empty parts may have none.
  auto const in_full_sums = static_cast<std::int64_t>(about.promised.full_sums && chosen > 0 ? rounds : 0);
  // One message to each peer to reduce; P + 2R to balance and gather (equation 3), R more for each further choice.
  auto const& reduce = mine.traffic[static_cast<std::size_t>(phase::reduce)];
  auto const in_reduce = [&](std::int64_t messages) {
    std::int64_t const beside = messages - static_cast<std::int64_t>(of_reduce.messages);
    return beside == in_full_sums || ((folds || chosen < ranks) && beside >= 0 && beside <= in_full_sums);
  };
  bool const as_many_received =
      in_reduce(reduce.messages_received) || (of_reduce.uneven && reduce.messages_received > 0);
  expect(in_reduce(reduce.messages_sent) && as_many_received, "messages", reduce.messages_sent,
         " messages sent to reduce and ", reduce.messages_received, " received, not one for each peer or other group");
  auto const second = mine.traffic[static_cast<std::size_t>(phase::balance)].messages_sent +
                      mine.traffic[static_cast<std::size_t>(phase::gather)].messages_sent;
  expect(static_cast<double>(second) <= ranks + (gathers || global.as_sent ? 2 : 1) * levels(seen.ranks.size()) +
                                            static_cast<double>(in_full_sums),
         "messages", second, " messages sent to balance and gather");
  // All together, for selections of k in regions that are balanced as far as this rank is concerned.
  // Selections that nothing bounds beforehand count in the bound as they were.
  double const selected =
      std::isfinite(about.promised.local->high) ? k : std::max(k, static_cast<double>(indices.size()));
  if (outside <= selected * others / ranks && (!std::isfinite(global.high) || chosen <= (bounded ? 1.5 * k : k))) {
    expect_at_most("all together", mine.words(), mine.bound_words);
  }
}

// Regions of which one got more than `most` times k entries, and P, are forgotten; others are not, nor are any in stages.
void check_noticed(seen_call const& seen, std::vector<entries> const& selections) {
  auto const& about = seen.about;
  call_record const& mine = seen.ranks[0];
  std::vector<std::int64_t> const& b = mine.before.boundaries;
  if (policy_in(about.promised.partition) != "sampled" || rule_of(about.promised.local) != choice::exact ||
      mine.statistics.repartitioned || b.empty()) {
    return;
  }
  bool is_uneven = false;
  for (std::size_t region = 0; region < seen.ranks.size() && stages_of(seen, 0).count == 1; ++region) {
    double load = -static_cast<double>(seen.ranks.size());
    for (entries const& each : selections) {
      load += static_cast<double>(std::ranges::lower_bound(each.indices, b[region + 1]) -
                                  std::ranges::lower_bound(each.indices, b[region]));
    }
    auto const k = static_cast<double>(seen.what.k);
    bool const is_chance = load - k <= 4 * std::sqrt(k);
    is_uneven = is_uneven || (!is_chance && load > option_in(about.promised.partition, "most") * k);
  }
  expect(mine.after.boundaries.empty() == is_uneven, "regions",
         is_uneven ? "uneven ones are kept" : "forgotten, though they are even");
}

} // namespace

void check_volume(seen_call const& seen, std::vector<entries> const& selections) {
  if (seen.about.is_ok_topk() && !selections.empty()) {
    check_noticed(seen, selections);
  }
  double const others = seen.what.ranks - 1;
  std::int64_t most_selected = 0;
  for (entries const& each : selections) {
    most_selected = std::max(most_selected, each.size());
  }
  auto const m = static_cast<double>(most_selected);
  double const e = seen.about.entry_words();
  // The bounds of these are for selections of k; a threshold without a band may select more.
  bool const of_k = rule_of(seen.about.promised.local) == choice::gaussian || most_selected <= seen.what.k;
  // At most all sums of a region as entries; headers, sizes, and sizes once more that are announced before.
  double const region = std::ceil(static_cast<double>(seen.length()) / seen.what.ranks) * e;
  check_each(seen.ranks, [&](call_record const& mine, std::size_t rank) {
    double most = mine.bound_words;
    if (!seen.about.promised.repeats) { // a scheme that is made has control messages beside the bound
      most += mine.traffic[static_cast<std::size_t>(oktopk::phase::control)].words_sent();
    }
    if (seen.about.is_ok_topk()) {
      return selections.empty() ? void() : check_ok_topk(seen, selections[rank].indices, rank);
    }
    if (!of_k && seen.about.promised.sums == facts::order::of_ranks) {
      most = (m * e + 3) * others;
    } else if (!of_k && seen.about.promised.sums == facts::order::of_owners) {
      most = m * e + others * (region + 8);
    }
    expect_at_most("all together", mine.words(), most);
  });
}

} // namespace oktopk_fuzz
