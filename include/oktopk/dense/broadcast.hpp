// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/dense/wire.hpp>

namespace oktopk::detail {

/// Copies one rank's vector to all others directly (Gloo's `broadcast_one_to_all`): one step, P-1 messages of n values
/// from the root, none from the others.
///
/// It lies here and not among the messages of comm/, because it sends a vector of kernels over the plain wire.
/// Collective; `values` is in the memory of `exec`, `count` and `root` are the same on all ranks. If the communicator
/// does not reach the vector, the buffer for its copy in host memory is kept from call to call.
template <execution_space E, communicator Comm, gradient_value Value>
class broadcast_one_to_all {
public:
  void run(E const& exec, Comm& comm, Value* values, std::int64_t count, int root) {
    if (comm.size() == 1 || count == 0) {
      return;
    }
    detail::piece const whole{0, 0, count};
    cancel_on_unwind const alone(comm); // an allocation may fail on one rank
    wire_.begin({values, values, nullptr, count, reduction::sum});
    wire_.bind(exec, comm, {1, count, 0, 0});
    requests_.clear();
    requests_.reserve(static_cast<std::size_t>(comm.size()));
    cancel_on_unwind const guard(comm, requests_);
    if (comm.rank() != root) {
      requests_.push_back(detail::start_receive(exec, comm, wire_.encoded(whole), root, phase::gather));
      comm.wait_all(std::span<typename Comm::bulk_request>(requests_));
      wire_.decode(exec, whole);
      detail::fence(exec, "oktopk::broadcast::done");
      return;
    }
    wire_.prepare(exec, whole);
    for (int step = 1; step < comm.size(); ++step) {
      requests_.push_back(
          detail::start_send(exec, comm, wire_.encoded(whole), (root + step) % comm.size(), phase::gather));
    }
    comm.wait_all(std::span<typename Comm::bulk_request>(requests_));
  }

private:
  std::vector<typename Comm::bulk_request> requests_;
  detail::bound_plain_wire<E, Value> wire_;
};

} // namespace oktopk::detail
