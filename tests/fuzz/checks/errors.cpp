// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/checks/checks.hpp"

#include <algorithm>
#include <cmath>
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

} // namespace

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

template bool can_overflow(facts const&, std::vector<std::vector<float>> const&, std::int64_t);
template verdict check_errors(seen_call<float> const&, bool&);
template verdict check_nothing_moved(seen_call<float> const&);

template bool can_overflow(facts const&, std::vector<std::vector<double>> const&, std::int64_t);
template verdict check_errors(seen_call<double> const&, bool&);
template verdict check_nothing_moved(seen_call<double> const&);

} // namespace oktopk_fuzz
