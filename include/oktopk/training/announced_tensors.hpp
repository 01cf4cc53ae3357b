// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/training/buckets.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace oktopk::detail {

/// The tensors of a step whose gradients are there, and the bucket whose call is next: buckets go in their order, which
/// is the same on all ranks, in whatever order tensors are announced.
///
/// Part of `bucketed`, for the thread that announces. `misuse_of` a bucket is also for the thread that makes its call:
/// it does not change from then on until `begin_step`, which must not run while a call is under way.
class announced_tensors {
public:
  announced_tensors() = default;

  explicit announced_tensors(bucket_plan const& plan) : misused_(plan.buckets.size()) {
    for (bucket const& each : plan.buckets) {
      tensors_in_.push_back(static_cast<int>(each.tensors.size()));
    }
    for (tensor_place const& each : plan.places) {
      bucket_of_.push_back(each.bucket);
    }
    begin_step();
  }

  /// Forgets the step before; a misuse that came too late for its calls makes the first one of this step fail.
  void begin_step() {
    next_ = 0;
    missing_ = tensors_in_;
    seen_.assign(bucket_of_.size(), 0);
    std::fill(misused_.begin(), misused_.end(), std::nullopt);
    if (!misused_.empty()) {
      misused_.front() = take_late();
    }
  }

  bool knows(int tensor) const { return tensor >= 0 && static_cast<std::size_t>(tensor) < bucket_of_.size(); }
  /// Of a tensor that it knows.
  bool has(int tensor) const { return seen_[static_cast<std::size_t>(tensor)] != 0; }

  /// The bucket that is complete with this tensor; none where it is not, or where the tensor cannot be announced, which
  /// is a misuse.
  std::optional<int> announce(int tensor) {
    if (!knows(tensor)) {
      misuse(static_cast<int>(missing_.size()) - 1, fault::option_out_of_range,
             "there is no tensor " + std::to_string(tensor) + " among " + std::to_string(bucket_of_.size()));
      return std::nullopt;
    }
    int const bucket = bucket_of_[static_cast<std::size_t>(tensor)];
    if (has(tensor)) {
      misuse(bucket, fault::option_out_of_range,
             "tensor " + std::to_string(tensor) + " was ready already in this step");
      return std::nullopt;
    }
    seen_[static_cast<std::size_t>(tensor)] = 1;
    return --missing_[static_cast<std::size_t>(bucket)] == 0 ? std::optional(bucket) : std::nullopt;
  }

  /// The call of the bucket will fail, on all ranks; where it was given out already, that of the next one which was
  /// not, if need be in the next step. The first misuse stays.
  void misuse(int bucket, fault code, std::string const& sentence) {
    auto const at = static_cast<std::size_t>(std::max(bucket, next_));
    std::optional<error>& first = at < misused_.size() ? misused_[at] : late_;
    if (!first) {
      first.emplace(code, "bucketed: " + sentence);
    }
  }

  /// A misuse that is left for the next step; forgets it.
  std::optional<error> take_late() { return std::exchange(late_, std::nullopt); }

  std::optional<error> const& misuse_of(int bucket) const { return misused_[static_cast<std::size_t>(bucket)]; }

  /// The next bucket in order, if all its tensors are there.
  std::optional<int> next_complete() const {
    auto const next = static_cast<std::size_t>(next_);
    return next < missing_.size() && missing_[next] == 0 ? std::optional(next_) : std::nullopt;
  }

  /// The call of that bucket is under way.
  void give_out() { next_ += 1; }

private:
  std::vector<int> tensors_in_; // each bucket
  std::vector<int> bucket_of_;  // each tensor
  std::vector<int> missing_;    // tensors of each bucket
  std::vector<char> seen_;
  std::vector<std::optional<error>> misused_;
  std::optional<error> late_; // for the next step
  int next_ = 0;
};

} // namespace oktopk::detail
