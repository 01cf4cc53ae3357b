// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/collectives.hpp>
#include <oktopk/dense/wire.hpp>

#include <array>

namespace oktopk {

/// Reduction of dense vectors by recursive doubling (Thakur et al. 2005, section 4.5; coded: Zhou et al.,
/// collective-level compression, Algorithm 2): pairs of ranks exchange all they have, at distances 1, 2, 4, ...: few
/// messages, for short vectors.
///
/// In place, on any number of ranks; `count`, `op` and the options are the same on all. With 2^m <= P < 2^(m+1) each
/// rank sends m messages of n values. Where P is no power of two, the first P - 2^m pairs of ranks fold. The odd rank
/// of a pair, the folded rank, first sends its vector to the even rank, its neighbour, and gets the result at the end,
/// one message of n values each way: the neighbour sends m+1 messages, the folded rank 1. Both partners of an exchange
/// add the same two vectors, so the result is the same to the bit everywhere. Keeps two vectors beside the caller's.
///
/// Over a coded wire each partner continues with the values that the other one decodes. All 2^s ranks that have the
/// same values before step s have the same losses; each of them notes the losses of its share of the elements in
/// `lost`. A folded rank gets both messages of its neighbour's last exchange, as they were encoded: the neighbour sends
/// m+2 messages. At the level of messages the neighbour encodes its result instead, in one message, and every rank
/// rounds its result in the same way. Keeps four coded vectors beside the caller's; one vector more if losses are
/// noted, and one more at the level of messages.
template <execution_space E, communicator Comm, gradient_value Value, class Wire = detail::plain_wire>
  requires detail::dense_wire<Wire, E, Value>
class recursive_doubling : public detail::on_wires<E, Value, Wire> {
  using base = detail::on_wires<E, Value, Wire>;

public:
  using base::base;

  std::string name() const { return base::policy().name_after("recursive_doubling"); }

  /// A rank may round the same value in every step, and once more for its folded rank.
  bool losses_may_overflow(int ranks) const {
    return base::policy().template losses_may_overflow<Value>(detail::ceil_log2(ranks) + 2);
  }

  /// Messages that follow one another.
  static double expected_messages(std::int64_t, int ranks) { return static_cast<double>(detail::ceil_log2(ranks)); }

  /// log2 P messages of the vector. Where P is no power of two, one more, or two more over a coded wire.
  double bound_words(std::int64_t count, int ranks) const {
    detail::folded_ranks const at(0, ranks);
    int const for_folded_rank = at.folded == 0 ? 0 : (base::codes(count) ? 2 : 1);
    return static_cast<double>((detail::ceil_log2(at.core) + for_folded_rank) * base::message_bytes(count, count)) / 4;
  }

  void run(E const& exec, Comm& comm, Value* values, Value* lost, std::int64_t count, reduction op = reduction::sum) {
    bool const coded = base::codes(count) && comm.size() > 1 && count > 0;
    base::on_wire(exec, coded, {values, values, lost, count, op}, [&](auto& wire) {
      if (comm.size() > 1 && count > 0) {
        detail::cancel_on_unwind const alone(comm); // an allocation may fail on one rank
        wire.bind(exec, comm, {2, count, 2, count});
        detail::folded_ranks const at(comm.rank(), comm.size());
        if (at.is_folded) {
          detail::run_as_folded_rank(exec, comm, wire, whole(0, count), wire.result_messages());
        } else {
          run_in_core(exec, comm, wire, at, count);
        }
        detail::fence(exec, "oktopk::recursive_doubling::done");
      }
    });
  }

private:
  static detail::piece whole(std::int64_t place, std::int64_t count) { return {place, 0, count}; }

  template <class BoundWire>
  void run_in_core(E const& exec, Comm& comm, BoundWire& wire, detail::folded_ranks const& at, std::int64_t count) {
    typename Comm::bulk_request received;
    std::array<typename Comm::bulk_request, 2> sent{}; // of this step and of the one before
    detail::cancel_on_unwind const guard(comm, received, sent);
    auto const partner = [&](int step) { return at.rank_at(at.place ^ (1 << step)); };
    auto const receive = [&](int step) {
      return detail::start_receive(exec, comm, wire.slot(step % 2, whole(0, count)), partner(step), phase::reduce);
    };
    bool const early = !wire.codes_each_message();
    if (at.in_pair) {
      detail::finish(comm,
                     detail::start_receive(exec, comm, wire.slot(1, whole(0, count)), comm.rank() + 1, phase::reduce));
    }
    // The next receive is posted before this one is reduced: its partner need not wait.
    if (early) {
      received = receive(0);
    }
    if (at.in_pair) {
      wire.reduce(exec, 1, whole(0, count));
    }
    int const steps = detail::ceil_log2(at.core);
    for (int step = 0; step < steps; ++step) {
      detail::piece const mine = whole(step % 2, count);
      wire.prepare_share(exec, mine, at.place, 1 << step);
      auto const now = static_cast<std::size_t>(step % 2);
      sent[now] = detail::start_send(exec, comm, wire.encoded(mine), partner(step), phase::reduce);
      if (!early) {
        received = receive(step);
      }
      wire.adopt_rounding(exec, mine); // while the messages are on their way
      detail::wait_for(comm, sent[wire.keeps_encoded ? 1 - now : now]);
      detail::wait_for(comm, received);
      if (early && step + 1 < steps) {
        received = receive(step + 1);
      }
      wire.reduce(exec, step % 2, mine);
    }
    comm.wait_all(std::span<typename Comm::bulk_request>(sent));
    // The odd rank of a pair gets the result: both messages of the last exchange as they were, or the whole result in
    // one message. All ranks encode that message, because each must round its result to the values that the folded
    // ranks decode.
    int const folded_rank = comm.rank() + 1;
    if (wire.result_messages() == 2) {
      if (at.in_pair) {
        int const last = (steps - 1) % 2;
        sent[0] = detail::start_send(exec, comm, wire.encoded(whole(last, count)), folded_rank, phase::gather);
        sent[1] = detail::start_send(exec, comm, wire.slot(last, whole(0, count)), folded_rank, phase::gather);
      }
    } else if (at.in_pair || (at.folded > 0 && wire.keeps_encoded)) {
      wire.prepare_share(exec, whole(0, count), at.place, 1 << steps);
      wire.adopt_rounding(exec, whole(0, count));
      if (at.in_pair) {
        sent[0] = detail::start_send(exec, comm, wire.encoded(whole(0, count)), folded_rank, phase::gather);
      }
    }
    comm.wait_all(std::span<typename Comm::bulk_request>(sent));
  }
};

} // namespace oktopk
