// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/dense/wire.hpp>

#include <algorithm>
#include <utility>

namespace oktopk::detail {

/// Reduce-scatter and allgather around a ring, pipelined (Gloo's `allreduce_ring_chunked`; baidu-allreduce, and the
/// sub-chunks of PFN's prototype).
///
/// The vector is cut into P blocks, and all blocks into the same number of pieces. In step t of P-1, rank r sends block
/// r-t to its right neighbour and reduces block r-t-1, which comes from the left. In P-1 more steps the finished blocks
/// travel round the ring. A piece is sent on as soon as it is reduced, or has arrived finished, while the next pieces
/// of the block still travel: each rank sends 2(P-1) messages for every piece of a block, 2(P-1)/P of the vector.
///
/// Every block is reduced along the ring in one order and finished by one rank, so the result is the same to the bit
/// everywhere.
template <communicator Comm>
class ring_pipeline {
public:
  /// The number of pieces of a block: at least two, and enough that none is longer than `longest`.
  static std::int64_t pieces_of_block(std::int64_t count, std::int64_t ranks, std::int64_t longest) {
    std::int64_t const block = (count + ranks - 1) / ranks;
    return std::max<std::int64_t>(2, block / longest + (block % longest != 0 ? 1 : 0));
  }

  /// `wire`, which has begun the call, carries the pieces; up to `ahead` receives are under way at once.
  template <execution_space E, bound_wire<E> Wire>
  void run(E const& exec, Comm& comm, Wire& wire, cut_vector const& vector, std::int64_t ahead) {
    std::int64_t const ranks = comm.size();
    std::int64_t const pieces = vector.pieces() / ranks;
    std::int64_t const reduced = (ranks - 1) * pieces; // the number of pieces that are passed on to be reduced
    std::int64_t const window = std::max<std::int64_t>(1, std::min(ahead, reduced));
    cancel_on_unwind const alone(comm); // an allocation may fail on one rank
    wire.bind(exec, comm, {vector.pieces(), vector.longest(), window, vector.longest()});
    if (ranks == 1) {
      return;
    }
    std::int64_t const all = 2 * reduced;
    std::int64_t const rank = comm.rank();
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
    auto const post = [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t k = first; k < std::min(last, all); ++k) {
        piece const p = incoming(k);
        if (k >= reduced) { // P-1 steps ago a send read this place
          wait_for(comm, sends_[static_cast<std::size_t>(k - reduced)]);
        }
        auto const place = k < reduced ? wire.slot(k % window, p) : wire.encoded(p);
        receives_[static_cast<std::size_t>(k % window)] = start_receive(exec, comm, place, left, use(k));
      }
    };
    auto const send = [&](std::int64_t k, piece p) {
      sends_[static_cast<std::size_t>(k)] = start_send(exec, comm, wire.encoded(p), right, use(k));
    };

    bool const each_message = wire.codes_each_message();
    post(0, each_message ? 0 : window);
    for (std::int64_t k = 0; k < pieces; ++k) {
      piece const p = vector[rank * pieces + k];
      wire.prepare(exec, p);
      send(k, p);
    }
    post(0, each_message ? window : 0);
    auto const arrived = [&](std::int64_t k) {
      wait_for(comm, receives_[static_cast<std::size_t>(k % window)]);
      return incoming(k);
    };
    for (std::int64_t k = 0; k < reduced; ++k) { // reduce-scatter
      piece const p = arrived(k);
      wire.forward(exec, k % window, p);
      send(k + pieces, p);
      post(k + window, k + window + 1);
      if (k + pieces >= reduced) {
        wire.adopt_rounding(exec, p);
      }
    }
    for (std::int64_t k = reduced; k < all; ++k) { // allgather
      piece const p = arrived(k);
      bool const sent_on = k + pieces < all;
      if (each_message) {
        wire.decode(exec, p);
        if (sent_on) {
          wire.prepare(exec, p, false);
        }
      }
      if (sent_on) {
        send(k + pieces, p);
      }
      post(k + window, k + window + 1);
      if (!each_message) {
        wire.decode(exec, p);
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

namespace oktopk {

/// Reduction of dense vectors around a ring, in 2P chunks (Gloo's `allreduce_ring_chunked`; coded: Zhou et al.,
/// collective-level compression, Algorithm 1): reduce-scatter, then allgather, two chunks of every rank under way so
/// that one travels while the other is reduced.
///
/// In place (or not: `run_from`), on any number of ranks; `count`, `op` and the options are the same on all. Each rank
/// sends 4(P-1) messages and 2n(P-1)/P values (the 4P steps and 2S bytes of Gloo's table, which count a round more).
/// Keeps two chunks of n/2P values beside the vector; where the communicator does not reach the vector, also a copy of
/// the vector in host memory: a chunk is copied to it before it is sent, and from it after it has arrived.
///
/// Over a coded wire a block is cut into s segments, at least two: 2s(P-1) messages, 2n(P-1)/P values at the codec's
/// size. A rank encodes each segment of P-1 partial sums, and once the block that it finishes; that block travels round
/// the ring as it was encoded. At the level of messages each of the 2(P-1) steps encodes again. Every value is rounded
/// once by each rank, and `lost` gets the difference. Keeps the coded vector and three coded segments beside the
/// caller's vector; at the level of messages also one decoded segment.
template <execution_space E, communicator Comm, gradient_value Value, class Wire = detail::plain_wire>
  requires detail::dense_wire<Wire, E, Value>
class ring_chunked : public detail::on_wires<E, Value, Wire> {
  using base = detail::on_wires<E, Value, Wire>;

public:
  using base::base;

  std::string name() const { return base::policy().name_after("ring_chunked"); }

  /// Every value is rounded once by each rank.
  bool losses_may_overflow(int) const { return base::policy().template losses_may_overflow<Value>(1); }

  /// Messages that follow one another, in reduce-scatter and allgather. The pieces of a block overlap, so they count
  /// once.
  static double expected_messages(std::int64_t, int ranks) { return 2.0 * (ranks - 1); }
  double sent_messages(std::int64_t count, int ranks) const {
    std::int64_t const pieces_of_block = cut(count, ranks, base::codes(count)).pieces() / ranks;
    return 2.0 * (ranks - 1) * static_cast<double>(pieces_of_block);
  }

  /// 2(P-1) messages for every piece of a block, each no longer than that of the longest piece.
  double bound_words(std::int64_t count, int ranks) const {
    detail::cut_vector const vector = cut(count, ranks, base::codes(count));
    std::int64_t const each = vector.pieces() / ranks * base::message_bytes(vector.longest(), count);
    return 2.0 * (ranks - 1) * static_cast<double>(each) / 4;
  }

  void run(E const& exec, Comm& comm, Value* values, Value* lost, std::int64_t count, reduction op = reduction::sum) {
    run_from(exec, comm, values, values, lost, count, op);
  }

  /// The same from `own` to `values`, which are the same vector or do not overlap. At the level of the collective, with
  /// a codec that recodes, `own` is read once and needs no copy, because partial sums exist only as coded pieces.
  void run_from(E const& exec, Comm& comm, Value const* own, Value* values, Value* lost, std::int64_t count,
                reduction op = reduction::sum) {
    bool const coded = base::codes(count) && comm.size() > 1;
    base::on_wire(exec, coded, {own, values, lost, count, op}, [&](auto& wire) {
      ring_.run(exec, comm, wire, cut(count, comm.size(), coded), wire.receives_ahead());
    });
  }

private:
  detail::cut_vector cut(std::int64_t count, std::int64_t ranks, bool coded) const {
    std::int64_t const longest = coded ? base::policy().segment() : count + 1;
    std::int64_t const pieces = detail::ring_pipeline<Comm>::pieces_of_block(count, ranks, longest);
    return detail::cut_vector(count, ranks * pieces, coded ? Wire::block_size : 1);
  }

  detail::ring_pipeline<Comm> ring_;
};

/// Reduction of dense vectors around a ring in sub-chunks, so that receiving, reducing and sending overlap (Ueno 2018,
/// PFN's allreduce prototype): the blocks of `ring_chunked`, cut into sub-chunks of at most `chunk_bytes`.
///
/// In place, on any number of ranks; `count`, `op` and the options are the same on all. With s sub-chunks to a block of
/// n/P values each rank sends 2s(P-1) messages and 2n(P-1)/P values. A block has at least two sub-chunks, so that one
/// travels while the other is reduced: a vector of up to 2P sub-chunks is sent as `ring_chunked` sends it. Keeps
/// `ahead` sub-chunks beside the vector.
template <execution_space E, communicator Comm, gradient_value Value>
class ring_pipelined : public detail::in_chunks<ring_pipelined<E, Comm, Value>, Value, std::int64_t(1) << 20, 4> {
  using base = detail::in_chunks<ring_pipelined, Value, std::int64_t(1) << 20, 4>;

public:
  using base::base;

  static std::string_view name() { return "ring_pipelined"; }

  /// Messages that follow one another, in reduce-scatter and allgather, and the sub-chunks of a block.
  double expected_messages(std::int64_t count, int ranks) const {
    return 2.0 * (ranks - 1) + static_cast<double>(pieces(count, ranks));
  }
  double sent_messages(std::int64_t count, int ranks) const {
    return 2.0 * (ranks - 1) * static_cast<double>(pieces(count, ranks));
  }

  /// 2n(P-1)/P values, and what rounding to whole sub-chunks adds.
  double bound_words(std::int64_t count, int ranks) const {
    auto const rounding = static_cast<double>(2 * (ranks - 1) * pieces(count, ranks));
    return (2 * static_cast<double>(count) * (ranks - 1) / ranks + rounding) * (sizeof(Value) / 4.0);
  }

  void run(E const& exec, Comm& comm, Value* values, Value* lost, std::int64_t count, reduction op = reduction::sum) {
    detail::begin_lossless(exec, op, lost, count);
    wire_.begin({values, values, lost, count, op});
    detail::cut_vector const vector(count, comm.size() * pieces(count, comm.size()));
    ring_.run(exec, comm, wire_, vector, base::ahead());
  }

private:
  std::int64_t pieces(std::int64_t count, int ranks) const {
    return detail::ring_pipeline<Comm>::pieces_of_block(count, ranks, base::values_of_chunk());
  }

  detail::bound_plain_wire<E, Value> wire_;
  detail::ring_pipeline<Comm> ring_;
};

/// Reduction of dense vectors that every rank forms by itself while all vectors go round a ring (Gloo's
/// `allreduce_ring`): for short vectors and few ranks.
///
/// In place, on any number of ranks; `count` and `op` are the same on all. Each rank sends P-1 messages of n values
/// (Gloo's table counts one vector more). The vectors reach each rank in another order; so that the sums are the same
/// to the bit, all reduce them along one tree: ranks 0 and 1, 2 and 3, then these pairs, and so on. A vector that waits
/// for its sibling is in one of at most 2 ceil(log2 P) + 2 vectors beside the caller's.
template <execution_space E, communicator Comm, gradient_value Value>
class ring : public dense_reduce_base {
public:
  static constexpr bool lossless = true;

  static std::string_view name() { return "ring"; }

  /// Messages that follow one another.
  static double expected_messages(std::int64_t, int ranks) { return ranks - 1.0; }

  /// n(P-1) values.
  static double bound_words(std::int64_t count, int ranks) {
    return static_cast<double>(count) * (ranks - 1) * (sizeof(Value) / 4.0);
  }

  void run(E const& exec, Comm& comm, Value* values, Value* lost, std::int64_t count, reduction op = reduction::sum) {
    detail::begin_lossless(exec, op, lost, count);
    std::int64_t const ranks = comm.size();
    std::int64_t const rank = comm.rank();
    if (ranks == 1 || count == 0) {
      return;
    }
    std::int64_t const slot_count = std::min<std::int64_t>(ranks - 1, 2 * detail::ceil_log2(comm.size()) + 2);
    detail::piece const whole{0, 0, count};
    detail::cancel_on_unwind const alone(comm); // an allocation may fail on one rank
    wire_.begin({values, values, lost, count, op});
    wire_.bind(exec, comm, {1, count, slot_count, count});
    waiting_.clear();
    free_.clear();
    for (std::int64_t slot = slot_count; slot > 0; --slot) {
      free_.push_back(slot - 1);
    }
    waiting_.reserve(static_cast<std::size_t>(slot_count) + 1);
    typename Comm::bulk_request received;
    typename Comm::bulk_request sent;
    detail::cancel_on_unwind const guard(comm, received, sent);
    int const right = static_cast<int>((rank + 1) % ranks);
    int const left = static_cast<int>((rank + ranks - 1) % ranks);
    auto const data = [&](std::int64_t slot) { return slot == callers ? values : wire_.slot_values(slot); };
    // Reduces a vector along the tree as far as siblings are there. The vector is only read, because it may still be on
    // its way to the next rank.
    auto const place = [&](node added) {
      for (; (std::int64_t(1) << added.level) < ranks; added = {added.level + 1, added.index / 2, added.slot}) {
        std::int64_t const sibling = added.index ^ 1;
        if ((sibling << added.level) >= ranks) {
          continue;
        }
        auto const found = std::find_if(waiting_.begin(), waiting_.end(), [&](node const& each) {
          return each.level == added.level && each.index == sibling;
        });
        if (found == waiting_.end()) {
          waiting_.push_back(added);
          return;
        }
        std::int64_t from = added.slot;
        added.slot = found->slot;
        if (from == callers) { // the caller's vector keeps the result; it was sent in the first step
          std::swap(added.slot, from);
        }
        detail::combine(exec, op, static_cast<Value const*>(data(from)), count, data(added.slot));
        free_.push_back(from);
        waiting_.erase(found);
      }
    };
    std::int64_t arriving = take_slot();
    received = detail::start_receive(exec, comm, wire_.slot(arriving, whole), left, phase::reduce);
    wire_.prepare(exec, whole);
    sent = detail::start_send(exec, comm, wire_.encoded(whole), right, phase::reduce);
    place({0, rank, callers});
    for (std::int64_t step = 1; step < ranks; ++step) {
      detail::wait_for(comm, received);
      detail::wait_for(comm, sent); // from now on the vector that was sent before may be written
      std::int64_t const arrived = arriving;
      if (step + 1 < ranks) {
        arriving = take_slot();
        received = detail::start_receive(exec, comm, wire_.slot(arriving, whole), left, phase::reduce);
        sent = detail::start_send(exec, comm, wire_.slot(arrived, whole), right, phase::reduce);
      }
      wire_.pull_slot(exec, arrived, whole);
      place({0, (rank + ranks - step) % ranks, arrived});
      // The next step may receive into a slot that was freed.
      detail::fence(exec, "oktopk::ring::step");
    }
  }

private:
  static constexpr std::int64_t callers = -1;

  /// The sum over 2^level ranks, from rank `index` * 2^level on: in a slot or in the caller's vector.
  struct node {
    int level;
    std::int64_t index;
    std::int64_t slot;
  };

  std::int64_t take_slot() {
    std::int64_t const slot = free_.back();
    free_.pop_back();
    return slot;
  }

  detail::bound_plain_wire<E, Value> wire_;
  std::vector<node> waiting_;
  std::vector<std::int64_t> free_;
};

} // namespace oktopk
