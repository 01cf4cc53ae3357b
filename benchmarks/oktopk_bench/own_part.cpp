// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "own_part.hpp"

#include <fmt/format.h>

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

bool inside(oktopk::selection_promises const& limits, std::int64_t count, std::int64_t k) {
  return static_cast<double>(count) >= limits.low * static_cast<double>(k) &&
         !(static_cast<double>(count) > limits.high * static_cast<double>(k)); // no limit times no entries is no number
}

std::string outside(std::string const& what, std::int64_t count, std::int64_t k) {
  return what + " of " + std::to_string(count) + " entries is outside the band around k = " + std::to_string(k);
}

} // namespace

own_part::own_part(std::span<float const> accumulator, host_result const& result,
                   oktopk::call_statistics const& figures, allreduce_promises const& promised, std::int64_t k, int rank,
                   std::span<std::int64_t const> boundaries)
    : accumulator_(accumulator), result_(result), figures_(figures), promised_(promised),
      local_(promised.local.value_or(oktopk::selection_promises{.largest = true})), k_(k), rank_(rank),
      boundaries_(boundaries), code_(rounds() ? promised.rounding : std::string()) {
  // What is above one threshold is the largest entries, as many as there are.
  knows_selection_ = local_.is_exact() || (rounds() && local_.largest);
  if (knows_selection_) {
    selected_ = top_k(accumulator_, local_.is_exact() ? k_ : std::max<std::int64_t>(figures_.local_selected, 0));
  }
  if (promised_.sums == order::of_owners && !boundaries_.empty()) {
    own_begin_ = boundaries_[static_cast<std::size_t>(rank_)];
    own_end_ = boundaries_[static_cast<std::size_t>(rank_) + 1];
  }
  if (rounds() && code_.known() && (knows_selection_ || code_.each_alone())) {
    follow_selection();
  }
}

void own_part::follow_selection() {
  bool const to_owners = promised_.sums == order::of_owners;
  if (promised_.sums == order::of_tree || (to_owners && boundaries_.empty())) {
    return;
  }
  followed_ = knows_selection_ ? selected_ : result_.contributed;
  auto const is_of_gradient = [this](std::int64_t index) {
    return index >= 0 && index < static_cast<std::int64_t>(accumulator_.size());
  };
  if (!std::all_of(followed_.begin(), followed_.end(), is_of_gradient)) {
    followed_.clear(); // which the shape of the result tells
  }
  std::vector<float> message;
  auto at = followed_.begin();
  std::size_t const messages = to_owners ? boundaries_.size() - 1 : 1;
  for (std::size_t owner = 0; owner < messages; ++owner) {
    auto const end = to_owners ? std::lower_bound(at, followed_.end(), boundaries_[owner + 1]) : followed_.end();
    message.clear();
    for (; at != end; ++at) {
      message.push_back(accumulator_[static_cast<std::size_t>(*at)]);
    }
    if (to_owners && owner == static_cast<std::size_t>(rank_)) { // goes nowhere
      std::transform(message.begin(), message.end(), std::back_inserter(reached_), [](float value) {
        return coded_value{static_cast<double>(value), 0};
      });
    } else {
      code_.code(message, reached_);
    }
  }
}

bool own_part::knows_candidates() const {
  return knows_selection_ && (!rounds() || followed_.size() == selected_.size());
}

std::string own_part::problem() const {
  std::string found = shape_fault();
  if (found.empty()) {
    found = selection_fault();
  }
  if (found.empty()) {
    found = count_fault();
  }
  return found.empty() && promised_.local && promised_.repeats ? returned_fault() : found;
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
  if (!promised_.local) {
    return result_.indices.size() == accumulator_.size() && result_.contributed.size() == accumulator_.size()
               ? std::string()
               : "the result has " + std::to_string(result_.indices.size()) + " entries, of which " +
                     std::to_string(result_.contributed.size()) + " contributed, instead of all";
  }
  if (!local_.is_exact() && local_.largest) {
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
  }
  if (knows_selection_) {
    std::vector<std::int64_t> expected;
    if (promised_.all_contribute) {
      expected = selected_;
    } else {
      std::set_intersection(selected_.begin(), selected_.end(), result_.indices.begin(), result_.indices.end(),
                            std::back_inserter(expected));
    }
    if (expected != result_.contributed) {
      return local_.is_exact() ? "the contributed indices are not the exact top k within the result"
                               : "the contributed indices are not the largest of the selection within the result";
    }
  }
  return {};
}

std::string own_part::count_fault() const {
  auto const all = static_cast<std::int64_t>(accumulator_.size());
  auto const results = static_cast<std::int64_t>(result_.indices.size());
  std::int64_t const expected = promised_.local ? std::min(k_, all) : all;
  if (figures_.global_selected != results) {
    return "the call reports " + std::to_string(figures_.global_selected) + " entries of the result, which has " +
           std::to_string(results);
  }
  if ((!promised_.local || local_.is_exact()) && figures_.local_selected != expected) {
    return "the call reports " + std::to_string(figures_.local_selected) + " selected entries instead of " +
           std::to_string(expected);
  }
  if (promised_.local && !inside(local_, figures_.local_selected, k_)) {
    return outside("a local selection", figures_.local_selected, k_);
  }
  // With fewer candidates than k all of them are the result, and then every rank's selection is in it.
  if (promised_.global && promised_.global->is_exact() && results != k_ && (results > k_ || !gave_everything())) {
    return "the result has " + std::to_string(results) + " entries instead of k = " + std::to_string(k_);
  }
  if (promised_.global && !inside(*promised_.global, results, k_) && (results > k_ || !gave_everything())) {
    return outside("a result", results, k_);
  }
  return {};
}

// What a rank's messages rounded off is returned to it: of its contributions, unless they are its own sums', and of the
// sums of its region.
std::string own_part::returned_fault() const {
  if (promised_.sums == order::of_tree) { // returns what it drops, too
    return rounds() && code_.known() ? result_code_fault() : std::string();
  }
  auto const& indices = result_.indices;
  auto const& given = result_.contributed;
  std::vector<std::int64_t> expected;
  if (rounds() && (promised_.sums != order::of_owners || !boundaries_.empty())) {
    auto const at = [](std::vector<std::int64_t> const& list, std::int64_t index) {
      return std::lower_bound(list.begin(), list.end(), index);
    };
    expected.assign(given.begin(), at(given, own_begin_));
    expected.insert(expected.end(), at(indices, own_begin_), at(indices, own_end_));
    expected.insert(expected.end(), at(given, own_end_), given.end());
  } else if (rounds()) {
    return {};
  }
  if (expected != result_.returned_indices) {
    return rounds() ? "the returned entries are not those that this rank's messages rounded"
                    : "something was returned, where nothing is rounded or dropped";
  }
  std::string const found = lost_value_fault();
  return found.empty() && code_.known() && (code_.each_alone() || !codes_other_sums(promised_)) ? own_sums_fault()
                                                                                                : found;
}

// The owners of the sums have what the code makes of a contribution; the rest was returned.
std::string own_part::lost_value_fault() const {
  auto followed = followed_.begin();
  for (std::size_t i = 0; i < result_.returned_indices.size(); ++i) {
    std::int64_t const index = result_.returned_indices[i];
    followed = std::lower_bound(followed, followed_.end(), index);
    if (followed == followed_.end() || *followed != index || (index >= own_begin_ && index < own_end_)) {
      continue;
    }
    coded_value const& reached = reached_[static_cast<std::size_t>(followed - followed_.begin())];
    double const lost = static_cast<double>(accumulator_[static_cast<std::size_t>(index)]) - reached.value;
    auto const returned = static_cast<double>(result_.returned_values[i]);
    if (!(std::abs(returned - lost) <= reached.doubt + 0x1p-24 * std::abs(lost))) {
      return fmt::format("{:.9g} was returned at index {}, where {} takes {:.9g} off", returned, index,
                         promised_.rounding, lost);
    }
  }
  return {};
}

// Of the sums of this rank's region the result has what the code makes of them; the rest was returned.
std::string own_part::own_sums_fault() const {
  auto const position = [](std::vector<std::int64_t> const& list, std::int64_t index) {
    return static_cast<std::size_t>(std::lower_bound(list.begin(), list.end(), index) - list.begin());
  };
  auto const& indices = result_.indices;
  std::size_t const last = position(indices, own_end_);
  std::vector<float> message;
  std::vector<coded_value> coded;
  std::size_t const ranks = std::max<std::size_t>(boundaries_.size(), 2) - 1;
  for (std::size_t first = position(indices, own_begin_), part = 0; first < last; ++part) {
    // Balanced parts have the same number of entries but for one, and are coded by themselves.
    std::size_t const end_of_part =
        figures_.balanced ? indices.size() / ranks * (part + 1) + std::min(part + 1, indices.size() % ranks) : last;
    std::size_t const end = std::min(last, end_of_part);
    if (end <= first) {
      continue;
    }
    message.clear();
    coded.clear();
    std::size_t const returned = position(result_.returned_indices, indices[first]);
    for (std::size_t i = first; i < end; ++i) {
      auto const value = static_cast<double>(result_.values[i]);
      auto const lost = static_cast<double>(result_.returned_values[returned + i - first]);
      // A sum that is next to nothing beside what it is rounded to leaves no trace but its sign.
      bool const is_lost = std::abs(value + lost) <= 0x1p-23 * std::abs(lost);
      message.push_back(static_cast<float>(is_lost ? std::copysign(value + lost, value) : value + lost));
    }
    code_.code(message, coded);
    for (std::size_t i = 0; i < coded.size(); ++i) {
      auto const value = static_cast<double>(result_.values[first + i]);
      if (!(std::abs(value - coded[i].value) <= coded[i].doubt)) {
        return fmt::format("the value at index {} is {:.9g}, but {} makes {:.9g} of the sum {:.9g}", indices[first + i],
                           value, promised_.rounding, coded[i].value, static_cast<double>(message[i]));
      }
    }
    first = end;
  }
  return {};
}

// The root of a tree codes the whole result, unless there is nobody to send it to.
std::string own_part::result_code_fault() const {
  bool const coded = boundaries_.size() > 2;
  return !coded || code_.may_give(result_.values)
             ? std::string()
             : "the values of the result are none that " + promised_.rounding + " gives";
}

bool own_part::gave_everything() const {
  return static_cast<std::int64_t>(result_.contributed.size()) == figures_.local_selected;
}

void own_part::append_contributions(std::int64_t begin, std::int64_t end, std::vector<contribution>& parts) const {
  auto const append = [&](std::int64_t index, contribution::kind_type kind, float value) {
    parts.push_back({static_cast<std::uint32_t>(index - begin), value, kind});
  };
  // A contributed entry of a selection that is known is one of the selected, so these say it all.
  std::vector<std::int64_t> const& given = knows_selection_ ? selected_ : result_.contributed;
  for (auto at = std::lower_bound(given.begin(), given.end(), begin); at != given.end() && *at < end; ++at) {
    append(*at, contribution::given, accumulator_[static_cast<std::size_t>(*at)]);
    if (rounds() && knows_candidates()) {
      coded_value const& reached = reached_[static_cast<std::size_t>(at - given.begin())];
      append(*at, contribution::reached, static_cast<float>(reached.value));
      if (reached.doubt > 0) {
        append(*at, contribution::doubt, static_cast<float>(reached.doubt));
      }
    }
  }
  auto const& returned = result_.returned_indices;
  for (auto at = std::lower_bound(returned.begin(), returned.end(), begin); at != returned.end() && *at < end; ++at) {
    auto const which = static_cast<std::size_t>(at - returned.begin());
    append(*at, contribution::returned, result_.returned_values[which]);
  }
}

} // namespace oktopk_bench
