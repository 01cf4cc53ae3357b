// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>

#include <utility>
#include <vector>

namespace oktopk {

/// Base of a communicator around another one: of `counted`, of `checked`, and of your own.
///
/// It is a copy of the inner communicator with all of its members, time limits and `abort` too. A derived class hides
/// the members that it changes. If it hides `isend`, it also hides `start` if bulk messages are to change alike
/// (`start_one_by_one`). If it has request types of its own, it hides all members that start a message, wait or cancel.
template <communicator Comm>
class communicator_decorator : public Comm {
  static_assert(!std::is_polymorphic_v<Comm>,
                "oktopk: a decorator derives from its communicator, whose functions must not be virtual");

public:
  Comm& inner() { return *this; }

protected:
  explicit communicator_decorator(Comm inner) : Comm(std::move(inner)) {}
};

namespace detail {

/// Lends requests that are parts of other requests to one wait of the inner communicator, so that it sees them
/// together, under one time limit. At the end of the scope they return to their places.
///
/// Appends to `storage`, which outlives this. Meanwhile only objects of this class make it longer.
template <class Request, class Inner>
class lent_requests {
  using part_type = Inner Request::*; // by name, or nvcc writes parentheses that g++ warns of

public:
  lent_requests(std::span<Request> requests, part_type part, std::vector<Inner>& storage)
      : requests_(requests), part_(part), storage_(storage), first_(storage.size()) {
    storage_.reserve(first_ + requests_.size()); // throws before anything is moved
    for (Request& each : requests_) {
      storage_.push_back(std::move(each.*part_));
    }
  }

  ~lent_requests() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      requests_[i].*part_ = std::move(storage_[first_ + i]);
    }
  }

  lent_requests& operator=(lent_requests&&) = delete;

private:
  std::span<Request> requests_;
  part_type part_;
  std::vector<Inner>& storage_;
  std::size_t first_;
};

} // namespace detail
} // namespace oktopk
