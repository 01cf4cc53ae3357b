// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/collectives.hpp>
#include <oktopk/dense/wire.hpp>

#include <algorithm>
#include <array>

namespace oktopk {

/// Reduction of dense vectors by Rabenseifner's algorithm (Thakur et al. 2005): reduce-scatter by recursive halving,
/// allgather by recursive doubling.
///
/// In place, on any number of ranks; `count`, `op` and the options are the same on all. Where P is a power of two each
/// rank sends 2n(P-1)/P values in 2 log2 P messages. Where it is not, with 2^m the largest power of two below P, the
/// first 2(P - 2^m) ranks fold in pairs. The odd rank of a pair, the folded rank, sends n values in one message. The
/// even rank, its neighbour, sends one message of n values more than the others. Every block of n / 2^m is reduced by
/// one rank in a fixed order and sent to the rest, so the result is the same to the bit everywhere. Keeps n/2 values
/// beside the vector, the neighbour n.
///
/// Over a coded wire each rank rounds every element once: the partial sum that it sends away, or the sum that it
/// finishes. A single rank sends nothing, so it codes nothing. `lost` gets the difference. In each step the allgather
/// encodes again what it sends. With a stable codec this loses nothing more; other codecs are refused, unless ranks may
/// differ. Keeps three coded halves of the vector beside the caller's; folded ranks and neighbours three coded vectors.
template <execution_space E, communicator Comm, gradient_value Value, class Wire = detail::plain_wire>
  requires detail::dense_wire<Wire, E, Value>
class rabenseifner : public detail::on_wires<E, Value, Wire> {
  using base = detail::on_wires<E, Value, Wire>;

public:
  using base::base;

  std::string name() const { return base::policy().name_after("rabenseifner"); }

  std::string problem() const {
    std::string const of_wire = base::policy().problem();
    return of_wire.empty() ? base::policy().fault_of_coding_anew() : of_wire;
  }

  bool ranks_may_differ() const { return base::policy().ranks_may_differ(true); }

  /// Every value is rounded once by each rank.
  bool losses_may_overflow(int) const { return base::policy().template losses_may_overflow<Value>(1); }

  /// Messages that follow one another: there and back.
  static double expected_messages(std::int64_t, int ranks) { return 2 * static_cast<double>(detail::ceil_log2(ranks)); }

  /// The larger part of every halving, in both directions, and the whole vector once if P is no power of two.
  double bound_words(std::int64_t count, int ranks) const {
    detail::folded_ranks const at(0, ranks);
    std::int64_t const block_size = block_size_of(count);
    std::int64_t bytes = at.folded > 0 ? base::message_bytes(count, count) : 0;
    std::int64_t left = (count + block_size - 1) / block_size;
    for (int part = at.core; part > 1; part /= 2) {
      left = (left + 1) / 2;
      bytes += 2 * base::message_bytes(std::min(count, left * block_size), count);
    }
    return static_cast<double>(bytes) / 4;
  }

  void run(E const& exec, Comm& comm, Value* values, Value* lost, std::int64_t count, reduction op = reduction::sum) {
    bool const coded = base::codes(count) && comm.size() > 1;
    base::on_wire(exec, coded, {values, values, lost, count, op}, [&](auto& wire) {
      if (comm.size() > 1) {
        detail::folded_ranks const at(comm.rank(), comm.size());
        std::int64_t const block_size = block_size_of(count);
        std::int64_t const longest =
            at.in_pair ? count : std::min(count, ((count + block_size - 1) / block_size + 1) / 2 * block_size);
        detail::cancel_on_unwind const alone(comm); // an allocation may fail on one rank
        wire.bind(exec, comm, {2, longest, 1, longest});
        if (at.is_folded) {
          detail::run_as_folded_rank(exec, comm, wire, {sent_piece, 0, count}, 1);
        } else {
          run_in_core(exec, comm, wire, at, count);
        }
      }
      detail::fence(exec, "oktopk::rabenseifner::done");
    });
  }

private:
  // A part of the vector that is cut in two: the half that this rank keeps, and the one that it gives to its peer.
  struct halving {
    int peer;
    detail::piece kept;
    detail::piece given;
  };

  // The places of coded pieces: one for a piece that is sent, one for a piece that arrives.
  static constexpr std::int64_t sent_piece = 0;
  static constexpr std::int64_t received_piece = 1;

  std::int64_t block_size_of(std::int64_t count) const { return base::codes(count) ? Wire::block_size : 1; }

  template <class BoundWire>
  void run_in_core(E const& exec, Comm& comm, BoundWire& wire, detail::folded_ranks const& at, std::int64_t count) {
    detail::cancel_on_unwind const guard(comm, both_);
    std::int64_t const block_size = block_size_of(count);
    auto const part = [&](std::int64_t begin, std::int64_t end) { // in blocks
      std::int64_t const first = std::min(count, begin * block_size);
      return detail::piece{sent_piece, first, std::min(count, end * block_size) - first};
    };
    detail::piece const whole{sent_piece, 0, count};
    if (at.in_pair) {
      detail::finish(comm, detail::start_receive(exec, comm, wire.slot(0, whole), comm.rank() + 1, phase::reduce));
      wire.reduce(exec, 0, whole);
    }
    // The part of this place is halved in each step. The halvings are kept for the allgather.
    std::int64_t begin = 0;
    std::int64_t end = (count + block_size - 1) / block_size;
    halvings_.clear();
    int const steps = detail::ceil_log2(at.core);
    halvings_.reserve(static_cast<std::size_t>(steps));
    for (int step = 0; step < steps; ++step) {
      std::int64_t const middle = begin + (end - begin) / 2;
      int const distance = 1 << (steps - 1 - step);
      bool const lower = (at.place & distance) == 0;
      detail::piece const given = lower ? part(middle, end) : part(begin, middle);
      (lower ? end : begin) = middle;
      detail::piece const kept = part(begin, end);
      int const peer = at.rank_at(at.place ^ distance);
      halvings_.push_back({peer, kept, given});
      both_[0] = detail::start_receive(exec, comm, wire.slot(0, kept), peer, phase::reduce);
      wire.prepare(exec, given);
      both_[1] = detail::start_send(exec, comm, wire.encoded(given), peer, phase::reduce);
      comm.wait_all(std::span<typename Comm::bulk_request>(both_));
      wire.reduce(exec, 0, kept);
    }
    // The rank that finishes a part continues with the values that the other ranks decode.
    wire.prepare(exec, part(begin, end));
    wire.adopt_rounding(exec, part(begin, end));
    // Encodes a part that has grown since it was last encoded, unless the encoded pieces of it already make up its
    // encoded form.
    auto const encode_anew = [&](detail::piece p, bool has_grown) {
      if (has_grown && !wire.joins_encoded) {
        wire.prepare(exec, p, false);
      }
    };
    for (auto each = halvings_.rbegin(); each != halvings_.rend(); ++each) {
      detail::piece const missing{received_piece, each->given.begin, each->given.count};
      // Before the receive is posted, because this waits: the decoding of the last piece may still read the place that
      // the next piece arrives in.
      encode_anew(each->kept, each != halvings_.rbegin());
      both_[0] = detail::start_receive(exec, comm, wire.encoded(missing), each->peer, phase::gather);
      both_[1] = detail::start_send(exec, comm, wire.encoded(each->kept), each->peer, phase::gather);
      comm.wait_all(std::span<typename Comm::bulk_request>(both_));
      wire.decode(exec, missing);
    }
    if (at.in_pair) {
      encode_anew(whole, !halvings_.empty());
      detail::finish(comm, detail::start_send(exec, comm, wire.encoded(whole), comm.rank() + 1, phase::gather));
    }
  }

  std::array<typename Comm::bulk_request, 2> both_{}; // the receive and the send of a step
  std::vector<halving> halvings_;
};

} // namespace oktopk
