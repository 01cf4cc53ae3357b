// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/decorator.hpp>
#include <oktopk/comm/in_process.hpp>

#include <span>
#include <vector>

namespace oktopk_tests {

/// A bulk message that a rank has sent.
struct sent_message {
  int to;
  std::size_t bytes;
  oktopk::phase use;
};

/// Notes the bulk messages that a rank sends, in an array of the test.
class noting : public oktopk::communicator_decorator<oktopk::in_process_communicator> {
public:
  noting(oktopk::in_process_communicator comm, std::vector<sent_message>& sent)
      : communicator_decorator(std::move(comm)), sent_(&sent) {}

  template <class E>
  void start(E const& exec, std::span<oktopk::bulk_message const> messages, std::span<bulk_request> requests) {
    for (oktopk::bulk_message const& each : messages) {
      if (!each.receives) {
        sent_->push_back({each.peer, each.bytes.size(), each.use});
      }
    }
    inner().start(exec, messages, requests);
  }

private:
  std::vector<sent_message>* sent_;
};

} // namespace oktopk_tests
