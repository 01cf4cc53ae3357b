// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/checkpoint.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/training/buckets.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace oktopk {

/// All that `bucketed` carries from one step to the next, on the host; a plain value. Residuals are kept per tensor, so
/// that they fit any other plan.
template <gradient_value Value>
struct bucketed_state {
  std::vector<std::int64_t> lengths;        ///< of the tensors, by number
  std::vector<Value> residual;              ///< of all tensors, by number
  std::vector<Value> velocity;              ///< the same; empty without momentum
  std::vector<std::int64_t> bucket_lengths; ///< of the plan that the rest belongs to
  std::vector<std::int64_t> bucket_tensors; ///< the tensors of all buckets, one after the other
  std::vector<std::int64_t> bytes;          ///< of each bucket's allreduce
  std::vector<char> allreduces;             ///< their checkpoints

  /// For `save` and `load`.
  static std::string type_name() { return "bucketed, " + std::to_string(8 * sizeof(Value)) + "-bit values"; }

  template <class State, class Visit>
  static void each_part(State& state, Visit& visit) {
    visit(state.lengths);
    visit(state.residual);
    visit(state.velocity);
    visit(state.bucket_lengths);
    visit(state.bucket_tensors);
    visit(state.bytes);
    visit(state.allreduces);
  }
};

namespace detail {

/// The bytes that `save` writes.
template <class State>
std::string checkpoint_of(State const& state) {
  std::ostringstream out;
  save(out, state);
  return out.str();
}

/// Lengths and tensors of the buckets of a plan, as a state has them.
template <gradient_value Value>
void note_plan(bucket_plan const& plan, bucketed_state<Value>& saved) {
  for (bucket const& each : plan.buckets) {
    saved.bucket_lengths.push_back(each.length);
    saved.bucket_tensors.insert(saved.bucket_tensors.end(), each.tensors.begin(), each.tensors.end());
  }
}

template <gradient_value Value>
bool has_plan(bucketed_state<Value> const& saved, bucket_plan const& plan) {
  bucketed_state<Value> of_plan;
  note_plan(plan, of_plan);
  return saved.bucket_lengths == of_plan.bucket_lengths && saved.bucket_tensors == of_plan.bucket_tensors;
}

/// The states of the buckets' error feedbacks as one: residuals and velocities by tensor.
template <gradient_value Value, class FeedbackState>
bucketed_state<Value> joined_by_tensor(bucket_plan const& plan, std::vector<FeedbackState> const& states) {
  bucketed_state<Value> saved;
  note_plan(plan, saved);
  for (FeedbackState const& each : states) {
    std::string const bytes = checkpoint_of(each.allreduce);
    saved.bytes.push_back(static_cast<std::int64_t>(bytes.size()));
    saved.allreduces.insert(saved.allreduces.end(), bytes.begin(), bytes.end());
  }
  auto const append = [](std::vector<Value> const& from, tensor_place const& place, std::vector<Value>& to) {
    if (!from.empty()) {
      auto const begin = from.begin() + place.offset;
      to.insert(to.end(), begin, begin + place.length);
    }
  };
  for (tensor_place const& place : plan.places) {
    FeedbackState const& of = states[static_cast<std::size_t>(place.bucket)];
    saved.lengths.push_back(place.length);
    append(of.residual, place, saved.residual);
    append(of.velocity, place, saved.velocity);
  }
  return saved;
}

/// Reads the allreduces' states where the plan is the same, else those of allreduces without a past, `fresh`. Gives the
/// fault in words; empty where there is none.
template <gradient_value Value, class FeedbackState>
std::string read_allreduces(bucketed_state<Value> const& saved, bool same_plan, std::vector<std::string> const& fresh,
                            std::vector<FeedbackState>& states) {
  using allreduce_state = decltype(FeedbackState::allreduce);
  if (same_plan && saved.bytes.size() != states.size()) {
    return "the saved state is damaged";
  }
  std::size_t at = 0;
  for (std::size_t bucket = 0; bucket < states.size(); ++bucket) {
    std::string text = fresh[bucket];
    if (same_plan) {
      auto const left = static_cast<std::int64_t>(saved.allreduces.size() - at);
      if (saved.bytes[bucket] < 0 || saved.bytes[bucket] > left) {
        return "the saved state is damaged";
      }
      text.assign(saved.allreduces.data() + at, static_cast<std::size_t>(saved.bytes[bucket]));
      at += text.size();
    }
    try {
      std::istringstream in(text);
      states[bucket].allreduce = load<allreduce_state>(in);
    } catch (error const& found) {
      return found.sentence();
    }
  }
  return {};
}

/// Puts what was saved into the states of the buckets' error feedbacks, which are those of now. Gives the fault in
/// words; empty where there is none.
template <gradient_value Value, class FeedbackState>
std::string put_by_tensor(bucketed_state<Value> const& saved, bucket_plan const& plan,
                          std::vector<std::string> const& fresh, std::vector<FeedbackState>& states) {
  std::int64_t all = 0;
  bool same_tensors = saved.lengths.size() == plan.places.size();
  for (std::size_t i = 0; i < plan.places.size() && same_tensors; ++i) {
    same_tensors = saved.lengths[i] == plan.places[i].length;
    all += plan.places[i].length;
  }
  if (!same_tensors) {
    return "the saved state is of other tensors";
  }
  bool const has_velocity =
      std::any_of(states.begin(), states.end(), [](auto const& of) { return !of.velocity.empty(); });
  auto const size = static_cast<std::size_t>(all);
  if (saved.residual.size() != size || saved.velocity.size() != (has_velocity ? size : 0)) {
    return "the saved state is of another length or has another momentum";
  }
  auto const finite = [](std::vector<Value> const& numbers) {
    return std::all_of(numbers.begin(), numbers.end(), [](Value value) { return std::isfinite(value); });
  };
  if (!finite(saved.residual) || !finite(saved.velocity)) {
    return "the saved state is damaged";
  }
  if (std::string fault = read_allreduces(saved, has_plan(saved, plan), fresh, states); !fault.empty()) {
    return fault;
  }
  auto from = std::ptrdiff_t(0);
  for (tensor_place const& place : plan.places) {
    FeedbackState& of = states[static_cast<std::size_t>(place.bucket)];
    std::copy_n(saved.residual.begin() + from, place.length, of.residual.begin() + place.offset);
    if (has_velocity) {
      std::copy_n(saved.velocity.begin() + from, place.length, of.velocity.begin() + place.offset);
    }
    from += place.length;
  }
  return {};
}

} // namespace detail

} // namespace oktopk
