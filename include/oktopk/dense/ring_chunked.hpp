// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/cancel_on_unwind.hpp>
#include <oktopk/dense/concept.hpp>
#include <oktopk/dense/ring_pipeline.hpp>
#include <oktopk/dense/wire/wires.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace oktopk {

/// Reduction of dense vectors around a ring, in 2P chunks (Gloo's `allreduce_ring_chunked`; coded: Zhou et al.,
/// collective-level compression, Algorithm 1): reduce-scatter, then allgather, two chunks of every rank under way so
/// that one travels while the other is reduced.
///
/// In place (or not: `run_from`), on any number of ranks; `count`, `op` and the options are the same on all. Each rank
/// sends 4(P-1) messages and 2n(P-1)/P values (the 4P steps and 2S bytes of Gloo's table, which count a round more).
/// Keeps two chunks of n/2P values beside the vector; where the communicator does not reach the vector, also its image
/// in host memory, to and from which chunks are copied as they are needed or have arrived.
///
/// Over a coded wire a block is cut into s segments, at least two: 2s(P-1) messages, 2n(P-1)/P values at the codec's
/// size. A rank encodes each segment of P-1 partial sums, and once the block that it finishes, which goes round the
/// ring as it was encoded; at the level of messages each of the 2(P-1) steps encodes anew. Every value is rounded once
/// by each rank, and `lost` takes the difference. Keeps the coded vector and three coded segments beside the caller's;
/// one decoded segment at the level of messages.
template <execution_space E, communicator Comm, gradient_value Value, class Wire = plain_wire>
  requires dense_wire<Wire, E, Value>
class ring_chunked {
public:
  static constexpr bool lossless = Wire::lossless;

  using options = typename Wire::options;

  ring_chunked() = default;
  explicit ring_chunked(options const& how) : wires_(how) {}

  std::string name() const { return wires_.policy().name_after("ring_chunked"); }
  std::string describe() const { return wires_.policy().describe(); }
  std::string problem() const { return wires_.policy().problem(); }
  bool ranks_may_differ() const { return wires_.policy().ranks_may_differ(); }

  /// Every value is rounded once by each rank.
  bool losses_may_overflow(int) const { return wires_.policy().template losses_may_overflow<Value>(1); }

  /// 2(P-1) messages for every piece of a block, each no longer than that of the longest.
  double bound_words(std::int64_t count, int ranks) const {
    detail::cut_vector const vector = cut(count, ranks, wires_.codes(count));
    std::int64_t const each = vector.pieces() / ranks * wires_.message_bytes(vector.longest(), count);
    return 2.0 * (ranks - 1) * static_cast<double>(each) / 4;
  }

  void run(E const& exec, Comm& comm, Value* values, Value* lost, std::int64_t count, reduction op = reduction::sum) {
    run_from(exec, comm, values, values, lost, count, op);
  }

  /// The same from `own` to `values`, which are the same vector or do not overlap. At the level of the collective, of a
  /// codec that recodes, `own` is read once and needs no copy, for partial sums exist as coded pieces only.
  void run_from(E const& exec, Comm& comm, Value const* own, Value* values, Value* lost, std::int64_t count,
                reduction op = reduction::sum) {
    bool const coded = wires_.codes(count) && comm.size() > 1;
    wires_.run(exec, coded, {own, values, lost, count, op}, [&](auto& wire, auto const& policy, auto const& call) {
      detail::cut_vector const vector = cut(count, comm.size(), coded);
      std::int64_t const ahead = wire.receives_ahead();
      std::int64_t const slots = detail::ring_pipeline<Comm>::slots(ahead, comm.size(), vector.pieces() / comm.size());
      cancel_on_unwind const alone(comm); // room may be missing on one rank
      wire.bind(exec, comm, policy, call, {vector.pieces(), vector.longest(), slots, vector.longest()});
      ring_.run(exec, comm, wire, vector, ahead);
    });
  }

private:
  // Blocks of two pieces at least, and of as many that no segment is too long.
  detail::cut_vector cut(std::int64_t count, std::int64_t ranks, bool coded) const {
    std::int64_t const block = (count + ranks - 1) / ranks;
    std::int64_t const segment = coded ? wires_.policy().segment() : count + 1;
    std::int64_t const pieces = std::max<std::int64_t>(2, block / segment + (block % segment != 0 ? 1 : 0));
    return detail::cut_vector(count, ranks * pieces, coded ? Wire::grain : 1);
  }

  detail::wires<E, Value, Wire> wires_;
  detail::ring_pipeline<Comm> ring_;
};

} // namespace oktopk
