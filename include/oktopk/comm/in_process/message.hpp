// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

namespace oktopk::in_process {
struct planned_fault;
}

namespace oktopk::detail {

/// One side of a message: what a rank sends, or its room for what it receives.
struct in_process_message {
  bool receive = false;
  bool done = false;
  bool truncated = false;
  int owner = 0;
  int peer = 0;
  phase use = phase::control;
  std::byte* data = nullptr;
  std::size_t size = 0;
  std::size_t arrived = 0;
  void const* group = nullptr;                    ///< in which it is sent
  int fiber = 0;                                  ///< that owns it: its rank in the communicator of all ranks
  bool under_way = false;                         ///< in a simulation, which delivers it later
  std::uint64_t number = 0;                       ///< in a simulation: of all messages of its rank
  in_process::planned_fault const* hit = nullptr; ///< in a simulation: what a planned fault does to it
  in_process_message* next = nullptr;             ///< in its line
};

/// The messages from one rank to another in one phase whose other side is missing, oldest first: all of them are sends,
/// or all are receives, since a send and a receive meet at once.
class in_process_line {
public:
  bool empty() const { return last_ == nullptr; }
  bool receives() const { return last_->receive; }
  void clear() { last_ = nullptr; }

  void push(in_process_message* message) {
    message->next = empty() ? message : std::exchange(last_->next, message);
    last_ = message;
  }

  in_process_message* pop() {
    in_process_message* const first = last_->next;
    last_ = first == last_ ? nullptr : last_;
    if (last_ != nullptr) {
      last_->next = first->next;
    }
    return first;
  }

private:
  in_process_message* last_ = nullptr; // whose next one is the first
};

inline void deliver(in_process_message& from, in_process_message& to) {
  std::size_t const bytes = from.size < to.size ? from.size : to.size;
  if (bytes > 0) {
    std::memcpy(to.data, from.data, bytes);
  }
  to.arrived = from.size;
  to.truncated = from.size > to.size;
  to.done = true;
  from.done = true;
}

/// Room for messages, which stays where it is; it only grows.
class in_process_messages {
public:
  in_process_message* take(in_process_message const& message) {
    if (spare_.empty()) {
      if (spare_.capacity() <= storage_.size()) {
        spare_.reserve(2 * storage_.size() + 8); // room for all that will be released
      }
      spare_.push_back(&storage_.emplace_back());
    }
    in_process_message* const slot = spare_.back();
    spare_.pop_back();
    *slot = message;
    return slot;
  }

  void release(in_process_message* message) noexcept { spare_.push_back(message); } // `take` has made room

private:
  std::deque<in_process_message> storage_;
  std::vector<in_process_message*> spare_;
};

} // namespace oktopk::detail
