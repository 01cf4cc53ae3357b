// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/foreign_transport.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

// A transport whose groups of messages take their place on a queue, as NCCL's on a stream: a group begins when the
// group before it has ended, and a send ends when it is received. Ranks that start their groups in orders that do not
// fit wait for each other for ever, which `in_process` tells them.
namespace oktopk_tests {

class ordered_bulk : public oktopk::communicator_base {
public:
  class bulk_request {
  public:
    bool active() const { return group_ != 0; }

  private:
    friend ordered_bulk;
    std::uint64_t group_ = 0; // from 1 on
  };

  static constexpr bool ordered_by_instance() { return true; }

  explicit ordered_bulk(oktopk::in_process_communicator inner) : queue_(std::make_shared<queue>(inner)) {}

  int rank() const { return queue_->transport.rank(); }
  int size() const { return queue_->transport.size(); }

  template <oktopk::execution_space E>
  void start(E const& exec, std::span<oktopk::bulk_message const> messages, std::span<bulk_request> requests) {
    finish();
    queue_->under_way.resize(messages.size());
    queue_->groups += 1;
    for (bulk_request& each : requests) {
      each.group_ = queue_->groups;
    }
    queue_->transport.start(exec, messages, std::span(queue_->under_way));
  }

  void wait_all(std::span<bulk_request> requests) {
    for (bulk_request& each : requests) {
      if (each.group_ == queue_->groups) {
        finish();
      }
      each.group_ = 0;
    }
  }

  void cancel(std::span<bulk_request> requests) noexcept {
    queue_->transport.cancel(std::span(queue_->under_way));
    for (bulk_request& each : requests) {
      each.group_ = 0;
    }
  }

  template <class T>
  void allreduce(std::span<T> values, oktopk::reduction op, oktopk::phase use) {
    finish();
    queue_->transport.allreduce(values, op, use);
  }

  template <class MemorySpace>
  bool can_access() const {
    return queue_->transport.can_access<MemorySpace>();
  }

private:
  struct queue {
    explicit queue(oktopk::in_process_communicator inner) : transport(inner) {}

    bulk_archetype transport;
    std::vector<bulk_archetype::bulk_request> under_way; // of the last group
    std::uint64_t groups = 0;
  };

  void finish() { queue_->transport.wait_all(std::span(queue_->under_way)); }

  std::shared_ptr<queue> queue_;
};

/// With control beside it.
class ordered_communicator : public oktopk::paired<control_archetype, ordered_bulk> {
public:
  explicit ordered_communicator(oktopk::in_process_communicator inner)
      : paired(control_archetype(inner), ordered_bulk(inner)) {}
};

} // namespace oktopk_tests
