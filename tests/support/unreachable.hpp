// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/decorator.hpp>

#include <span>
#include <type_traits>
#include <utility>

namespace oktopk_tests {

/// A communicator that says it cannot reach the host's memory, as MPI says of a device's; or can, if it is told so when
/// it is made, so that one instantiation of an algorithm serves both.
///
/// On a CPU, kernels and messages then have arrays of their own, and everything that travels is copied between them:
/// the way a GPU without a GPU-aware MPI works, where the tests can watch it.
template <oktopk::communicator Comm>
class unreachable : public oktopk::communicator_decorator<Comm> {
  using decorator = oktopk::communicator_decorator<Comm>;
  using decorator::inner_;

public:
  using request = typename Comm::request;
  using bulk_request = typename Comm::bulk_request;

  explicit unreachable(Comm inner, bool far = true) : decorator(std::move(inner)), far_(far) {}

  request isend(std::span<std::byte const> out, int peer, oktopk::phase use) { return inner_.isend(out, peer, use); }
  request irecv(std::span<std::byte> in, int peer, oktopk::phase use) { return inner_.irecv(in, peer, use); }

  template <oktopk::execution_space E>
  void start(E const& exec, std::span<oktopk::bulk_message const> messages, std::span<bulk_request> requests) {
    inner_.start(exec, messages, requests);
  }

  void wait_all(std::span<request> requests) { inner_.wait_all(requests); }
  void cancel(std::span<request> requests) noexcept { inner_.cancel(requests); }

  template <class T>
  void allreduce(std::span<T> data, oktopk::reduction op, oktopk::phase use) {
    inner_.allreduce(data, op, use);
  }

  template <class MemorySpace>
  bool reaches() const {
    return !(far_ && std::is_same_v<MemorySpace, Kokkos::HostSpace>)&&decorator::template reaches<MemorySpace>();
  }

private:
  bool far_;
};

} // namespace oktopk_tests
