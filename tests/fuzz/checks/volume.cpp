// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/checks/checks.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace oktopk_fuzz {

namespace {

verdict more_than(std::size_t rank, char const* what, double is, double most) {
  if (is <= most) {
    return {};
  }
  return finding{"volume", "rank " + std::to_string(rank) + ", " + what + ": " + in_words(is) +
                               " words sent, at most " + in_words(most)};
}

double levels(std::size_t ranks) {
  return std::ceil(std::log2(static_cast<double>(ranks)));
}

/// The most words of so many entries in so many pieces, in a format whose size depends on the entries.
template <class Value>
double words_of_pieces(seen_call<Value> const& seen, double entries, double pieces) {
  auto const whole =
      seen.about.most_bytes(static_cast<std::int64_t>(entries), static_cast<std::int64_t>(seen.length()));
  return (static_cast<double>(whole) + pieces * static_cast<double>(seen.about.piece_bytes)) / 4;
}

/// The words of `ok_topk`, phase by phase, as docs/algorithms.md has them; for whatever was selected.
template <class Value>
verdict check_ok_topk(seen_call<Value> const& seen, std::vector<entries<Value>> const& selections, std::size_t rank) {
  using oktopk::phase;
  auto const& mine = seen.ranks[rank];
  auto const& about = seen.about;
  auto const& how = seen.what.how;
  auto const sent = [&](phase p) { return mine.traffic[static_cast<std::size_t>(p)].words_sent(); };
  auto const ranks = static_cast<double>(seen.ranks.size());
  double const others = ranks - 1;
  bool const folds = (seen.ranks.size() & (seen.ranks.size() - 1)) != 0;
  double const rounds = levels(seen.ranks.size()) + (folds ? 1 : 0);
  double const e = about.entry_words();
  auto const k = static_cast<double>(seen.what.k);
  auto const chosen = static_cast<double>(mine.update.size());
  bool const gathers = about.global == choice::gathered && mine.statistics.global_reevaluated;

  // What lies in other regions, and a header of two words a message.
  auto const& b = mine.after.boundaries;
  auto const& indices = selections[rank].indices;
  auto const own = static_cast<double>(std::lower_bound(indices.begin(), indices.end(), b[rank + 1]) -
                                       std::lower_bound(indices.begin(), indices.end(), b[rank]));
  double const outside = static_cast<double>(indices.size()) - own;
  double const reduced = about.exact_size ? e * outside + others * (2 + (e == 3 ? 1 : 0))
                                          : words_of_pieces(seen, outside, others) + others * 2;
  if (auto more = more_than(rank, "reduce", sent(phase::reduce), reduced)) {
    return more;
  }
  // Balancing and gathering: twice all but one part, parts that differ by an entry, each from a multiple of 8 bytes on.
  bool const bounded = !about.paper_gather && how.bound_sent;
  double const part_rounding = others * (e + (e == 3 ? 1 : 0));
  // Where a format's size depends on the entries: every owner's piece, cut at most once for each part.
  double const once = about.exact_size ? e * chosen : words_of_pieces(seen, chosen, 2 * ranks);
  double const balanced = about.exact_size ? 2 * once * others / ranks + part_rounding : 2 * once;
  double const uneven = levels(seen.ranks.size()) * once + balanced; // each step may send all there is
  if (!gathers) {
    double const gathering = sent(phase::balance) + sent(phase::gather);
    if (auto more = more_than(rank, "balance and gather", gathering, bounded ? balanced : uneven)) {
      return more;
    }
  }
  if (auto more =
          more_than(rank, "sizes", sent(phase::control), 6 * others)) { // announced, told, told again when stale
    return more;
  }
  double const partition_rounds = about.uniform_regions ? 0 : about.has.rounds ? 1.0 + how.rounds : 1.0;
  if (auto more = more_than(rank, "partition", sent(phase::partition),
                            mine.statistics.repartitioned ? partition_rounds * 2 * ranks * rounds : 0)) {
    return more;
  }
  // k/2 in all, or the least that histograms of 16 counts take, for a search in a range and one among all magnitudes.
  double const digits = 2 * (8.0 * about.value_bytes - 1) / 4 + 2;
  double const least = rounds * digits * 16 * 2 + 20 * others;
  bool const searches =
      about.global == choice::exact || (about.global != choice::gathered && mine.statistics.global_reevaluated);
  if (auto more = more_than(rank, "threshold", gathers ? 0 : sent(phase::threshold), searches ? k / 2 + least : 0)) {
    return more;
  }
  // All together, for selections of k in regions that are balanced as far as this rank is concerned.
  // A selection that nothing bounds beforehand counts in the bound as it was.
  bool const by_last_call = about.local == choice::gaussian || about.local == choice::unguarded ||
                            (about.local == choice::reused && !std::isfinite(how.local_high));
  double const selected = by_last_call ? std::max(k, static_cast<double>(indices.size())) : k;
  if (outside <= selected * others / ranks && (about.paper_gather || chosen <= (bounded ? 1.5 * k : k))) {
    return more_than(rank, "all together", mine.words(), mine.bound_words);
  }
  return {};
}

} // namespace

template <class Value>
verdict check_volume(seen_call<Value> const& seen, std::vector<entries<Value>> const& selections) {
  auto const others = static_cast<double>(seen.ranks.size()) - 1;
  std::size_t most_selected = 0;
  for (auto const& each : selections) {
    most_selected = std::max(most_selected, each.indices.size());
  }
  auto const m = static_cast<double>(most_selected);
  double const e = seen.about.entry_words();
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    auto const& mine = seen.ranks[rank];
    verdict more;
    // The bounds of these are for selections of k; a threshold without a band may select more.
    bool const of_k = seen.about.local == choice::gaussian || m <= static_cast<double>(seen.what.k);
    switch (seen.about.kind) {
    case family::ok_topk: more = check_ok_topk(seen, selections, rank); break;
    case family::gtopk:
    case family::dense: more = more_than(rank, "all together", mine.words(), mine.bound_words); break;
    case family::topk_a:
      more = more_than(rank, "all together", mine.words(), of_k ? mine.bound_words : (m * e + 3) * others);
      break;
    case family::topk_dsa: {
      // At most all sums of a region as entries; headers, sizes, and sizes once more that are announced before.
      double const region = std::ceil(static_cast<double>(seen.length()) / (others + 1)) * e;
      more = more_than(rank, "all together", mine.words(), of_k ? mine.bound_words : m * e + others * (region + 8));
      break;
    }
    }
    if (more) {
      return more;
    }
  }
  return {};
}

template verdict check_volume(seen_call<float> const&, std::vector<entries<float>> const&);
template verdict check_volume(seen_call<double> const&, std::vector<entries<double>> const&);

} // namespace oktopk_fuzz
