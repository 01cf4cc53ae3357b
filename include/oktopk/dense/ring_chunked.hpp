// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/dense/concept.hpp>
#include <oktopk/dense/plain_wire.hpp>
#include <oktopk/dense/ring_walk.hpp>

#include <cstdint>
#include <string_view>

namespace oktopk {

/// Reduction of dense vectors around a ring, in 2P chunks (Gloo's `allreduce_ring_chunked`): reduce-scatter, then
/// allgather, two chunks of every rank under way so that one travels while the other is reduced.
///
/// In place, on any number of ranks; `count` and `op` are the same on all. Each rank sends 4(P-1) messages and
/// 2n(P-1)/P values (the 4P steps and 2S bytes of Gloo's table, which count a round more). Keeps two chunks of n/2P
/// values beside the vector; where the communicator does not reach the vector, also its image in host memory, to and
/// from which chunks are copied as they are needed or have arrived.
template <execution_space E, communicator Comm, gradient_value Value>
class ring_chunked {
public:
  static constexpr bool lossless = true;

  static std::string_view name() { return "ring_chunked"; }

  /// 2n(P-1)/P values, and what rounding to whole chunks adds.
  static double bound_words(std::int64_t count, int ranks) {
    return (2 * static_cast<double>(count) * (ranks - 1) / ranks + 4.0 * (ranks - 1)) * (sizeof(Value) / 4.0);
  }

  void run(E const& exec, Comm& comm, Value* values, Value* lost, std::int64_t count, reduction op = reduction::sum) {
    detail::refuse_losses_of(op, lost);
    if (lost != nullptr) {
      detail::clear_values(exec, lost, count);
    }
    detail::cut_vector const vector(count, 2 * std::int64_t(comm.size()));
    wire_.bind(exec, comm, values, count, op, 2, vector.longest());
    walk_.run(exec, comm, wire_, vector, 2);
  }

private:
  detail::plain_wire<E, Value> wire_;
  detail::ring_walk<Comm> walk_;
};

} // namespace oktopk
