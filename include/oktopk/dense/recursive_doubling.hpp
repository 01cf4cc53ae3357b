// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/collectives.hpp>
#include <oktopk/comm/folded_ranks.hpp>
#include <oktopk/comm/optional_message.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/dense/concept.hpp>
#include <oktopk/dense/plain_wire.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace oktopk {

/// Reduction of dense vectors by recursive doubling (Thakur et al. 2005, section 4.5): pairs of ranks exchange all they
/// have, at distances 1, 2, 4, ...: few messages, for short vectors.
///
/// In place, on any number of ranks; `count` and `op` are the same on all. With 2^m <= P < 2^(m+1) each rank sends m
/// messages of n values. Where P is no power of two, of each of the first P - 2^m pairs of ranks the odd one sends its
/// vector ahead and gets the result last, one message of n values each way: the even one sends m+1, the odd one 1. The
/// partners of an exchange form the same sum of two, so the result is the same to the bit everywhere. Keeps two vectors
/// beside the caller's.
template <execution_space E, communicator Comm, gradient_value Value>
class recursive_doubling {
public:
  static constexpr bool lossless = true;

  static std::string_view name() { return "recursive_doubling"; }

  /// n log2 P values; n(m+1) where P is no power of two.
  static double bound_words(std::int64_t count, int ranks) {
    return static_cast<double>(count) * detail::ceil_log2(ranks) * (sizeof(Value) / 4.0);
  }

  void run(E const& exec, Comm& comm, Value* values, Value* lost, std::int64_t count, reduction op = reduction::sum) {
    detail::refuse_losses_of(op, lost);
    if (lost != nullptr) {
      detail::clear_values(exec, lost, count);
    }
    if (comm.size() == 1 || count == 0) {
      return;
    }
    int const rank = comm.rank();
    detail::folded_ranks const at(rank, comm.size());
    detail::piece const whole{0, 0, count};
    wire_.bind(exec, comm, values, count, op, 2, count);
    std::array<typename Comm::request, 2> both{}; // what comes, what goes
    cancel_on_unwind const guard(comm, both);
    if (at.is_guest) {
      wire_.prepare(exec, whole);
      detail::finish(comm, comm.isend(wire_.image(whole), rank - 1, phase::reduce));
      detail::finish(comm, comm.irecv(wire_.image(whole), rank - 1, phase::gather));
      wire_.unfold(exec, whole);
      detail::fence(exec, "oktopk::recursive_doubling::done");
      return;
    }
    auto const receive = [&](int distance) {
      int const partner = at.rank_at(at.place ^ distance);
      return comm.irecv(wire_.slot(detail::ceil_log2(distance) % 2, whole), partner, phase::reduce);
    };
    if (at.in_pair) {
      detail::finish(comm, comm.irecv(wire_.slot(1, whole), rank + 1, phase::reduce));
    }
    // The next receive is posted before this one is reduced: its partner need not wait.
    both[0] = receive(1);
    if (at.in_pair) {
      wire_.absorb(exec, 1, whole);
    }
    for (int distance = 1; distance < at.core; distance *= 2) {
      wire_.prepare(exec, whole);
      both[1] = comm.isend(wire_.image(whole), at.rank_at(at.place ^ distance), phase::reduce);
      comm.wait_all(std::span<typename Comm::request>(both));
      if (distance * 2 < at.core) {
        both[0] = receive(distance * 2);
      }
      wire_.absorb(exec, detail::ceil_log2(distance) % 2, whole);
    }
    if (at.in_pair) {
      wire_.prepare(exec, whole);
      detail::finish(comm, comm.isend(wire_.image(whole), rank + 1, phase::gather));
    }
  }

private:
  detail::plain_wire<E, Value> wire_;
};

} // namespace oktopk
