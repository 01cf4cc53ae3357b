// expect: satisfaction of 'waits<|does not satisfy 'waits'
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A communicator that can send and receive but not wait: the compiler must name the part that is missing.

#include <oktopk/comm/concept.hpp>

#include <cstddef>
#include <span>

struct impatient {
  struct request {
    bool active() const { return false; }
    bool receives() const { return false; }
    oktopk::phase message_phase() const { return oktopk::phase::control; }
    std::size_t bytes() const { return 0; }
  };

  int rank() const { return 0; }
  int size() const { return 1; }
  request isend(std::span<std::byte const>, int, oktopk::phase) { return {}; }
  request irecv(std::span<std::byte>, int, oktopk::phase) { return {}; }
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
  needs_a_communicator(impatient{});
}
