// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/cancel_on_unwind.hpp>
#include <oktopk/comm/message_group.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/core/kokkos_ext/instance.hpp>
#include <oktopk/core/options.hpp>
#include <oktopk/dense/concept.hpp>
#include <oktopk/dense/wire.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace oktopk::detail {

/// P ranks as blocks of powers of two, the largest first; where this rank is, and the blocks beside its own.
struct binary_blocks {
  int base = 0;    ///< first rank of this rank's block
  int size = 1;    ///< ranks of it
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

/// The node of a tree of halves that a path leads to: bit 0 of the path tells the half of the vector (0 the lower one),
/// bit 1 the half of that, and so on, to `depth` bits.
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
/// bits and gives the other half of its node away. What is kept is received in pieces: the nodes of it at depth
/// `fewest_halves`, or itself where it lies deeper.
///
/// Pieces are in the order in which the place gives them on: in the next step, in the step after, ..., never. So the
/// pieces of the first half are, in order, those that the next step sends.
class halving_steps {
public:
  halving_steps() = default;
  halving_steps(std::int64_t count, int steps, int fewest_halves)
      : count_(count), steps_(steps), fewest_halves_(fewest_halves) {}

  int steps() const { return steps_; }
  std::int64_t pieces(int step) const { return std::int64_t(1) << (depth(step) - step - 1); }

  /// Number of pieces of the steps before one.
  std::int64_t first(int step) const {
    std::int64_t sum = 0;
    for (int each = 0; each < step; ++each) {
      sum += pieces(each);
    }
    return sum;
  }

  std::int64_t all() const { return first(steps_); }

  /// The part that all steps leave to a place.
  piece part_of(int place) const { return halved(count_, place, steps_); }

  piece piece_of(int place, int step, std::int64_t number) const {
    std::int64_t path = place & ((std::int64_t(2) << step) - 1);
    for (int level = step + 1; level < depth(step); ++level) {
      // Of the levels below the last step the lower half comes first.
      std::int64_t const own = level < steps_ ? place >> level & 1 : 1;
      std::int64_t const later = number >> (depth(step) - 1 - level) & 1;
      path |= (later == 0 ? 1 - own : own) << level;
    }
    return halved(count_, path, depth(step));
  }

  std::int64_t longest_piece() const {
    std::int64_t const nodes = std::int64_t(1) << depth(0);
    return count_ / nodes + (count_ % nodes != 0 ? 1 : 0);
  }

private:
  int depth(int step) const { return std::max(step + 1, fewest_halves_); }

  std::int64_t count_ = 0;
  int steps_ = 0;
  int fewest_halves_ = 0;
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
/// A message longer than `chunk_bytes` is halved until its pieces are not. A piece goes on to the next step as soon as
/// it is reduced, while the others of its step are on their way: steps, and the reductions of one with the messages of
/// the next, overlap. Keeps `ahead` pieces beside the vector, up to n values where nothing is cut.
template <execution_space E, communicator Comm, gradient_value Value>
class halving_doubling {
public:
  static constexpr bool lossless = true;

  struct options {
    /// Of the longest piece, at least the size of a value. Over TCP, MPI libraries ask the receiver before they send
    /// more than 64 KiB, and the answer waits behind the data that goes the other way between the same two ranks.
    std::int64_t chunk_bytes = std::int64_t(60) << 10;
    std::int64_t ahead = 32; ///< receives under way at once while reducing, at least 1

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("chunk_bytes", how.chunk_bytes, "bytes of a sub-chunk", at_least(sizeof(Value), "is less than a value"));
      visit("ahead", how.ahead, "receives under way at once", at_least(1));
    }
  };

  halving_doubling() : halving_doubling(options{}) {}
  explicit halving_doubling(options how) : options_(how) {}

  static std::string_view name() { return "halving_doubling"; }

  std::string describe() const { return detail::describe_options("halving_doubling", options_); }
  std::string problem() const { return detail::fault_of_options("halving_doubling", options_); }

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
    steps_ = detail::halving_steps(count, detail::ceil_log2(at.size), fewest_halves(count));
    base_ = at.base;
    place_ = comm.rank() - at.base;
    std::int64_t const all = steps_.all();
    std::int64_t const slots = std::max<std::int64_t>(1, std::min(options_.ahead, all));
    detail::cancel_on_unwind const alone(comm); // room may be missing on one rank
    wire_.bind(exec, comm, plain_wire(), {values, values, lost, count, op}, {1, count, slots, steps_.longest_piece()});
    reductions_.assign(static_cast<std::size_t>(slots), {});
    sends_.assign(static_cast<std::size_t>(2 * all), {});
    gathers_.assign(static_cast<std::size_t>(all), {});
    between_.clear();
    detail::cancel_on_unwind const guard(comm, reductions_, sends_, gathers_, between_);
    reduce_scatter(exec, comm);
    between_blocks(exec, comm, at, count);
    allgather(exec, comm);
    comm.wait_all(std::span<typename Comm::bulk_request>(sends_));
    detail::fence(exec, "oktopk::halving_doubling::done");
  }

private:
  // Halvings until no piece is longer than a chunk.
  int fewest_halves(std::int64_t count) const {
    std::int64_t const chunk = options_.chunk_bytes / std::int64_t(sizeof(Value));
    return detail::ceil_log2(count / chunk + (count % chunk != 0 ? 1 : 0));
  }

  int partner(int step) const { return place_ ^ (1 << step); }

  // Receives pieces to be reduced, some of them ahead: piece number k of `all` is `incoming(k)` and comes from rank
  // `peer(k)`. Calls `reduced(k)` after each.
  template <class Incoming, class Peer, class Reduced>
  void receive_and_reduce(E const& exec, Comm& comm, std::int64_t all, Incoming const& incoming, Peer const& peer,
                          Reduced const& reduced) {
    auto const window = static_cast<std::int64_t>(reductions_.size());
    auto const post = [&](std::int64_t k) {
      if (k < all) {
        reductions_[static_cast<std::size_t>(k % window)] =
            detail::start_receive(exec, comm, wire_.slot(k % window, incoming(k)), peer(k), phase::reduce);
      }
    };
    for (std::int64_t k = 0; k < window; ++k) {
      post(k);
    }
    for (std::int64_t k = 0; k < all; ++k) {
      detail::wait_for(comm, reductions_[static_cast<std::size_t>(k % window)]);
      wire_.reduce(exec, k % window, incoming(k));
      post(k + window);
      reduced(k);
    }
  }

  void reduce_scatter(E const& exec, Comm& comm) {
    auto const send = [&](int step, std::int64_t number) {
      detail::piece const p = steps_.piece_of(partner(step), step, number);
      wire_.prepare(exec, p);
      sends_[static_cast<std::size_t>(steps_.first(step) + number)] =
          detail::start_send(exec, comm, wire_.encoded(p), base_ + partner(step), phase::reduce);
    };
    auto const step_of = [&](std::int64_t k) {
      int step = 0;
      while (k >= steps_.first(step + 1)) {
        step += 1;
      }
      return step;
    };
    auto const incoming = [&](std::int64_t k) {
      int const step = step_of(k);
      return steps_.piece_of(place_, step, k - steps_.first(step));
    };
    auto const peer = [&](std::int64_t k) { return base_ + partner(step_of(k)); };
    auto const reduced = [&](std::int64_t k) {
      int const step = step_of(k);
      std::int64_t const number = k - steps_.first(step);
      // The next step sends the first half of these pieces, or half of the only one.
      if (step + 1 < steps_.steps() && number < std::max<std::int64_t>(1, steps_.pieces(step) / 2)) {
        send(step + 1, number);
      }
    };
    for (std::int64_t number = 0; steps_.steps() > 0 && number < steps_.pieces(0); ++number) {
      send(0, number);
    }
    receive_and_reduce(exec, comm, steps_.all(), incoming, peer, reduced);
  }

  // From the smallest block to the largest and back; leaves this rank's part finished, and prepared to be sent.
  void between_blocks(E const& exec, Comm& comm, detail::binary_blocks const& at, std::int64_t count) {
    detail::piece const mine = steps_.part_of(place_);
    int const behind = at.base + at.size + (at.smaller > 0 ? place_ % at.smaller : 0);
    if (at.smaller > 0) {
      int const last = steps_.steps() - 1;
      receive_and_reduce(
          exec, comm, steps_.pieces(last), [&](std::int64_t k) { return steps_.piece_of(place_, last, k); },
          [&](std::int64_t) { return behind; }, [](std::int64_t) {});
    }
    wire_.prepare(exec, mine);
    if (at.larger > 0) {
      detail::halving_steps const theirs(count, detail::ceil_log2(at.larger), fewest_halves(count));
      int const last = theirs.steps() - 1;
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

  // The steps of `reduce_scatter` from the last to the first, the pieces of each from the last to the first. A place
  // sends all that it has kept in a step: the part that it has from the steps before, and the part that arrives in
  // them.
  void allgather(E const& exec, Comm& comm) {
    auto const send = [&](int step, std::int64_t number) {
      sends_[static_cast<std::size_t>(steps_.all() + steps_.first(step) + number)] = detail::start_send(
          exec, comm, wire_.encoded(steps_.piece_of(place_, step, number)), base_ + partner(step), phase::gather);
    };
    auto const post = [&](int step) {
      for (std::int64_t number = steps_.pieces(step) - 1; number >= 0; --number) {
        auto const at = static_cast<std::size_t>(steps_.first(step) + number);
        detail::wait_for(comm, sends_[at]); // the same place was sent from while reducing
        gathers_[at] = detail::start_receive(exec, comm, wire_.encoded(steps_.piece_of(partner(step), step, number)),
                                             base_ + partner(step), phase::gather);
      }
    };
    int const last = steps_.steps() - 1;
    if (last >= 0) {
      post(last);
      for (std::int64_t number = steps_.pieces(last) - 1; number >= 0; --number) {
        send(last, number);
      }
    }
    for (int step = last; step >= 0; --step) {
      bool const cut = step > 0 && steps_.pieces(step - 1) > 1;
      if (step > 0) {
        post(step - 1);
      }
      for (std::int64_t number = 2 * steps_.pieces(step) - 1; cut && number >= steps_.pieces(step); --number) {
        send(step - 1, number);
      }
      for (std::int64_t number = steps_.pieces(step) - 1; number >= 0; --number) {
        detail::wait_for(comm, gathers_[static_cast<std::size_t>(steps_.first(step) + number)]);
        wire_.decode(exec, steps_.piece_of(partner(step), step, number));
        if (cut) {
          send(step - 1, number);
        }
      }
      if (step > 0 && !cut) {
        send(step - 1, 0);
      }
    }
  }

  options options_;
  detail::halving_steps steps_;
  int base_ = 0;
  int place_ = 0;
  std::vector<typename Comm::bulk_request> reductions_; // receives that wait to be reduced
  std::vector<typename Comm::bulk_request> sends_; // of all steps: those of reduce_scatter, then those of allgather
  std::vector<typename Comm::bulk_request> gathers_;
  std::vector<typename Comm::bulk_request> between_; // between blocks
  detail::bound_plain_wire<E, Value> wire_;
};

} // namespace oktopk
