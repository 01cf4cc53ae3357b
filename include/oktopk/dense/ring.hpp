// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/collectives.hpp>
#include <oktopk/comm/single_message.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/dense/concept.hpp>
#include <oktopk/dense/wire/plain.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace oktopk {

/// Reduction of dense vectors that every rank forms by itself while all vectors go round a ring (Gloo's
/// `allreduce_ring`): for short vectors and few ranks.
///
/// In place, on any number of ranks; `count` and `op` are the same on all. Each rank sends P-1 messages of n values
/// (Gloo's table counts one vector more). The vectors reach each rank in another order; so that the sums are the same
/// to the bit, all reduce them along one tree: ranks 0 and 1, 2 and 3, then these pairs, and so on. A vector that waits
/// for its sibling is in one of at most 2 ceil(log2 P) + 2 vectors beside the caller's.
template <execution_space E, communicator Comm, gradient_value Value>
class ring {
public:
  static constexpr bool lossless = true;

  static std::string_view name() { return "ring"; }

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
    std::int64_t const slots = std::min<std::int64_t>(ranks - 1, 2 * detail::ceil_log2(comm.size()) + 2);
    detail::piece const whole{0, 0, count};
    cancel_on_unwind const alone(comm); // room may be missing on one rank
    wire_.bind(exec, comm, plain_wire(), {values, values, lost, count, op}, {1, count, slots, count});
    op_ = op;
    ranks_ = ranks;
    values_ = values;
    waiting_.clear();
    free_.clear();
    for (std::int64_t slot = slots; slot > 0; --slot) {
      free_.push_back(slot - 1);
    }
    waiting_.reserve(static_cast<std::size_t>(slots) + 1);
    typename Comm::bulk_request received;
    typename Comm::bulk_request sent;
    cancel_on_unwind const guard(comm, received, sent);
    int const right = static_cast<int>((rank + 1) % ranks);
    int const left = static_cast<int>((rank + ranks - 1) % ranks);
    std::int64_t arriving = take_slot();
    received = detail::start_receive(exec, comm, wire_.slot(arriving, whole), left, phase::reduce);
    wire_.prepare(exec, whole);
    sent = detail::start_send(exec, comm, wire_.image(whole), right, phase::reduce);
    place(exec, {0, rank, callers}, count);
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
      place(exec, {0, (rank + ranks - step) % ranks, arrived}, count);
      // A slot that was freed is received into in the next step.
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

  Value* data(std::int64_t slot) const { return slot == callers ? values_ : wire_.slot_values(slot); }

  // Reduces a vector with whatever it completes. It is only read, for it may still be on its way to the next rank.
  void place(E const& exec, node added, std::int64_t count) {
    while ((std::int64_t(1) << added.level) < ranks_) {
      std::int64_t const sibling = added.index ^ 1;
      if ((sibling << added.level) < ranks_) {
        auto const found = std::find_if(waiting_.begin(), waiting_.end(), [&](node const& each) {
          return each.level == added.level && each.index == sibling;
        });
        if (found == waiting_.end()) {
          waiting_.push_back(added);
          return;
        }
        std::int64_t into = found->slot;
        std::int64_t from = added.slot;
        if (from == callers) { // which keeps the result, and was sent in the first step
          std::swap(into, from);
        }
        detail::combine(exec, op_, static_cast<Value const*>(data(from)), count, data(into));
        free_.push_back(from);
        waiting_.erase(found);
        added.slot = into;
      }
      added = {added.level + 1, added.index / 2, added.slot};
    }
  }

  detail::bound_plain_wire<E, Value> wire_;
  std::vector<node> waiting_;
  std::vector<std::int64_t> free_;
  reduction op_ = reduction::sum;
  std::int64_t ranks_ = 1;
  Value* values_ = nullptr;
};

} // namespace oktopk
