// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/message_group.hpp>
#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/kokkos_ext/instance.hpp>
#include <oktopk/dense/wire.hpp>
#include <oktopk/dense/wire/concept.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace oktopk::detail {

/// Reduce-scatter and allgather around a ring, pipelined (Gloo's `allreduce_ring_chunked`; baidu-allreduce, and the
/// sub-chunks of PFN's prototype).
///
/// The vector is cut into P blocks, and each block into as many pieces. In step t of P-1, a rank passes block r-t to
/// its right neighbour and reduces block r-t-1, which comes from the left; in P-1 more steps the finished blocks go
/// round. A piece is sent on as soon as it is reduced, or has arrived for good, while the next ones of the block are
/// still on their way: each rank sends 2(P-1) messages for every piece of a block, 2(P-1)/P of the vector.
///
/// `Wire` is the bound wire that carries the pieces. Every block is reduced along the ring in one order and
/// finished by one rank, so the result is the same to the bit everywhere.
template <communicator Comm>
class ring_pipeline {
public:
  /// Pieces that a rank may be ahead of the one it waits for: slots that `Wire` must have.
  static std::int64_t slots(std::int64_t ahead, std::int64_t ranks, std::int64_t pieces) {
    return std::max<std::int64_t>(1, std::min(ahead, (ranks - 1) * pieces));
  }

  template <execution_space E, bound_wire<E> Wire>
  void run(E const& exec, Comm& comm, Wire& wire, cut_vector const& vector, std::int64_t ahead) {
    std::int64_t const ranks = comm.size();
    if (ranks == 1) {
      return;
    }
    std::int64_t const rank = comm.rank();
    std::int64_t const pieces = vector.pieces() / ranks;
    std::int64_t const reduced = (ranks - 1) * pieces; // the number of pieces that are passed on to be reduced
    std::int64_t const all = 2 * reduced;
    std::int64_t const window = slots(ahead, ranks, pieces);
    int const right = static_cast<int>((rank + 1) % ranks);
    int const left = static_cast<int>((rank + ranks - 1) % ranks);
    sends_.resize(static_cast<std::size_t>(all));
    receives_.resize(static_cast<std::size_t>(window));
    cancel_on_unwind const guard(comm, receives_, sends_);

    // The k-th piece that comes from the left, which is also the piece that goes to the right a step later.
    auto const incoming = [&](std::int64_t k) {
      std::int64_t const block = (rank + 2 * ranks - 1 - k / pieces) % ranks;
      return vector[block * pieces + k % pieces];
    };
    auto const use = [&](std::int64_t k) { return k < reduced ? phase::reduce : phase::gather; };
    auto const post = [&](std::int64_t k) {
      if (k >= all) {
        return;
      }
      piece const p = incoming(k);
      if (k >= reduced) {
        // The same place was sent from P-1 steps ago.
        wait_for(comm, sends_[static_cast<std::size_t>(k - reduced)]);
      }
      auto const room = k < reduced ? wire.slot(k % window, p) : wire.image(p);
      receives_[static_cast<std::size_t>(k % window)] = start_receive(exec, comm, room, left, use(k));
    };
    auto const send = [&](std::int64_t k, piece p) {
      sends_[static_cast<std::size_t>(k)] = start_send(exec, comm, wire.image(p), right, use(k));
    };

    auto const post_first = [&] {
      for (std::int64_t k = 0; k < window; ++k) {
        post(k);
      }
    };
    if (wire.receives_first()) {
      post_first();
    }
    for (std::int64_t k = 0; k < pieces; ++k) {
      piece const p = vector[rank * pieces + k];
      wire.prepare(exec, p);
      send(k, p);
    }
    if (!wire.receives_first()) {
      post_first();
    }
    for (std::int64_t k = 0; k < all; ++k) {
      wait_for(comm, receives_[static_cast<std::size_t>(k % window)]);
      piece const p = incoming(k);
      bool const sent_on = k + pieces < all;
      if (k < reduced) {
        wire.pass_on(exec, k % window, p);
        send(k + pieces, p);
        post(k + window);
        if (k + pieces >= reduced) {
          wire.adopt_rounding(exec, p);
        }
      } else if (wire.forwards()) {
        if (sent_on) {
          send(k + pieces, p);
        }
        post(k + window);
        wire.unfold(exec, p);
      } else {
        wire.unfold(exec, p);
        if (sent_on) {
          wire.prepare(exec, p, false);
          send(k + pieces, p);
        }
        post(k + window);
      }
    }
    comm.wait_all(std::span<typename Comm::bulk_request>(sends_));
    fence(exec, "oktopk::dense::ring");
  }

private:
  std::vector<typename Comm::bulk_request> sends_;
  std::vector<typename Comm::bulk_request> receives_;
};

} // namespace oktopk::detail
