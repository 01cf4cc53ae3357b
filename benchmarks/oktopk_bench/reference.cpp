// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace oktopk_bench {
namespace {

std::string number(double value) {
  return fmt::format("{:.9g}", value);
}

// Each of the additions rounds off at most 2^-24 of a number no larger than the sum of the magnitudes; the last factor
// covers the growth of that bound itself.
double rounding_of_sum(int parts, double magnitudes) {
  return (parts - 1) * 0x1p-24 * magnitudes * 1.001;
}

} // namespace

std::vector<std::int64_t> top_k(std::span<float const> values, std::int64_t k) {
  top_entries<float> top(values, k);
  std::vector<std::int64_t> positions;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (top.takes(values[i])) {
      positions.push_back(static_cast<std::int64_t>(i));
    }
  }
  return positions;
}

block_sums::block_sums(std::int64_t width, bool rounded)
    : rounded_(rounded), sums_(static_cast<std::size_t>(width)), magnitudes_(sums_.size()), given_(sums_.size()),
      returned_(sums_.size()), reached_sums_(rounded ? sums_.size() : 0), reached_magnitudes_(reached_sums_.size()),
      doubts_(reached_sums_.size()) {
}

void block_sums::clear() {
  for (auto* const each : {&sums_, &magnitudes_, &reached_sums_, &reached_magnitudes_, &doubts_}) {
    std::fill(each->begin(), each->end(), 0.0);
  }
  std::fill(given_.begin(), given_.end(), 0);
  std::fill(returned_.begin(), returned_.end(), 0);
}

void block_sums::add(std::span<contribution const> parts) {
  for (contribution const& part : parts) {
    std::size_t const at = part.offset;
    auto const value = static_cast<double>(part.value);
    switch (part.kind) {
    case contribution::reached:
      reached_sums_[at] += value;
      reached_magnitudes_[at] += std::abs(value);
      break;
    case contribution::doubt: doubts_[at] += value; break;
    default:
      sums_[at] += part.kind == contribution::given ? value : -value;
      magnitudes_[at] += std::abs(value);
      (part.kind == contribution::given ? given_ : returned_)[at] += 1;
    }
  }
}

double block_sums::sum(std::int64_t offset) const {
  auto const at = static_cast<std::size_t>(offset);
  bool const exact = given_[at] + returned_[at] <= 2 && !rounded_;
  return exact ? static_cast<double>(static_cast<float>(sums_[at])) : sums_[at];
}

double block_sums::tolerance(std::int64_t offset) const {
  auto const at = static_cast<std::size_t>(offset);
  // What a code rounds off is itself rounded to single precision.
  int const parts = given_[at] + returned_[at] + (rounded_ ? returned_[at] : 0);
  return parts <= 2 && !rounded_ ? 0 : rounding_of_sum(parts, magnitudes_[at]);
}

double block_sums::reached_sum(std::int64_t offset) const {
  auto const at = static_cast<std::size_t>(offset);
  if (!rounded_) {
    return sum(offset);
  }
  return given_[at] <= 2 ? static_cast<double>(static_cast<float>(reached_sums_[at])) : reached_sums_[at];
}

double block_sums::reached_tolerance(std::int64_t offset) const {
  auto const at = static_cast<std::size_t>(offset);
  if (!rounded_) {
    return tolerance(offset);
  }
  return doubts_[at] + (given_[at] <= 2 ? 0 : rounding_of_sum(given_[at], reached_magnitudes_[at]));
}

result_check::result_check(std::span<std::int64_t const> indices, std::span<float const> values)
    : indices_(indices), values_(values) {
}

void result_check::take(std::int64_t begin, std::int64_t end, block_sums const& sums) {
  for (std::int64_t index = begin; index < end; ++index) {
    std::int64_t const offset = index - begin;
    bool const inside = next_ < indices_.size() && indices_[next_] == index;
    candidates_ += sums.touched(offset) ? 1 : 0;
    if (inside) {
      if (!sums.touched(offset) && wrong_value_.empty()) {
        wrong_value_ = "no rank contributed at index " + std::to_string(index) + " of the result";
      }
      take_inside(index, offset, sums, values_[next_]);
      next_ += 1;
    } else if (sums.touched(offset) || sums.took_back(offset)) {
      take_outside(index, offset, sums);
    }
  }
}

void result_check::take_inside(std::int64_t index, std::int64_t offset, block_sums const& sums, float value) {
  double const sum = sums.sum(offset);
  double const tolerance = sums.tolerance(offset);
  if (wrong_value_.empty() && !(std::abs(static_cast<double>(value) - sum) <= tolerance)) {
    wrong_value_ = "the value at index " + std::to_string(index) + " is " + number(static_cast<double>(value)) +
                   ", but the ranks' contributions, less what was returned to them, add up to " + number(sum);
  }
  // As large as rounding may have made it, so that only certain faults are reported.
  ranked_entry const entry{index, std::abs(sums.reached_sum(offset)) + sums.reached_tolerance(offset)};
  if (last_inside_.index < 0 || last_inside_.precedes(entry)) {
    last_inside_ = entry;
  }
}

void result_check::take_outside(std::int64_t index, std::int64_t offset, block_sums const& sums) {
  if (stray_index_ < 0 && std::abs(sums.sum(offset)) > sums.tolerance(offset)) {
    stray_index_ = index;
  }
  ranked_entry const entry{index, std::abs(sums.reached_sum(offset)) - sums.reached_tolerance(offset)};
  if (first_outside_.index < 0 || entry.precedes(first_outside_)) {
    first_outside_ = entry;
  }
}

std::string result_check::wrong_choice() const {
  if (last_inside_.index < 0 || first_outside_.index < 0 || !first_outside_.precedes(last_inside_)) {
    return {};
  }
  return "index " + std::to_string(first_outside_.index) + " (magnitude " + number(first_outside_.magnitude) +
         ") is missing from the result, which has index " + std::to_string(last_inside_.index) + " (magnitude " +
         number(last_inside_.magnitude) + ")";
}

std::string result_check::stray() const {
  return stray_index_ < 0
             ? std::string()
             : "something was contributed at index " + std::to_string(stray_index_) + ", which the result has not";
}

} // namespace oktopk_bench
