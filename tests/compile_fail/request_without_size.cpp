// expect: satisfaction of 'message_request<|does not satisfy 'message_request'
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A communicator whose requests do not say how much arrived: the compiler must name the part that is missing.

#include <oktopk/comm/concept.hpp>

#include <cstddef>
#include <span>

struct forgetful {
  struct request {
    bool active() const { return false; }
    bool receives() const { return false; }
    oktopk::phase message_phase() const { return oktopk::phase::control; }
  };

  int rank() const { return 0; }
  int size() const { return 1; }
  request isend(std::span<std::byte const>, int, oktopk::phase) { return {}; }
  request irecv(std::span<std::byte>, int, oktopk::phase) { return {}; }
  std::size_t wait_any(std::span<request> requests) { return requests.size(); }
  void wait_all(std::span<request>) {}
  void cancel(std::span<request>) noexcept {}

  template <class T>
  void allreduce(std::span<T>, oktopk::reduction, oktopk::phase) {}

  template <class MemorySpace>
  bool reaches() const {
    return true;
  }
};

template <oktopk::communicator C>
void needs_a_communicator(C const&) {
}

void use() {
  needs_a_communicator(forgetful{});
}
