// expect: satisfaction of 'knows_what_arrived<|does not satisfy 'knows_what_arrived'
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A communicator that claims to tell sizes and whose requests do not say how much arrived: the compiler must name the
// part that is missing.

#include <oktopk/comm/concept.hpp>

#include <cstddef>
#include <span>

struct forgetful {
  struct request {
    bool active() const { return false; }
  };
  using bulk_request = request;
  static constexpr bool tells_sizes = true;
  static constexpr bool ordered_by_instance = false;

  int rank() const { return 0; }
  int size() const { return 1; }
  request isend(std::span<std::byte const>, int, oktopk::phase) { return {}; }
  request irecv(std::span<std::byte>, int, oktopk::phase) { return {}; }
  template <class E>
  void start(E const&, std::span<oktopk::bulk_message const>, std::span<request>) {}
  void wait_all(std::span<request>) {}
  void cancel(std::span<request>) noexcept {}

  template <class T>
  void allreduce(std::span<T>, oktopk::reduction, oktopk::phase) {}

  template <class MemorySpace>
  bool can_access() const {
    return true;
  }
};

template <oktopk::communicator C>
void needs_a_communicator(C const&) {
}

void use() {
  needs_a_communicator(forgetful{});
}
