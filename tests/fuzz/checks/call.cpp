// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/checks/checks.hpp"

#include "fuzz/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <tuple>

namespace oktopk_fuzz {

namespace {

// The number behind some words; -1 where they do not occur.
std::int64_t number_after(std::string const& text, std::string const& words) {
  auto const at = text.find(words);
  return at == std::string::npos ? -1 : std::strtoll(text.c_str() + at + words.size(), nullptr, 10);
}

bool is_bad(seen_call const& seen, std::size_t rank) {
  return seen.wrong_length(rank) >= 0 || !all_finite(seen.accumulators[rank]);
}

// Whether an error speaks of sums, or of what they leave in a residual, and not of a rank's own value.
bool speaks_of_overflow(outcome const& said) {
  return said.says("sum or partial sum at index") || said.says("a partial sum overflows among the values") ||
         (said.says("the residual at index") && said.says("overflows"));
}

// Whether the partial sums at this index, of these vectors in whatever order, can have overflowed.
bool can_overflow(facts const& about, std::vector<numbers> const& vectors, std::int64_t index) {
  long double up = 0;
  long double down = 0;
  long double largest = 0; // of a codec's rounding, which goes by the largest of its neighbours
  for (numbers const& each : vectors) {
    auto const x = static_cast<long double>(each[static_cast<std::size_t>(index)]);
    (x > 0 ? up : down) += std::fabs(x);
    largest += about.lossless() ? 0 : static_cast<long double>(largest_of(each));
  }
  auto const ranks = static_cast<long double>(vectors.size());
  long double slack = ranks * static_cast<long double>(about.values.epsilon) * std::max(up, down);
  auto most = static_cast<long double>(about.values.most);
  switch (about.codec()) {
  case rounding::none: break;
  case rounding::bfloat16:
    most = static_cast<long double>(std::numeric_limits<float>::max());
    slack += std::max(up, down) * ranks / 128;
    break;
  default: slack += largest * (1 + ranks); // rates of 4 bits are drawn, too
  }
  return std::max(up, down) + slack >= most;
}

// An error may say that a sum overflows, where one can have. Of values that are coded together it names the first.
void check_overflow(seen_call const& seen, outcome const& said) {
  std::vector<numbers> healthy;
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    if (!is_bad(seen, rank)) {
      healthy.push_back(seen.accumulators[rank]);
    }
  }
  std::int64_t const first = std::max<std::int64_t>(number_after(said.text, "index "), 0);
  std::int64_t const end = std::min(first + (said.says("coded together") ? 64 : 1), seen.length());
  bool can = false;
  for (std::int64_t i = first; i < end; ++i) {
    can = can || can_overflow(seen.about, healthy, i);
  }
  expect(can, "error_index", "no sum can overflow there: ", said.text);
}

void check_blame(seen_call const& seen, std::size_t lowest, outcome const& said) {
  expect(said.says(text_of("rank ", lowest, ": ")), "error_rank", "rank ", lowest,
         " is the first bad one, but: ", said.text);
  if (std::int64_t const size = seen.wrong_length(lowest); size >= 0) {
    return expect(said.code == oktopk::fault::length_mismatch &&
                      said.says(text_of(size, " elements, expected ", seen.length())),
                  "error_length", "another length than: ", said.text);
  }
  std::int64_t const index = number_after(said.text, "index ");
  expect(said.code == oktopk::fault::non_finite && index >= 0 && index < seen.length() &&
             !std::isfinite(seen.accumulators[lowest][static_cast<std::size_t>(index)]),
         "error_index", "that value is not bad: ", said.text);
}

// All ranks return, or throw the same error; which names the lowest bad rank and something that really is bad there;
// and none throws without a reason.
void check_errors(seen_call const& seen) {
  outcome const& first = seen.ranks[0].said;
  bool const threw = seen.ranks[0].threw();
  check_each(seen.ranks, [&](call_record const& mine, std::size_t) {
    expect(mine.said == first, "error_agreement", "\"", mine.said.text, "\", rank 0 has \"", first.text, "\"");
  });
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    if (is_bad(seen, rank)) {
      expect(threw, "error_missing", "rank ", rank, " is bad, and nobody says so");
      return check_blame(seen, rank, first);
    }
  }
  if (threw) {
    expect(first.code == oktopk::fault::non_finite && speaks_of_overflow(first), "error_needless",
           "no rank is bad, but: ", first.text);
    check_overflow(seen, first);
  }
}

// A call that threw changed nothing.
void check_nothing_moved(call_record const& mine) {
  expect_same("moved_state", mine.before, mine.after);
  expect(same_bits(mine.weights_before, mine.weights_after), "moved_weights", "a step that threw changed the weights");
}

bool is_partition(std::vector<std::int64_t> const& boundaries, fuzz_case const& what) {
  return boundaries.size() == static_cast<std::size_t>(what.ranks) + 1 && boundaries.front() == 0 &&
         boundaries.back() == what.how.length && std::is_sorted(boundaries.begin(), boundaries.end());
}

void check_indices(char const* what, std::vector<std::int64_t> const& indices, std::int64_t length) {
  bool const ascend = std::adjacent_find(indices.begin(), indices.end(), std::greater_equal<>()) == indices.end();
  expect(ascend && (indices.empty() || (indices.front() >= 0 && indices.back() < length)), "form", "the indices of ",
         what, " are not ascending in [0, length)");
}

// What statistics say that is the same on all ranks.
auto of_all_ranks(oktopk::call_statistics const& s) {
  return std::tuple(s.global_selected, s.global_reevaluated, s.repartitioned, s.balanced);
}

// Updates have the form that is promised, and are the same on all ranks to the bit, as is what ranks must share of
// their states; states move on by one call; statistics tell the truth.
void check_form(seen_call const& seen, call_record const& mine) {
  auto const& s = mine.statistics;
  expect(!mine.input_changed, "form", "the input was changed");
  expect(mine.update.indices.size() == mine.update.values.size(), "form", "not as many values as indices");
  check_indices("the update", mine.update.indices, seen.length());
  check_indices("what contributed", mine.contributed, seen.length());
  check_indices("what is returned", mine.returned.indices, seen.length());
  expect(all_finite(mine.update.values) && all_finite(mine.returned.values), "form",
         "the update or what is returned is not finite");
  expect(s.global_selected == mine.update.size(), "form",
         "last_call() tells another number of entries than the update has");
  auto const contributed = static_cast<std::int64_t>(mine.contributed.size());
  expect((s.local_selected >= contributed || seen.about.promised.full_sums) && s.local_selected <= seen.length(),
         "form", "last_call() tells an impossible number of selected entries");
  bool const forgets = policy_in(seen.about.promised.partition) == "sampled" && mine.after.boundaries.empty();
  expect(!mine.after.has_boundaries || forgets || is_partition(mine.after.boundaries, seen.what), "form",
         "the boundaries do not ascend from 0 to the length");
  expect(mine.before.iteration < std::numeric_limits<std::int64_t>::max() &&
             mine.after.iteration == mine.before.iteration + 1,
         "form", "the iteration is ", mine.after.iteration, " after ", mine.before.iteration);
  expect(seen.ranks[0].runs == mine.runs, "same_everywhere", mine.runs, " runs, and on rank 0 ", seen.ranks[0].runs);
  expect(same_bits(seen.ranks[0].update, mine.update), "same_everywhere", "another update than rank 0");
  expect_same("same_everywhere", seen.ranks[0].after, mine.after, true);
  expect(of_all_ranks(s) == of_all_ranks(seen.ranks[0].statistics), "same_everywhere", "other statistics than rank 0");
  check_possible("impossible_state", seen.what, mine.after);
}

// Regions are decided when there are none and every tau calls, and stay in between; those that are checked in every
// call, when they do not fit.
void check_regions(seen_call const& seen) {
  auto const& mine = seen.ranks[0];
  if (mine.after.has_boundaries) {
    std::int64_t const now = mine.before.iteration;
    std::string const& rule = seen.about.promised.partition;
    bool const is_even = policy_in(rule) == "uniform";
    bool const is_checked = policy_in(rule) == "sampled";
    auto const tau = std::max(static_cast<std::int64_t>(option_in(rule, "tau")), std::int64_t(1));
    bool const is_early = is_checked && now > 0 && now < tau && (now & (now - 1)) == 0;
    bool const due = mine.before.boundaries.empty() || is_early || (is_even ? now == 0 : now % tau == 0);
    bool const may_be = is_checked && mine.statistics.repartitioned;
    expect(mine.statistics.repartitioned == (due || may_be), "regions",
           due ? "not decided though they were due" : "decided before they were due");
    bool const forgotten = is_checked && mine.after.boundaries.empty(); // see check_volume
    expect(due || may_be || forgotten || mine.before.boundaries == mine.after.boundaries, "regions",
           "moved before they were due");
    auto const ranks = static_cast<std::int64_t>(seen.ranks.size());
    for (std::size_t r = 0; due && is_even && r < seen.ranks.size(); ++r) {
      std::int64_t const width = mine.after.boundaries[r + 1] - mine.after.boundaries[r];
      expect(std::abs(width * ranks - seen.length()) < ranks, "regions", "not of one width");
    }
  }
}

// Whether all sums of these are exact, in whatever order.
bool small_whole_numbers(std::vector<numbers> const& vectors) {
  double const most = static_cast<double>(1 << 23) / static_cast<double>(vectors.size());
  return std::all_of(vectors.begin(), vectors.end(), [&](numbers const& each) {
    return std::all_of(each.begin(), each.end(),
                       [&](double x) { return std::fabs(x) <= most && std::nearbyint(x) == x; });
  });
}

// What is left over on all ranks and the update are together what was put in.
void check_conservation(seen_call const& seen) {
  if (!seen.about.promised.conserves) {
    return;
  }
  auto const n = static_cast<std::size_t>(seen.length());
  std::vector<long double> put_in(n, 0);
  std::vector<long double> came_out(n, 0);
  std::vector<long double> size(n, 0); // of all numbers that were summed
  long double largest = 0;
  check_each(seen.residuals, [&](numbers const& residual, std::size_t rank) {
    for (std::size_t i = 0; i < n; ++i) {
      auto const x = static_cast<long double>(seen.accumulators[rank][i]);
      auto const left = static_cast<long double>(residual[i]);
      if (!std::isfinite(
              left)) { // not promised where a format rounds sums: their owner's, beside values near the largest
        expect(!seen.about.lossless() && !seen.about.is_dense() &&
                   can_overflow(seen.about, seen.accumulators, static_cast<std::int64_t>(i)),
               "residual_not_finite", "the residual at index ", i, " is not finite after a call without an error");
      }
      put_in[i] += x;
      came_out[i] += left;
      size[i] += std::fabs(x) + (seen.about.lossless() ? 0 : std::fabs(left));
      largest = std::max(largest, std::fabs(x));
    }
  });
  auto const& update = seen.ranks[0].update;
  for (std::size_t i = 0; i < update.indices.size(); ++i) {
    auto const at = static_cast<std::size_t>(update.indices[i]);
    came_out[at] += static_cast<long double>(update.values[i]);
    size[at] += seen.about.lossless() ? 0 : std::fabs(static_cast<long double>(update.values[i]));
  }
  // Every partial sum rounds once; those of a tree once more where they are dropped, those of a codec where what is
  // lost is told. ZFP tells that up to the rounding of the largest of a block.
  auto const ranks = static_cast<long double>(seen.ranks.size());
  auto const epsilon = static_cast<long double>(seen.about.values.epsilon);
  bool const exact = seen.about.lossless() && small_whole_numbers(seen.accumulators);
  long double const roundings = exact                                               ? 0
                                : !seen.about.lossless()                            ? 4 * ranks
                                : seen.about.promised.sums == facts::order::of_tree ? 2 * ranks
                                                                                    : ranks - 1;
  long double const of_block = seen.about.codec() == rounding::zfp ? 8 * ranks * ranks * epsilon * largest : 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!std::isfinite(came_out[i])) {
      continue; // as above
    }
    expect(std::fabs(put_in[i] - came_out[i]) <= roundings * epsilon * size[i] + of_block, "conservation", "index ", i,
           ": ", put_in[i], " was put in, ", came_out[i], " came out");
  }
}

// As many entries are selected as is promised, of so many that there are.
void check_count(std::optional<oktopk::selection_promises> const& promised, std::int64_t k, std::int64_t selected,
                 std::int64_t candidates) {
  auto const wanted = static_cast<double>(k);
  auto const count = static_cast<double>(selected);
  expect(!promised || ((selected == candidates || count >= promised->low * wanted) &&
                       (k == 0 || count <= promised->high * wanted)),
         "promised_count", selected, " of ", candidates, " entries are selected, for k = ", k);
}

void check_counts(seen_call const& seen) {
  check_each(seen.ranks, [&](call_record const& mine, std::size_t) {
    check_count(seen.about.promised.local, seen.what.k, mine.statistics.local_selected, seen.length());
  });
  // Where fewer are selected than there may be, these are all that any rank has selected.
  auto const& update = seen.ranks[0].update;
  bool const all = std::all_of(seen.ranks.begin(), seen.ranks.end(), [](call_record const& mine) {
    return mine.statistics.local_selected == static_cast<std::int64_t>(mine.contributed.size());
  });
  bool const may_be_all = all || seen.about.promised.full_sums; // which contribute more than was selected
  check_count(seen.about.promised.global, seen.result_size(), update.size(),
              may_be_all ? update.size() : seen.length());
}

// `sgd` does what Algorithm 2 says, bit for bit.
void check_step(seen_call const& seen, call_record const& mine, std::size_t rank) {
  value_type const& values = seen.what.values;
  expect(seen.what.calls_made != way::hooked || (mine.hooked && same_bits(*mine.hooked, seen.accumulators[rank])),
         "hook", "the hook was not shown residual + rate x gradient");
  expect(same_bits(mine.after.residual, seen.residuals[rank]), "sgd_residual",
         "the residual is not the accumulator with what contributed cleared");
  numbers weights = mine.weights_before;
  for (std::size_t i = 0; i < mine.update.indices.size(); ++i) {
    double& w = weights[static_cast<std::size_t>(mine.update.indices[i])];
    w = values.rounded(w - values.rounded(mine.update.values[i] / seen.what.ranks));
  }
  expect(same_bits(mine.weights_after, weights), "sgd_weights", "the weights are not the old ones less update / P");
  expect(same_bits(mine.before.learning_rate, mine.after.learning_rate), "sgd_rate",
         "a step changed the learning rate");
}

} // namespace

void check_possible(char const* check, fuzz_case const& what, state_numbers const& state) {
  auto const is_magnitude = [](double x) { return x >= 0 && std::isfinite(x); };
  expect(state.iteration >= 0, check, "a negative iteration");
  for (selector_numbers const* each : {&state.local, &state.global}) {
    expect(!each->has_threshold || (is_magnitude(each->threshold) && each->evaluated <= state.iteration), check,
           "a threshold that is negative, not finite or evaluated in the future");
    expect(!each->has_guess || (is_magnitude(each->prefilter) && is_magnitude(each->magnitude)), check,
           "a guess that is negative or not finite");
  }
  // A range of patterns is no wider than all magnitudes together.
  expect(!state.global.has_guess || (state.global.bits >= 0 && state.global.bits < 8 * what.values.bytes), check,
         "a range of no possible width");
  expect(state.boundaries.empty() || is_partition(state.boundaries, what), check,
         "boundaries that do not ascend from 0 to the length");
  expect(!state.of_sgd ||
             (std::isfinite(state.learning_rate) && state.residual.size() == static_cast<std::size_t>(what.how.length)),
         check, "a residual of another length, or a rate that is not finite");
}

void expect_same(char const* check, call_record const& a, call_record const& b) {
  expect(a.said == b.said, check, "another error: ", a.said, " and ", b.said);
  expect(same_bits(a.update, b.update) && a.contributed == b.contributed && same_bits(a.returned, b.returned), check,
         "another update, or other contributed or returned entries");
  expect_same(check, a.after, b.after);
  expect(same_bits(a.weights_after, b.weights_after), check, "other weights");
  expect(of_all_ranks(a.statistics) == of_all_ranks(b.statistics) &&
             a.statistics.local_selected == b.statistics.local_selected &&
             a.statistics.local_reevaluated == b.statistics.local_reevaluated,
         check, "other statistics");
  for (std::size_t p = 0; p < a.traffic.size(); ++p) {
    expect(a.traffic[p].bytes_sent == b.traffic[p].bytes_sent &&
               a.traffic[p].messages_sent == b.traffic[p].messages_sent,
           check, "other messages in phase ", oktopk::name(static_cast<oktopk::phase>(p)));
  }
}

bool check_call(seen_call const& seen) {
  check_errors(seen);
  if (seen.ranks[0].threw()) {
    check_each(seen.ranks, [](call_record const& mine, std::size_t) { check_nothing_moved(mine); });
    return true;
  }
  check_each(seen.ranks, [&](call_record const& mine, std::size_t) { check_form(seen, mine); });
  check_regions(seen);
  std::vector<entries> selections;
  check_counts(seen);
  if (seen.about.is_dense()) {
    check_dense(seen);
  } else if (seen.about.knows_selections()) {
    selections = check_selections(seen);
  }
  check_conservation(seen);
  check_volume(seen, selections);
  if (seen.what.calls_made != way::bare) {
    check_each(seen.ranks, [&](call_record const& mine, std::size_t rank) { check_step(seen, mine, rank); });
  }
  return false;
}

} // namespace oktopk_fuzz
