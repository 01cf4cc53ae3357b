// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace oktopk::detail {

/// Lends requests that are parts of others to one wait of the inner communicator, for it to see them together, under
/// one time limit; they are back where they were when this goes out of scope.
///
/// Appends to `room`, which outlives this and is not made longer meanwhile but by others of these.
template <class Request, class Inner>
class lent_requests {
public:
  lent_requests(std::span<Request> requests, Inner Request::*part, std::vector<Inner>& room)
      : requests_(requests), part_(part), room_(room), first_(room.size()) {
    room_.reserve(first_ + requests_.size()); // throws before anything is moved
    for (Request& each : requests_) {
      room_.push_back(std::move(each.*part_));
    }
  }

  ~lent_requests() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      requests_[i].*part_ = std::move(room_[first_ + i]);
    }
  }

  lent_requests(lent_requests const&) = delete;
  lent_requests& operator=(lent_requests const&) = delete;

private:
  std::span<Request> requests_;
  Inner Request::*part_;
  std::vector<Inner>& room_;
  std::size_t first_;
};

} // namespace oktopk::detail
