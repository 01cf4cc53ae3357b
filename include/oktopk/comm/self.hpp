// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>

namespace oktopk {

/// One rank alone: for programs that run without a network, at no cost.
class self_communicator : public communicator_base {
public:
  class request {
  public:
    bool active() const { return false; }
    std::size_t bytes() const { return 0; }
  };

  using bulk_request = request;

  static constexpr bool tells_sizes() { return true; }

  int rank() const { return 0; }
  int size() const { return 1; }
  bool takes_other_threads() const { return true; }

  request isend(std::span<std::byte const>, int, phase) { throw nobody(); }
  request irecv(std::span<std::byte>, int, phase) { throw nobody(); }
  template <execution_space E>
  void start(E const&, std::span<bulk_message const> messages, std::span<request>) {
    if (!messages.empty()) {
      throw nobody();
    }
  }

  void wait_all(std::span<request>) {}
  void cancel(std::span<request>) noexcept {} // there are no messages whose order could be lost

  template <class T>
  void allreduce(std::span<T>, reduction, phase) {}

  template <class MemorySpace>
  bool can_access() const {
    return true;
  }

private:
  static error nobody() { return {fault::communication, "a lone rank has nobody to exchange messages with"}; }
};

} // namespace oktopk
