// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/checks/checks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

namespace oktopk_fuzz {

namespace {

// The number behind some words; -1 where they do not occur.
std::int64_t number_after(std::string const& text, std::string const& words) {
  auto const at = text.find(words);
  return at == std::string::npos ? -1 : std::strtoll(text.c_str() + at + words.size(), nullptr, 10);
}

template <class Value>
bool has_non_finite(std::vector<Value> const& values) {
  return std::any_of(values.begin(), values.end(), [](Value x) { return !std::isfinite(x); });
}

template <class Value>
bool is_bad(seen_call<Value> const& seen, std::size_t rank) {
  return seen.wrong_length(rank) >= 0 || has_non_finite(seen.accumulators[rank]);
}

template <class Value>
std::string who_is_bad(seen_call<Value> const& seen) {
  std::string text = "bad ranks:";
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    text += is_bad(seen, rank) ? " " + std::to_string(rank) : "";
  }
  return text;
}

// Whether an error speaks of sums, or of what they leave in a residual, and not of a rank's own value.
bool speaks_of_overflow(std::string const& text) {
  return text.find("sum or partial sum at index") != std::string::npos ||
         text.find("a partial sum overflows among the values") != std::string::npos ||
         (text.find("the residual at index") != std::string::npos && text.find("overflows") != std::string::npos);
}

// Whether the partial sums at this index, of these vectors in whatever order, can have overflowed.
template <class Value>
bool can_overflow(facts const& about, std::vector<std::vector<Value>> const& vectors, std::int64_t index) {
  long double up = 0;
  long double down = 0;
  long double largest = 0; // of a codec's rounding, which goes by the largest of its neighbours
  for (auto const& each : vectors) {
    auto const x = static_cast<long double>(each[static_cast<std::size_t>(index)]);
    (x > 0 ? up : down) += std::fabs(x);
    if (!about.lossless()) {
      Value most = 0;
      for (Value const other : each) {
        most = std::max<Value>(most, std::fabs(other));
      }
      largest += static_cast<long double>(most);
    }
  }
  auto const ranks = static_cast<long double>(vectors.size());
  long double slack = ranks * static_cast<long double>(std::numeric_limits<Value>::epsilon()) * std::max(up, down);
  long double most = static_cast<long double>(std::numeric_limits<Value>::max());
  switch (about.codec) {
  case rounding::none: break;
  case rounding::bfloat16:
    most = static_cast<long double>(std::numeric_limits<float>::max());
    slack += std::max(up, down) * ranks / 128;
    break;
  case rounding::block_float:
  case rounding::zfp: slack += largest * (1 + ranks); break; // rates of 4 bits are drawn, too
  }
  return std::max(up, down) + slack >= most;
}

// An error may say that a sum overflows, where one can have. Of values that are coded together it names the first.
template <class Value>
verdict wrong_overflow(seen_call<Value> const& seen, std::string const& text) {
  std::vector<std::vector<Value>> healthy;
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    if (!is_bad(seen, rank)) {
      healthy.push_back(seen.accumulators[rank]);
    }
  }
  std::int64_t const index = number_after(text, "index ");
  std::int64_t const together = text.find("coded together") != std::string::npos ? 64 : 1;
  for (std::int64_t i = std::max<std::int64_t>(index, 0); i < std::min(index + together, seen.length()); ++i) {
    if (can_overflow(seen.about, healthy, i)) {
      return {};
    }
  }
  return finding{"error_index", "no sum can overflow there: " + text};
}

template <class Value>
verdict wrong_blame(seen_call<Value> const& seen, std::size_t lowest, outcome const& said) {
  std::string const text = said.text;
  if (speaks_of_overflow(text) &&
      seen.about.kind == family::gtopk) { // its tree may meet an overflow of healthy ranks first
    return wrong_overflow(seen, text);
  }
  if (!said.says("rank " + std::to_string(lowest) + ": ")) {
    return finding{"error_rank", who_is_bad(seen) + ", but: " + text};
  }
  if (std::int64_t const size = seen.wrong_length(lowest); size >= 0) {
    bool const right = said.code == oktopk::fault::length_mismatch &&
                       said.says(std::to_string(size) + " elements, expected " + std::to_string(seen.length()));
    return right ? verdict() : finding{"error_length", who_is_bad(seen) + ", but: " + text};
  }
  std::int64_t const index = number_after(text, "index ");
  bool const right = said.code == oktopk::fault::non_finite && index >= 0 && index < seen.length() &&
                     !std::isfinite(seen.accumulators[lowest][static_cast<std::size_t>(index)]);
  return right ? verdict() : finding{"error_index", "that value is not bad: " + text};
}

// All ranks return, or throw the same error; which names the lowest bad rank and something that really is bad there;
// and none throws without a reason. `threw` is set where they did.
template <class Value>
verdict check_errors(seen_call<Value> const& seen, bool& threw) {
  outcome const& first = seen.ranks[0].said;
  threw = first.code != oktopk::fault::none;
  for (std::size_t rank = 1; rank < seen.ranks.size(); ++rank) {
    outcome const& said = seen.ranks[rank].said;
    if (!(said == first)) {
      return finding{"error_agreement",
                     "rank 0 has \"" + first.text + "\", rank " + std::to_string(rank) + " has \"" + said.text + "\""};
    }
  }
  std::size_t lowest = 0;
  while (lowest < seen.ranks.size() && !is_bad(seen, lowest)) {
    lowest += 1;
  }
  if (lowest < seen.ranks.size()) {
    return threw ? wrong_blame(seen, lowest, first)
                 : verdict(finding{"error_missing", who_is_bad(seen) + ", and nobody says so"});
  }
  if (!threw) {
    return {};
  }
  if (first.code != oktopk::fault::non_finite || !speaks_of_overflow(first.text)) {
    return finding{"error_needless", "no rank is bad, but: " + first.text};
  }
  return wrong_overflow(seen, first.text);
}

// A call that threw changed nothing.
template <class Value>
verdict check_nothing_moved(seen_call<Value> const& seen) {
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    auto const& mine = seen.ranks[rank];
    if (auto const text = difference(mine.before, mine.after); !text.empty()) {
      return finding{"moved_state", "rank " + std::to_string(rank) + ": a call that threw changed the state: " + text};
    }
    if (!same_bits(mine.weights_before, mine.weights_after)) {
      return finding{"moved_weights", "rank " + std::to_string(rank) + ": a step that threw changed the weights"};
    }
  }
  return {};
}

bool ascending_below(std::vector<std::int64_t> const& indices, std::int64_t length) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= length || (i > 0 && indices[i] <= indices[i - 1])) {
      return false;
    }
  }
  return true;
}

template <class Value>
std::string wrong_form(seen_call<Value> const& seen, call_record<Value> const& mine) {
  if (mine.input_changed) {
    return "the input was changed";
  }
  if (mine.update.indices.size() != mine.update.values.size()) {
    return "not as many values as indices";
  }
  if (!ascending_below(mine.update.indices, seen.length())) {
    return "the indices are not ascending in [0, length)";
  }
  if (!ascending_below(mine.contributed, seen.length())) {
    return "what contributed is not ascending in [0, length)";
  }
  if (!ascending_below(mine.returned.indices, seen.length())) {
    return "what is returned is not ascending in [0, length)";
  }
  for (auto const* each : {&mine.update, &mine.returned}) {
    for (std::size_t i = 0; i < each->indices.size(); ++i) {
      if (!std::isfinite(each->values[i])) {
        return std::string(each == &mine.update ? "the update" : "what is returned") + " is not finite at index " +
               std::to_string(each->indices[i]);
      }
    }
  }
  if (mine.statistics.global_selected != static_cast<std::int64_t>(mine.update.size())) {
    return "last_call() tells another number of entries than the update has";
  }
  if (mine.statistics.local_selected < static_cast<std::int64_t>(mine.contributed.size()) ||
      mine.statistics.local_selected > seen.length()) {
    return "last_call() tells an impossible number of selected entries";
  }
  auto const& b = mine.after.boundaries;
  if (mine.after.has_boundaries && (b.size() != seen.ranks.size() + 1 || b.front() != 0 || b.back() != seen.length() ||
                                    !std::is_sorted(b.begin(), b.end()))) {
    return "the boundaries do not ascend from 0 to the length";
  }
  bool const moved_on = mine.before.iteration < std::numeric_limits<std::int64_t>::max() &&
                        mine.after.iteration == mine.before.iteration + 1;
  return moved_on ? ""
                  : "the iteration is " + std::to_string(mine.after.iteration) + " after " +
                        std::to_string(mine.before.iteration);
}

template <class Value>
std::string unlike(call_record<Value> const& a, call_record<Value> const& b) {
  if (a.update.indices != b.update.indices) {
    return "other indices";
  }
  if (!same_bits(a.update.values, b.update.values)) {
    return "other values";
  }
  if (a.after.boundaries != b.after.boundaries) {
    return "other boundaries";
  }
  if (!difference(a.after.global, b.after.global).empty() || a.after.iteration != b.after.iteration) {
    return "another global threshold or iteration";
  }
  auto const& s = a.statistics;
  auto const& t = b.statistics;
  if (s.global_selected != t.global_selected || s.global_reevaluated != t.global_reevaluated ||
      s.repartitioned != t.repartitioned || s.balanced != t.balanced) {
    return "other statistics";
  }
  return {};
}

// Regions are decided when there are none and every tau calls, and stay in between.
template <class Value>
std::string wrong_regions(seen_call<Value> const& seen) {
  auto const& mine = seen.ranks[0];
  if (!mine.after.has_boundaries) {
    return {};
  }
  bool const due =
      mine.before.boundaries.empty() ||
      (seen.about.uniform_regions ? mine.before.iteration == 0 : mine.before.iteration % seen.what.how.tau == 0);
  if (mine.statistics.repartitioned != due) {
    return due ? "the regions were not decided though they were due" : "the regions were decided before they were due";
  }
  return due || mine.before.boundaries == mine.after.boundaries ? "" : "the boundaries moved before they were due";
}

// Updates have the form that is promised, and are the same on all ranks to the bit, as is what ranks must share of
// their states; states move on by one call; statistics tell the truth.
template <class Value>
verdict check_form(seen_call<Value> const& seen) {
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    if (auto const text = wrong_form(seen, seen.ranks[rank]); !text.empty()) {
      return finding{"form", "rank " + std::to_string(rank) + ": " + text};
    }
    if (auto const text = unlike(seen.ranks[0], seen.ranks[rank]); !text.empty()) {
      return finding{"same_everywhere", "rank " + std::to_string(rank) + " has " + text + " than rank 0"};
    }
  }
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    if (auto const why = impossible(seen.what, seen.ranks[rank].after); !why.empty()) {
      return finding{"impossible_state", "rank " + std::to_string(rank) + ": the call left a state with " + why};
    }
  }
  if (auto const text = wrong_regions(seen); !text.empty()) {
    return finding{"regions", text};
  }
  return {};
}

template <class Value>
std::string impossible(selector_numbers<Value> const& numbers, std::int64_t iteration, bool of_all_ranks) {
  if (numbers.has_threshold && !(numbers.threshold >= 0 && std::isfinite(numbers.threshold))) {
    return "a threshold that is negative or not finite";
  }
  if (numbers.has_threshold && numbers.evaluated > iteration) {
    return "a threshold that was evaluated in the future";
  }
  for (Value const guess : {numbers.prefilter, numbers.magnitude}) {
    if (numbers.has_guess && !(guess >= 0 && std::isfinite(guess))) {
      return "a guess that is negative or not finite";
    }
  }
  // A range of patterns is no wider than all magnitudes together.
  std::int64_t const most = 8 * static_cast<std::int64_t>(sizeof(Value)) - 1;
  if (numbers.has_guess && of_all_ranks && (numbers.bits < 0 || numbers.bits > most)) {
    return "a range of no possible width";
  }
  return {};
}

// Whether all sums of these are exact, in whatever order.
template <class Value>
bool small_whole_numbers(std::vector<std::vector<Value>> const& vectors) {
  long double const most = static_cast<long double>(std::int64_t(1) << 23) / static_cast<long double>(vectors.size());
  for (auto const& each : vectors) {
    for (Value const x : each) {
      if (std::fabs(static_cast<long double>(x)) > most || std::nearbyint(x) != x) {
        return false;
      }
    }
  }
  return true;
}

// What is left over on all ranks and the update are together what was put in.
template <class Value>
verdict check_conservation(seen_call<Value> const& seen) {
  if (seen.about.kind == family::gtopk && !seen.what.how.return_dropped) {
    return {}; // as published, it loses what it drops
  }
  auto const n = static_cast<std::size_t>(seen.length());
  std::vector<long double> put_in(n, 0);
  std::vector<long double> came_out(n, 0);
  std::vector<long double> size(n, 0); // of all numbers that were summed
  long double largest = 0;
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    for (std::size_t i = 0; i < n; ++i) {
      auto const x = static_cast<long double>(seen.accumulators[rank][i]);
      auto const left = static_cast<long double>(seen.residuals[rank][i]);
      if (!std::isfinite(left)) {
        return finding{"residual_not_finite", "rank " + std::to_string(rank) + ": the residual at index " +
                                                  std::to_string(i) + " is not finite after a call without an error"};
      }
      put_in[i] += x;
      came_out[i] += left;
      size[i] += std::fabs(x) + (seen.about.lossless() ? 0 : std::fabs(left));
      largest = std::max(largest, std::fabs(x));
    }
  }
  auto const& update = seen.ranks[0].update;
  for (std::size_t i = 0; i < update.indices.size(); ++i) {
    came_out[static_cast<std::size_t>(update.indices[i])] += static_cast<long double>(update.values[i]);
  }
  // Every partial sum rounds once; those of a tree once more where they are dropped, those of a codec where what is
  // lost is told. ZFP tells that up to the rounding of the largest of a block.
  auto const ranks = static_cast<long double>(seen.ranks.size());
  auto const epsilon = static_cast<long double>(std::numeric_limits<Value>::epsilon());
  bool const exact = seen.about.lossless() && small_whole_numbers(seen.accumulators);
  long double const roundings = exact                              ? 0
                                : !seen.about.lossless()           ? 4 * ranks
                                : seen.about.kind == family::gtopk ? 2 * ranks
                                                                   : ranks - 1;
  long double const of_block = seen.about.codec == rounding::zfp ? 8 * ranks * ranks * epsilon * largest : 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!(std::fabs(put_in[i] - came_out[i]) <= roundings * epsilon * size[i] + of_block)) {
      return finding{"conservation", "index " + std::to_string(i) + ": " + in_words(static_cast<double>(put_in[i])) +
                                         " was put in, " + in_words(static_cast<double>(came_out[i])) + " came out"};
    }
  }
  return {};
}

// `sgd` does what Algorithm 2 says, bit for bit.
template <class Value>
verdict check_step(seen_call<Value> const& seen) {
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    auto const& mine = seen.ranks[rank];
    std::string const who = "rank " + std::to_string(rank) + ": ";
    if (seen.what.calls_made == way::hooked && (!mine.hooked || !same_bits(*mine.hooked, seen.accumulators[rank]))) {
      return finding{"hook", who + "the hook was not shown residual + rate x gradient"};
    }
    if (!same_bits(mine.after.residual, seen.residuals[rank])) {
      return finding{"sgd_residual", who + "the residual is not the accumulator with what contributed cleared"};
    }
    auto const ranks = static_cast<Value>(seen.ranks.size());
    std::vector<Value> weights = mine.weights_before;
    for (std::size_t i = 0; i < mine.update.indices.size(); ++i) {
      weights[static_cast<std::size_t>(mine.update.indices[i])] -= mine.update.values[i] / ranks;
    }
    if (!same_bits(mine.weights_after, weights)) {
      return finding{"sgd_weights", who + "the weights are not the old ones less update / P"};
    }
    if (!same_bits(mine.before.learning_rate, mine.after.learning_rate)) {
      return finding{"sgd_rate", who + "a step changed the learning rate"};
    }
  }
  return {};
}

template <class Value>
bool same(entries<Value> const& a, entries<Value> const& b) {
  return a.indices == b.indices && same_bits(a.values, b.values);
}

bool same(oktopk::call_statistics const& a, oktopk::call_statistics const& b) {
  return a.local_selected == b.local_selected && a.local_reevaluated == b.local_reevaluated &&
         a.global_reevaluated == b.global_reevaluated && a.repartitioned == b.repartitioned && a.balanced == b.balanced;
}

} // namespace

template <class Value>
std::string impossible(fuzz_case const& what, state_numbers<Value> const& state) {
  if (state.iteration < 0) {
    return "a negative iteration";
  }
  if (auto const text = impossible(state.local, state.iteration, false); !text.empty()) {
    return "locally " + text;
  }
  if (auto const text = impossible(state.global, state.iteration, true); !text.empty()) {
    return "globally " + text;
  }
  auto const& b = state.boundaries;
  if (!b.empty() && (b.size() != static_cast<std::size_t>(what.ranks) + 1 || b.front() != 0 ||
                     b.back() != what.how.length || !std::is_sorted(b.begin(), b.end()))) {
    return "boundaries that do not ascend from 0 to the length";
  }
  if (state.of_sgd &&
      (!std::isfinite(state.learning_rate) || state.residual.size() != static_cast<std::size_t>(what.how.length))) {
    return "a residual of another length, or a rate that is not finite";
  }
  return {};
}

template <class Value>
std::string calls_differ_in(call_record<Value> const& a, call_record<Value> const& b) {
  if (!(a.said == b.said)) {
    return "another error: \"" + a.said.text + "\" and \"" + b.said.text + "\"";
  }
  if (!same(a.update, b.update)) {
    return "another update";
  }
  if (a.contributed != b.contributed || !same(a.returned, b.returned)) {
    return "other contributed or returned entries";
  }
  if (auto const text = difference(a.after, b.after); !text.empty()) {
    return "another state: " + text;
  }
  if (!same_bits(a.weights_after, b.weights_after)) {
    return "other weights";
  }
  for (std::size_t p = 0; p < a.traffic.size(); ++p) {
    if (a.traffic[p].bytes_sent != b.traffic[p].bytes_sent ||
        a.traffic[p].messages_sent != b.traffic[p].messages_sent) {
      return "other messages in phase " + std::string(oktopk::name(static_cast<oktopk::phase>(p)));
    }
  }
  return {};
}

template <class Value>
verdict check_replica(std::vector<call_record<Value>> const& ranks, std::vector<call_record<Value>> const& replicas) {
  for (std::size_t rank = 0; rank < replicas.size(); ++rank) {
    auto text = calls_differ_in(ranks[rank], replicas[rank]);
    if (text.empty() && !same(ranks[rank].statistics, replicas[rank].statistics)) {
      text = "other statistics";
    }
    if (!text.empty()) {
      return finding{"replica", "rank " + std::to_string(rank) + ": the replica made of a checkpoint has " + text};
    }
  }
  return {};
}

std::string in_words(double x) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.17g", x);
  return text;
}

template <class Value>
verdict check_call(seen_call<Value> const& seen, bool& threw) {
  if (auto wrong = check_errors(seen, threw)) {
    return wrong;
  }
  if (threw) {
    return check_nothing_moved(seen);
  }
  if (auto wrong = check_form(seen)) {
    return wrong;
  }
  std::vector<entries<Value>> selections;
  bool const dense = seen.about.kind == family::dense;
  verdict wrong = dense ? check_dense(seen) : check_local_selection(seen, selections);
  if (!wrong && !dense) {
    wrong = check_update(seen, selections);
  }
  if (!wrong) {
    wrong = check_conservation(seen);
  }
  if (!wrong) {
    wrong = check_volume(seen, selections);
  }
  if (!wrong && seen.what.calls_made != way::bare) {
    wrong = check_step(seen);
  }
  return wrong;
}

template verdict check_call(seen_call<float> const&, bool&);
template std::string calls_differ_in(call_record<float> const&, call_record<float> const&);
template verdict check_replica(std::vector<call_record<float>> const&, std::vector<call_record<float>> const&);
template std::string impossible(fuzz_case const&, state_numbers<float> const&);
template verdict check_call(seen_call<double> const&, bool&);
template std::string calls_differ_in(call_record<double> const&, call_record<double> const&);
template verdict check_replica(std::vector<call_record<double>> const&, std::vector<call_record<double>> const&);
template std::string impossible(fuzz_case const&, state_numbers<double> const&);

} // namespace oktopk_fuzz
