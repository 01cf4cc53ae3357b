// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/dense/wire.hpp>

#include <algorithm>
#include <bit>

namespace oktopk::detail {

/// P ranks as blocks of powers of two, the largest first: the block of this rank, and the sizes of the blocks beside
/// it.
struct binary_blocks {
  int base = 0;    ///< first rank of this rank's block
  int size = 1;    ///< number of its ranks
  int larger = 0;  ///< size of the block before, 0 where there is none
  int smaller = 0; ///< size of the block behind, 0 where there is none

  binary_blocks(int rank, int ranks) {
    int begin = 0;
    for (int bit = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks))); bit > 0; bit /= 2) {
      if ((ranks & bit) == 0) {
        continue;
      }
      if (rank >= begin + bit) {
        larger = bit;
      } else if (rank >= begin) {
        base = begin;
        size = bit;
      } else {
        smaller = bit;
        return;
      }
      begin += bit;
    }
  }
};

/// The node at the end of a path in a tree of halves. Bit 0 of the path selects a half of the vector (0: the lower
/// one), bit 1 a half of that half, and so on for `depth` bits.
inline piece halved(std::int64_t count, std::int64_t path, int depth) {
  std::int64_t begin = 0;
  std::int64_t end = count;
  for (int level = 0; level < depth; ++level) {
    std::int64_t const middle = begin + (end - begin) / 2;
    ((path >> level & 1) == 0 ? end : begin) = middle;
  }
  return {0, begin, end - begin};
}

/// The messages of recursive halving in a block of 2^`steps` ranks. In step i a place keeps the node of its first i+1
/// bits and gives the other half of its node away. The kept node is received in pieces: its descendants at depth
/// `fewest_halves`, or the node itself if it lies deeper.
///
/// Pieces are in the order of the step in which the place gives them away: the next step, the step after, ..., never.
/// So the pieces of the first half are those that the next step sends, in the same order.
struct halving_steps {
  std::int64_t count = 0;
  int steps = 0;
  int fewest_halves = 0;

  int depth(int step) const { return std::max(step + 1, fewest_halves); }
  std::int64_t pieces(int step) const { return std::int64_t(1) << (depth(step) - step - 1); }

  /// The part that a place has after all steps.
  piece part_of(int place) const { return halved(count, place, steps); }

  piece piece_of(int place, int step, std::int64_t number) const {
    std::int64_t path = place & ((std::int64_t(2) << step) - 1);
    for (int level = step + 1; level < depth(step); ++level) {
      // At levels below that of the last step the lower half comes first.
      std::int64_t const own = level < steps ? place >> level & 1 : 1;
      std::int64_t const later = number >> (depth(step) - 1 - level) & 1;
      path |= (later == 0 ? 1 - own : own) << level;
    }
    return halved(count, path, depth(step));
  }
};

} // namespace oktopk::detail

namespace oktopk {

/// Reduction of dense vectors by recursive vector halving and distance doubling, with binary blocks (Thakur et al.
/// 2005, section 4.5; Gloo's `allreduce_halving_doubling`).
///
/// In place, on any number of ranks; `count`, `op` and the options are the same on all. Where P is a power of two each
/// rank sends 2 log2 P messages and 2n(P-1)/P values. Where it is not, the ranks form blocks of powers of two, the
/// largest first. In a block of B ranks each sends 2 log2 B messages and 2n(B-1)/B values; then a rank's part goes to
/// the next larger block, of L ranks, as L/B messages of n/L values, and on the way back from the larger block each
/// rank sends the part that it has as one message. Every part is finished by one rank of the largest block, so the
/// result is the same to the bit everywhere.
///
/// A message longer than `chunk_bytes` is halved until no piece is longer. A piece is sent in the next step as soon as
/// it is reduced, while the other pieces of its step still travel: so steps overlap, and so do the reductions of one
/// step and the messages of the next. Keeps `ahead` pieces beside the vector, up to n values if nothing is cut.
template <execution_space E, communicator Comm, gradient_value Value>
class halving_doubling : public detail::in_chunks<halving_doubling<E, Comm, Value>, Value, std::int64_t(60) << 10, 32> {
  // Over TCP, MPI libraries ask the receiver before they send more than 64 KiB, and the answer waits behind the data
  // that goes the other way between the same two ranks: so chunks are shorter.
  using base = detail::in_chunks<halving_doubling, Value, std::int64_t(60) << 10, 32>;

public:
  using base::base;

  static std::string_view name() { return "halving_doubling"; }

  /// Messages that follow one another, in reduce-scatter and allgather.
  static double expected_messages(std::int64_t, int ranks) { return 2 * static_cast<double>(detail::ceil_log2(ranks)); }
  double sent_messages(std::int64_t count, int ranks) const {
    double all = 0;
    detail::halving_steps const halvings{count, detail::ceil_log2(ranks), fewest_halves(count)};
    for (int step = 0; step < halvings.steps; ++step) {
      all += 2.0 * static_cast<double>(halvings.pieces(step));
    }
    return all;
  }

  /// 2n(B-1)/B values for the largest block of B ranks; n/B more to and from other blocks, for any block.
  static double bound_words(std::int64_t count, int ranks) {
    double most = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      detail::binary_blocks const at(rank, ranks);
      auto const n = static_cast<double>(count);
      int const parts = (at.larger > 0 ? 1 : 0) + (at.smaller > 0 ? 1 : 0);
      most = std::max(most, 2 * n * (at.size - 1) / at.size + parts * n / at.size);
    }
    // Rounding to whole values adds as much, once a message of a step.
    return (most + (ranks > 1 ? 2.0 * ranks : 0.0)) * (sizeof(Value) / 4.0);
  }

  void run(E const& exec, Comm& comm, Value* values, Value* lost, std::int64_t count, reduction op = reduction::sum) {
    detail::begin_lossless(exec, op, lost, count);
    if (comm.size() == 1) {
      return;
    }
    detail::binary_blocks const at(comm.rank(), comm.size());
    int const halves = fewest_halves(count);
    steps_ = {count, detail::ceil_log2(at.size), halves};
    place_ = comm.rank() - at.base;
    detail::cancel_on_unwind const alone(comm); // room may be missing on one rank
    hops_.clear();
    for (int step = 0; step < steps_.steps; ++step) {
      int const partner = place_ ^ (1 << step);
      for (std::int64_t number = 0; number < steps_.pieces(step); ++number) {
        hops_.push_back({step, number, at.base + partner, steps_.piece_of(place_, step, number),
                         steps_.piece_of(partner, step, number)});
      }
    }
    auto const all = static_cast<std::int64_t>(hops_.size());
    std::int64_t const slot_count = std::max<std::int64_t>(1, std::min(base::ahead(), all));
    std::int64_t const nodes = std::int64_t(1) << steps_.depth(0);
    wire_.begin({values, values, lost, count, op});
    wire_.bind(exec, comm, {1, count, slot_count, (count + nodes - 1) / nodes});
    for (auto* const each : {&reductions_, &sends_, &gathers_, &between_}) {
      each->clear();
    }
    reductions_.resize(static_cast<std::size_t>(slot_count));
    sends_.resize(static_cast<std::size_t>(2 * all));
    gathers_.resize(static_cast<std::size_t>(all));
    detail::cancel_on_unwind const guard(comm, reductions_, sends_, gathers_, between_);
    reduce_scatter(exec, comm);
    between_blocks(exec, comm, at, halves);
    allgather(exec, comm);
    comm.wait_all(std::span<typename Comm::bulk_request>(sends_));
    detail::fence(exec, "oktopk::halving_doubling::done");
  }

private:
  // The number of halvings until no piece is longer than a chunk.
  int fewest_halves(std::int64_t count) const {
    std::int64_t const chunk = base::values_of_chunk();
    return detail::ceil_log2(count / chunk + (count % chunk != 0 ? 1 : 0));
  }

  // A piece that this place keeps in a step, and the piece that it gives away: the partner's piece of the same number.
  struct hop {
    int step;
    std::int64_t number;
    int peer;
    detail::piece kept;
    detail::piece given;
  };

  // Receives and reduces the kept pieces of `from`, with some receives posted ahead: from the peer of each, or all from
  // `only_peer` unless that is negative. Calls `reduced(k)` after each.
  template <class Reduced>
  void receive_and_reduce(E const& exec, Comm& comm, std::span<hop const> from, int only_peer, Reduced const& reduced) {
    std::size_t const window = reductions_.size();
    auto const post = [&](std::size_t k) {
      if (k < from.size()) {
        auto const slot = wire_.slot(static_cast<std::int64_t>(k % window), from[k].kept);
        int const peer = only_peer < 0 ? from[k].peer : only_peer;
        reductions_[k % window] = detail::start_receive(exec, comm, slot, peer, phase::reduce);
      }
    };
    for (std::size_t k = 0; k < window; ++k) {
      post(k);
    }
    for (std::size_t k = 0; k < from.size(); ++k) {
      detail::wait_for(comm, reductions_[k % window]);
      wire_.reduce(exec, static_cast<std::int64_t>(k % window), from[k].kept);
      post(k + window);
      reduced(k);
    }
  }

  void reduce_scatter(E const& exec, Comm& comm) {
    auto const send = [&](std::size_t k) {
      wire_.prepare(exec, hops_[k].given);
      sends_[k] = detail::start_send(exec, comm, wire_.encoded(hops_[k].given), hops_[k].peer, phase::reduce);
    };
    for (std::size_t k = 0; k < hops_.size() && hops_[k].step == 0; ++k) {
      send(k);
    }
    receive_and_reduce(exec, comm, hops_, -1, [&](std::size_t k) {
      hop const& here = hops_[k];
      // The next step sends the first half of these pieces, or half of the only one.
      std::int64_t const pieces = steps_.pieces(here.step);
      if (here.step + 1 < steps_.steps && here.number < std::max<std::int64_t>(1, pieces / 2)) {
        send(k + static_cast<std::size_t>(pieces)); // the same number of the next step
      }
    });
  }

  // Sums travel from the smallest block to the largest, and results back. Then this rank's part is finished, and
  // prepared to be sent.
  void between_blocks(E const& exec, Comm& comm, detail::binary_blocks const& at, int halves) {
    detail::piece const mine = steps_.part_of(place_);
    int const behind = at.base + at.size + (at.smaller > 0 ? place_ % at.smaller : 0);
    if (at.smaller > 0) {
      auto const last = static_cast<std::size_t>(steps_.pieces(steps_.steps - 1));
      receive_and_reduce(exec, comm, std::span<hop const>(hops_).last(last), behind, [](std::size_t) {});
    }
    wire_.prepare(exec, mine);
    if (at.larger > 0) {
      detail::halving_steps const theirs{steps_.count, detail::ceil_log2(at.larger), halves};
      int const last = theirs.steps - 1;
      for (int there = place_; there < at.larger; there += at.size) {
        for (std::int64_t number = 0; number < theirs.pieces(last); ++number) {
          between_.push_back(detail::start_send(exec, comm, wire_.encoded(theirs.piece_of(there, last, number)),
                                                at.base - at.larger + there, phase::reduce));
        }
      }
      comm.wait_all(std::span<typename Comm::bulk_request>(between_));
      between_.clear();
      for (int there = place_; there < at.larger; there += at.size) {
        between_.push_back(detail::start_receive(exec, comm, wire_.encoded(theirs.part_of(there)),
                                                 at.base - at.larger + there, phase::gather));
      }
      comm.wait_all(std::span<typename Comm::bulk_request>(between_));
      between_.clear();
      wire_.decode(exec, mine);
    }
    if (at.smaller > 0) {
      detail::finish(comm, detail::start_send(exec, comm, wire_.encoded(mine), behind, phase::gather));
    }
  }

  // Takes the steps of `reduce_scatter` from the last to the first, and the pieces of each step from the last to the
  // first. A place sends all that it has kept in a step: the part that it has from the steps before, and the part that
  // arrives in them.
  void allgather(E const& exec, Comm& comm) {
    auto const send = [&](std::size_t k) {
      sends_[hops_.size() + k] =
          detail::start_send(exec, comm, wire_.encoded(hops_[k].kept), hops_[k].peer, phase::gather);
    };
    auto const post = [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = end; k-- > begin;) {
        detail::wait_for(comm, sends_[k]); // reduce_scatter sent from the same place
        gathers_[k] = detail::start_receive(exec, comm, wire_.encoded(hops_[k].given), hops_[k].peer, phase::gather);
      }
    };
    std::size_t end = hops_.size();
    std::size_t begin = end; // of a step
    for (int step = steps_.steps - 1; step >= 0; --step, end = begin) {
      auto const pieces = static_cast<std::size_t>(steps_.pieces(step));
      begin = end - pieces;
      if (end == hops_.size()) {
        post(begin, end);
        for (std::size_t k = end; k-- > begin;) {
          send(k);
        }
      }
      std::size_t const before = step > 0 ? static_cast<std::size_t>(steps_.pieces(step - 1)) : 0;
      std::size_t const next = begin - before; // begin of the step before, the next one here
      post(next, begin);
      for (std::size_t number = 2 * pieces; before > 1 && number-- > pieces;) {
        send(next + number);
      }
      for (std::size_t number = pieces; number-- > 0;) {
        detail::wait_for(comm, gathers_[begin + number]);
        wire_.decode(exec, hops_[begin + number].given);
        if (before > 1) {
          send(next + number);
        }
      }
      if (before == 1) {
        send(next);
      }
    }
  }

  detail::halving_steps steps_;
  int place_ = 0; // in the block
  std::vector<hop> hops_;
  std::vector<typename Comm::bulk_request> reductions_; // receives that wait to be reduced
  std::vector<typename Comm::bulk_request> sends_; // of all steps: those of reduce_scatter, then those of allgather
  std::vector<typename Comm::bulk_request> gathers_;
  std::vector<typename Comm::bulk_request> between_; // between blocks
  detail::bound_plain_wire<E, Value> wire_;
};

} // namespace oktopk
