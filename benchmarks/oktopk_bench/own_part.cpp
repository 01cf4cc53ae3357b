// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "own_part.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace oktopk_bench {
namespace {

bool ascending_below(std::vector<std::int64_t> const& indices, std::int64_t end) {
  bool const ascending = std::adjacent_find(indices.begin(), indices.end(), std::greater_equal<>()) == indices.end();
  return ascending && (indices.empty() || (indices.front() >= 0 && indices.back() < end));
}

bool inside(oktopk::selection_promise const& limits, std::int64_t count, std::int64_t k) {
  return static_cast<double>(count) >= limits.low * static_cast<double>(k) &&
         !(static_cast<double>(count) > limits.high * static_cast<double>(k)); // no limit times no entries is no number
}

std::string outside(std::string const& what, std::int64_t count, std::int64_t k) {
  return what + " of " + std::to_string(count) + " entries is outside the band around k = " + std::to_string(k);
}

} // namespace

own_part::own_part(std::span<float const> accumulator, host_result const& result,
                   oktopk::call_statistics const& figures, oktopk::allreduce_promises const& promised, std::int64_t k)
    : accumulator_(accumulator), result_(result), figures_(figures), promised_(promised), k_(k) {
  if (promised_.local.exact) {
    selected_ = top_k(accumulator_, k_);
  }
}

std::string own_part::problem() const {
  std::string found = shape_fault();
  if (found.empty()) {
    found = selection_fault();
  }
  return found.empty() ? count_fault() : found;
}

std::string own_part::shape_fault() const {
  auto const length = static_cast<std::int64_t>(accumulator_.size());
  if (result_.indices.size() != result_.values.size()) {
    return "the result has " + std::to_string(result_.indices.size()) + " indices, but " +
           std::to_string(result_.values.size()) + " values";
  }
  if (!ascending_below(result_.indices, length)) {
    return "the indices of the result do not ascend within the gradient";
  }
  if (!ascending_below(result_.contributed, length)) {
    return "the contributed indices do not ascend within the gradient";
  }
  if (!promised_.all_contribute && !std::includes(result_.indices.begin(), result_.indices.end(),
                                                  result_.contributed.begin(), result_.contributed.end())) {
    return "a contributed index is not in the result";
  }
  if (result_.returned_indices.size() != result_.returned_values.size() ||
      !ascending_below(result_.returned_indices, length)) {
    return "the returned entries do not ascend within the gradient";
  }
  return {};
}

std::string own_part::selection_fault() const {
  if (promised_.everything) {
    return result_.indices.size() == accumulator_.size() && result_.contributed.size() == accumulator_.size()
               ? std::string()
               : "the result has " + std::to_string(result_.indices.size()) + " entries, of which " +
                     std::to_string(result_.contributed.size()) + " contributed, instead of all";
  }
  if (promised_.local.exact) {
    std::vector<std::int64_t> expected;
    if (promised_.all_contribute) {
      expected = selected_;
    } else {
      std::set_intersection(selected_.begin(), selected_.end(), result_.indices.begin(), result_.indices.end(),
                            std::back_inserter(expected));
    }
    return expected == result_.contributed ? std::string()
                                           : "the contributed indices are not the exact top k within the result";
  }
  if (!promised_.local.one_threshold) {
    return {};
  }
  // A threshold that nobody tells: no entry of the result that was left out may exceed one that was contributed.
  float smallest = std::numeric_limits<float>::infinity();
  float largest = 0;
  auto contributed = result_.contributed.begin();
  for (std::int64_t const index : result_.indices) {
    float const magnitude = std::abs(accumulator_[static_cast<std::size_t>(index)]);
    if (contributed != result_.contributed.end() && *contributed == index) {
      smallest = std::min(smallest, magnitude);
      ++contributed;
    } else {
      largest = std::max(largest, magnitude);
    }
  }
  if (largest > smallest) {
    return "a larger entry was left out of the selection than one that is in it";
  }
  return {};
}

std::string own_part::count_fault() const {
  auto const all = static_cast<std::int64_t>(accumulator_.size());
  auto const results = static_cast<std::int64_t>(result_.indices.size());
  std::int64_t const expected = promised_.everything ? all : std::min(k_, all);
  if (figures_.global_selected != results) {
    return "the call reports " + std::to_string(figures_.global_selected) + " entries of the result, which has " +
           std::to_string(results);
  }
  if ((promised_.everything || promised_.local.exact) && figures_.local_selected != expected) {
    return "the call reports " + std::to_string(figures_.local_selected) + " selected entries instead of " +
           std::to_string(expected);
  }
  if (!promised_.everything && !inside(promised_.local, figures_.local_selected, k_)) {
    return outside("a local selection", figures_.local_selected, k_);
  }
  // With fewer candidates than k all of them are the result, and then every rank's selection is in it.
  if (promised_.global && promised_.global->exact && results != k_ && (results > k_ || !gave_everything())) {
    return "the result has " + std::to_string(results) + " entries instead of k = " + std::to_string(k_);
  }
  if (promised_.global && !inside(*promised_.global, results, k_) && (results > k_ || !gave_everything())) {
    return outside("a result", results, k_);
  }
  return {};
}

bool own_part::gave_everything() const {
  return static_cast<std::int64_t>(result_.contributed.size()) == figures_.local_selected;
}

void own_part::append_contributions(std::int64_t begin, std::int64_t end, std::vector<contribution>& parts) const {
  // A contributed entry of an exact selection is one of the selected, so these say it all.
  std::vector<std::int64_t> const& given = promised_.local.exact ? selected_ : result_.contributed;
  for (auto at = std::lower_bound(given.begin(), given.end(), begin); at != given.end() && *at < end; ++at) {
    parts.push_back({static_cast<std::uint32_t>(*at - begin), accumulator_[static_cast<std::size_t>(*at)]});
  }
  auto const& returned = result_.returned_indices;
  for (auto at = std::lower_bound(returned.begin(), returned.end(), begin); at != returned.end() && *at < end; ++at) {
    auto const which = static_cast<std::size_t>(at - returned.begin());
    parts.push_back({static_cast<std::uint32_t>(*at - begin), -result_.returned_values[which]});
  }
}

} // namespace oktopk_bench
