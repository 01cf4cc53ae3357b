// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>

#include <utility>
#include <vector>

namespace oktopk {

/// Base of a communicator around another one: of `counted`, of `checked`, and of your own.
///
/// Is a copy of the inner communicator, so all that it has passes on: time limits and `abort` too. A derived class hides
/// what it changes: one that hides `isend` also hides `start` if bulk messages are to change alike
/// (`start_one_by_one`), and one with request types of its own hides all that starts a message, waits or cancels.
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

/// Lends requests that are parts of others to one wait of the inner communicator, for it to see them together, under
/// one time limit; they are back where they were when this goes out of scope.
///
/// Appends to `storage`, which outlives this and is not made longer meanwhile but by others of these.
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
