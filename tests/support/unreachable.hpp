// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/operation.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace oktopk_tests {

/// A communicator that says it cannot reach the host's memory, as MPI says of a device's; or can, if it is told so when
/// it is made, so that one instantiation of an algorithm serves both.
///
/// On a CPU, kernels and messages then have arrays of their own, and everything that travels is copied between them:
/// the way a GPU without a GPU-aware MPI works, where the tests can watch it.
template <oktopk::communicator Comm>
class unreachable {
public:
  using request = typename Comm::request;
  using bulk_request = typename Comm::bulk_request;
  static constexpr bool tells_sizes = Comm::tells_sizes;
  static constexpr bool ordered_by_instance = Comm::ordered_by_instance;

  explicit unreachable(Comm inner, bool far = true) : inner_(std::move(inner)), far_(far) {}

  int rank() const { return inner_.rank(); }
  int size() const { return inner_.size(); }

  request isend(std::span<std::byte const> out, int peer, oktopk::phase use) { return inner_.isend(out, peer, use); }
  request irecv(std::span<std::byte> in, int peer, oktopk::phase use) { return inner_.irecv(in, peer, use); }

  template <oktopk::execution_space E>
  void start(E const& exec, std::span<oktopk::bulk_message const> messages, std::span<bulk_request> requests) {
    inner_.start(exec, messages, requests);
  }

  void wait_all(std::span<request> requests) { inner_.wait_all(requests); }
  void cancel(std::span<request> requests) noexcept { inner_.cancel(requests); }

  void begin_operation(std::string_view name, std::int64_t number) { oktopk::begin_operation(inner_, name, number); }

  template <class T>
  void allreduce(std::span<T> data, oktopk::reduction op, oktopk::phase use) {
    inner_.allreduce(data, op, use);
  }

  template <class MemorySpace>
  bool reaches() const {
    return !(far_ && std::is_same_v<MemorySpace, Kokkos::HostSpace>)&&inner_.template reaches<MemorySpace>();
  }

private:
  Comm inner_;
  bool far_;
};

} // namespace oktopk_tests
