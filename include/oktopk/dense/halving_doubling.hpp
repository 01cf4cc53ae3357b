// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/optional_message.hpp>
#include <oktopk/dense/concept.hpp>
#include <oktopk/dense/wire/plain.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace oktopk {

namespace detail {

/// P ranks as blocks of powers of two, the largest first; where this rank is, and the blocks beside its own.
struct binary_blocks {
  int base = 0;    ///< first rank of this rank's block
  int size = 1;    ///< ranks of it
  int larger = 0;  ///< size of the block before, 0 where there is none
  int smaller = 0; ///< size of the block behind, 0 where there is none

  binary_blocks(int rank, int ranks) {
    int bit = 1;
    while (bit * 2 <= ranks) {
      bit *= 2;
    }
    int begin = 0;
    for (; bit > 0; bit /= 2) {
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

/// The part of a vector that halving leaves to a place: the lower half where bit 0 of the place is not set, of that the
/// lower half where bit 1 is not set, and so on.
inline piece halved(std::int64_t count, int place, int size) {
  std::int64_t begin = 0;
  std::int64_t end = count;
  for (int bit = 1; bit < size; bit *= 2) {
    std::int64_t const middle = begin + (end - begin) / 2;
    ((place & bit) == 0 ? end : begin) = middle;
  }
  return {0, begin, end - begin};
}

} // namespace detail

/// Reduction of dense vectors by recursive vector halving and distance doubling, with binary blocks (Thakur et al.
/// 2005, section 4.5; Gloo's `allreduce_halving_doubling`).
///
/// In place, on any number of ranks; `count` and `op` are the same on all. Where P is a power of two each rank sends
/// 2 log2 P messages and 2n(P-1)/P values. Where it is not, the ranks form blocks of powers of two, the largest first.
/// In a block of B ranks each sends 2 log2 B messages and 2n(B-1)/B values; then a rank's part goes to the next larger
/// block, of L ranks, as L/B messages of n/L values, and on the way back from the larger block each rank sends the part
/// that it has as one message. Every part is finished by one rank of the largest block, so the result is the same to
/// the bit everywhere. Keeps up to n values beside the vector.
template <execution_space E, communicator Comm, gradient_value Value>
class halving_doubling {
public:
  static constexpr bool lossless = true;

  static std::string_view name() { return "halving_doubling"; }

  /// 2n(B-1)/B values for the largest block of B ranks; n/B more to and from other blocks, for any block.
  static double bound_words(std::int64_t count, int ranks) {
    double most = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      detail::binary_blocks const at(rank, ranks);
      auto const n = static_cast<double>(count);
      double const parts = (at.larger > 0 ? 1.0 : 0.0) + (at.smaller > 0 ? 1.0 : 0.0);
      double const sent = 2 * n * (at.size - 1) / at.size + parts * n / at.size;
      most = sent > most ? sent : most;
    }
    // What rounding to whole values adds, once a message.
    return (most + (ranks > 1 ? 2.0 * ranks : 0.0)) * (sizeof(Value) / 4.0);
  }

  void run(E const& exec, Comm& comm, Value* values, Value* lost, std::int64_t count, reduction op = reduction::sum) {
    detail::begin_lossless(exec, op, lost, count);
    if (comm.size() == 1) {
      return;
    }
    detail::binary_blocks const at(comm.rank(), comm.size());
    int const place = comm.rank() - at.base;
    wire_.bind(exec, comm, plain_wire(), {values, values, lost, count, op}, {1, count, 1, (count + 1) / 2});
    requests_.clear();
    requests_.reserve(static_cast<std::size_t>(at.larger > 0 ? at.larger / at.size : 0));
    cancel_on_unwind const guard(comm, both_, requests_);
    for (int bit = 1; bit < at.size; bit *= 2) {
      detail::piece const mine = detail::halved(count, place, 2 * bit);
      detail::piece const theirs = detail::halved(count, place ^ bit, 2 * bit);
      both_[0] = detail::start_receive(comm, wire_.slot(0, mine), at.base + (place ^ bit), phase::reduce);
      wire_.prepare(exec, theirs);
      both_[1] = send(comm, theirs, at.base + (place ^ bit), phase::reduce);
      comm.wait_all(std::span<typename Comm::request>(both_));
      wire_.absorb(exec, 0, mine);
    }
    between_blocks(exec, comm, at, place, count);
    for (int bit = at.size / 2; bit > 0; bit /= 2) {
      detail::piece const mine = detail::halved(count, place, 2 * bit);
      detail::piece const theirs = detail::halved(count, place ^ bit, 2 * bit);
      both_[0] = detail::start_receive(comm, wire_.image(theirs), at.base + (place ^ bit), phase::gather);
      both_[1] = send(comm, mine, at.base + (place ^ bit), phase::gather);
      comm.wait_all(std::span<typename Comm::request>(both_));
      wire_.unfold(exec, theirs);
    }
    detail::fence(exec, "oktopk::halving_doubling::done");
  }

private:
  // From the smallest block to the largest and back; leaves this rank's part finished, and prepared to be sent.
  void between_blocks(E const& exec, Comm& comm, detail::binary_blocks const& at, int place, std::int64_t count) {
    detail::piece const mine = detail::halved(count, place, at.size);
    int const behind = at.base + at.size + (at.smaller > 0 ? place % at.smaller : 0);
    if (at.smaller > 0) {
      detail::finish(comm, detail::start_receive(comm, wire_.slot(0, mine), behind, phase::reduce));
      wire_.absorb(exec, 0, mine);
    }
    wire_.prepare(exec, mine);
    if (at.larger > 0) {
      for (phase const way : {phase::reduce, phase::gather}) {
        requests_.clear();
        for (int there = place; there < at.larger; there += at.size) {
          detail::piece const part = detail::halved(count, there, at.larger);
          int const peer = at.base - at.larger + there;
          requests_.push_back(way == phase::reduce ? send(comm, part, peer, way)
                                                   : detail::start_receive(comm, wire_.image(part), peer, way));
        }
        comm.wait_all(std::span<typename Comm::request>(requests_));
      }
      wire_.unfold(exec, mine);
    }
    if (at.smaller > 0) {
      detail::finish(comm, send(comm, mine, behind, phase::gather));
    }
  }

  typename Comm::request send(Comm& comm, detail::piece p, int peer, phase use) {
    return detail::start_send(comm, wire_.image(p), peer, use);
  }

  std::array<typename Comm::request, 2> both_{}; // what comes, what goes
  std::vector<typename Comm::request> requests_;
  detail::bound_plain_wire<E, Value> wire_;
};

} // namespace oktopk
