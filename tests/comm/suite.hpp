// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/messages.hpp"

#include <oktopk/comm/any_communicator.hpp>
#include <oktopk/comm/collectives.hpp>
#include <oktopk/comm/message_group.hpp>

#include <array>
#include <bit>

// The tests that every communicator must pass: include this and call `check_communicator(launch)` in a test case.
// `launch(body)` runs `body(comm)` on all ranks of one or several worlds, each time with a communicator that nobody has
// used before. Only the truncation of a message that exceeds its room is left to each adapter's own tests. What a
// communicator does with its own types of requests is checked by its type, all else over an `any_communicator` around it,
// so that it is compiled once for all.
namespace oktopk_tests::communicating {

/// Numbers in memory of kernels, where bulk messages lie, and as the host sees them.
template <class T, class E>
struct bulk_numbers {
  explicit bulk_numbers(std::size_t count)
      : view(Kokkos::view_alloc(std::string("oktopk::tests::bulk"), Kokkos::WithoutInitializing), count),
        mirror(Kokkos::create_mirror_view(view)) {}

  std::span<T> all() const { return {mirror.data(), mirror.extent(0)}; }
  std::span<std::byte> bytes() const { return std::as_writable_bytes(std::span<T>(view.data(), view.extent(0))); }

  /// What the host has written, for messages; in the order of the instance.
  void push(E const& exec) const { Kokkos::deep_copy(exec, view, mirror); }

  /// What messages have written, for the host.
  void pull(E const& exec) const {
    Kokkos::deep_copy(exec, mirror, view);
    exec.fence();
  }

  Kokkos::View<T*, typename E::memory_space> view;
  decltype(Kokkos::create_mirror_view(view)) mirror; // Kokkos 5 has no HostMirror, and 3.4 no host_mirror_type
};

using any = oktopk::any_communicator;

template <class Comm>
int next(Comm const& comm) {
  return (comm.rank() + 1) % comm.size();
}

template <class Comm>
int before(Comm const& comm) {
  return (comm.rank() + comm.size() - 1) % comm.size();
}

/// Control 1: rank and size do not change, and copies stand for the same ranks.
template <class Comm>
void check_ranks(Comm comm) {
  Comm copy(comm);
  CHECK(comm.size() >= 1);
  CHECK(comm.rank() >= 0);
  CHECK(comm.rank() < comm.size());
  CHECK(copy.rank() == comm.rank());
  CHECK(copy.size() == comm.size());
  std::vector<int> ranks(static_cast<std::size_t>(comm.size()), -1);
  int const mine = comm.rank();
  oktopk::collective_workspace workspace;
  oktopk::allgather(comm, std::span<int const>(&mine, 1), std::span<int>(ranks), oktopk::phase::control, workspace);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    CHECK(ranks[rank] == static_cast<int>(rank));
  }
  CHECK_FALSE(typename Comm::request().active());
  CHECK_FALSE(typename Comm::bulk_request().active());
  std::vector<typename Comm::request> none(3);
  comm.wait_all(std::span(none));
  comm.wait_all(std::span<typename Comm::request>());
}

/// Control 2 and 3: messages of one phase arrive in the order they were sent, whatever happens in other phases, the
/// empty one included; by a copy as well.
template <class Comm>
void check_order(Comm comm) {
  if (comm.size() == 1) {
    return;
  }
  Comm copy(comm);
  std::array<int, 4> const sent = {10 + comm.rank(), 1, 20, 2};
  std::array<int, 4> heard{};
  std::vector<typename Comm::request> all;
  for (std::size_t const i : {std::size_t(1), std::size_t(3)}) { // receives of the second phase are posted first
    all.push_back(comm.irecv(space_in(heard[i]), before(comm), oktopk::phase::gather));
  }
  all.push_back(comm.irecv(space_in(heard[0]), before(comm), oktopk::phase::reduce));
  all.push_back(copy.irecv(std::span<std::byte>(), before(comm), oktopk::phase::reduce));
  all.push_back(comm.irecv(space_in(heard[2]), before(comm), oktopk::phase::reduce));
  all.push_back(copy.isend(bytes_of(sent[0]), next(comm), oktopk::phase::reduce));
  all.push_back(comm.isend(bytes_of(sent[1]), next(comm), oktopk::phase::gather));
  all.push_back(comm.isend(std::span<std::byte const>(), next(comm), oktopk::phase::reduce));
  all.push_back(comm.isend(bytes_of(sent[2]), next(comm), oktopk::phase::reduce));
  all.push_back(comm.isend(bytes_of(sent[3]), next(comm), oktopk::phase::gather));
  comm.wait_all(std::span(all));
  CHECK(heard == std::array<int, 4>{10 + before(comm), 1, 20, 2});
  for (auto const& each : all) {
    CHECK_FALSE(each.active());
  }
  comm.wait_all(std::span(all)); // again, for nothing
}

/// Control 2: messages of different senders do not mix, in every phase and in both directions at once.
inline void check_all_to_all(any comm) {
  for (int p = 0; p < oktopk::phase_count; ++p) {
    auto const use = static_cast<oktopk::phase>(p);
    std::vector<int> out(static_cast<std::size_t>(comm.size()));
    std::vector<int> in(out.size(), -1);
    std::vector<any::request> all;
    for (int peer = 0; peer < comm.size(); ++peer) {
      if (peer != comm.rank()) {
        auto const at = static_cast<std::size_t>(peer);
        out[at] = 100 * comm.rank() + peer;
        all.push_back(comm.isend(bytes_of(out[at]), peer, use));
        all.push_back(comm.irecv(space_in(in[at]), peer, use));
      }
    }
    comm.wait_all(std::span(all));
    for (int peer = 0; peer < comm.size(); ++peer) {
      CHECK(in[static_cast<std::size_t>(peer)] == (peer == comm.rank() ? -1 : 100 * peer + comm.rank()));
    }
  }
}

/// The collectives that are built from control messages.
inline void check_collectives(any comm) {
  oktopk::collective_workspace workspace;
  std::array<std::int64_t, 3> sums = {1, comm.rank(), -comm.rank()};
  oktopk::allreduce_integers(comm, std::span<std::int64_t>(sums), oktopk::reduction::sum, oktopk::phase::threshold,
                             workspace);
  std::int64_t const ranks = comm.size();
  CHECK(sums == std::array<std::int64_t, 3>{ranks, ranks * (ranks - 1) / 2, -ranks * (ranks - 1) / 2});
  std::array<std::uint16_t, 1> most = {static_cast<std::uint16_t>(comm.rank())};
  oktopk::allreduce_integers(comm, std::span<std::uint16_t>(most), oktopk::reduction::max, oktopk::phase::threshold,
                             workspace);
  CHECK(most[0] == ranks - 1);
}

/// Bulk 2, 3 and 5: groups of messages, of sizes that the receiver knows and of others, several groups under way.
template <class E>
void check_groups(any comm) {
  if (comm.size() == 1 || !comm.can_access<typename E::memory_space>()) {
    return;
  }
  E const exec;
  constexpr std::size_t capacity = 5000;
  bulk_numbers<int, E> out(3 * capacity);
  bulk_numbers<int, E> in(4 * capacity);
  std::fill(in.all().begin(), in.all().end(), -7);
  for (std::size_t i = 0; i < out.all().size(); ++i) {
    out.all()[i] = 1000000 * comm.rank() + static_cast<int>(i);
  }
  out.push(exec);
  in.push(exec);
  oktopk::detail::message_group<any> messages;
  messages.reset(8);
  oktopk::detail::cancel_on_unwind const guard(comm, messages.requests());
  auto const part = [&](bulk_numbers<int, E> const& of, std::size_t which, std::size_t count) {
    return of.bytes().subspan(which * capacity * sizeof(int), count * sizeof(int));
  };
  // The first group: one message of a size that the receiver knows, and one that takes less than its room.
  std::size_t const known =
      messages.receive(part(in, 0, capacity), before(comm), oktopk::phase::gather, oktopk::detail::message_size::known);
  std::size_t const open = messages.receive(part(in, 1, capacity), before(comm), oktopk::phase::reduce);
  messages.send(part(out, 0, capacity), next(comm), oktopk::phase::gather, oktopk::detail::message_size::known);
  messages.send(part(out, 1, 17), next(comm), oktopk::phase::reduce);
  messages.start(exec, comm, "oktopk::tests::start");
  // The second, before the first is complete.
  std::size_t const later = messages.receive(part(in, 2, capacity), before(comm), oktopk::phase::reduce);
  std::size_t const nothing = messages.receive(part(in, 3, capacity), before(comm), oktopk::phase::gather);
  messages.send(part(out, 2, 900), next(comm), oktopk::phase::reduce);
  messages.send(part(out, 2, 0), next(comm), oktopk::phase::gather);
  messages.start(exec, comm);
  messages.wait(comm, later);
  messages.wait(comm, known);
  messages.wait_all(comm);
  in.pull(exec);
  CHECK(messages.bytes(known) == static_cast<std::int64_t>(capacity * sizeof(int)));
  CHECK(messages.bytes(open) == static_cast<std::int64_t>(17 * sizeof(int)));
  CHECK(messages.bytes(later) == static_cast<std::int64_t>(900 * sizeof(int)));
  CHECK(messages.bytes(nothing) == 0);
  int const from = 1000000 * before(comm);
  auto const arrived = in.all();
  CHECK(arrived[0] == from);
  CHECK(arrived[capacity - 1] == from + static_cast<int>(capacity) - 1);
  CHECK(arrived[capacity + 16] == from + static_cast<int>(capacity) + 16);
  CHECK(arrived[capacity + 17] == -7);
  CHECK(arrived[2 * capacity + 899] == from + static_cast<int>(2 * capacity) + 899);
  CHECK(arrived[2 * capacity + 900] == -7);
  CHECK(arrived[3 * capacity] == -7);
}

template <class E, class Value>
void reduce(E const& exec, any& comm, bulk_numbers<Value, E> const& numbers, oktopk::reduction op, oktopk::phase use) {
  numbers.push(exec);
  exec.fence();
  comm.allreduce(std::span<Value>(numbers.view.data(), numbers.view.extent(0)), op, use);
  numbers.pull(exec);
}

/// The same bits on all ranks.
template <class Value>
void check_same_everywhere(any comm, std::span<Value const> values) {
  using pattern = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;
  std::vector<pattern> least;
  for (Value const each : values) {
    least.push_back(std::bit_cast<pattern>(each));
  }
  std::vector<pattern> most = least;
  oktopk::collective_workspace workspace;
  oktopk::allreduce_integers(comm, std::span(least), oktopk::reduction::min, oktopk::phase::control, workspace);
  oktopk::allreduce_integers(comm, std::span(most), oktopk::reduction::max, oktopk::phase::control, workspace);
  CHECK(least == most);
}

/// Bulk 7: a sum, a minimum and a maximum on all ranks, with the same bits.
template <class Value, class E>
void check_allreduce(any comm) {
  E const exec;
  auto const ranks = static_cast<Value>(comm.size());
  auto const mine = static_cast<Value>(comm.rank());
  for (std::size_t const count : {std::size_t(0), std::size_t(1), std::size_t(1000)}) {
    bulk_numbers<Value, E> const numbers(count);
    auto const all_become = [&](Value put, oktopk::reduction op, oktopk::phase use, Value expected) {
      std::fill(numbers.all().begin(), numbers.all().end(), put);
      reduce(exec, comm, numbers, op, use);
      return std::all_of(numbers.all().begin(), numbers.all().end(), [&](Value each) { return each == expected; });
    };
    CHECK(all_become(mine, oktopk::reduction::sum, oktopk::phase::reduce, ranks * (ranks - 1) / 2));
    CHECK(all_become(mine, oktopk::reduction::max, oktopk::phase::control, ranks - 1));
    CHECK(all_become(mine - 3, oktopk::reduction::min, oktopk::phase::control, -3));
  }
  // Sums that depend on the order of their terms.
  bulk_numbers<Value, E> const numbers(257);
  for (std::size_t i = 0; i < numbers.all().size(); ++i) {
    numbers.all()[i] = static_cast<Value>(1) / (static_cast<Value>(i) + mine * 3 + 1);
  }
  reduce(exec, comm, numbers, oktopk::reduction::sum, oktopk::phase::reduce);
  check_same_everywhere<Value>(comm, numbers.all());
}

/// Bulk 7: NaN of one rank and of several, zeros of both signs and infinities reach all ranks, with the same bits; in
/// short and in long vectors.
template <class Value, class E>
void check_special_values(any comm) {
  using pattern = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;
  E const exec;
  Value const nan = std::numeric_limits<Value>::quiet_NaN();
  Value const inf = std::numeric_limits<Value>::infinity();
  int const last = comm.size() - 1;
  for (std::size_t const count : {std::size_t(1), std::size_t(17), std::size_t(20001)}) {
    for (oktopk::reduction const op : {oktopk::reduction::max, oktopk::reduction::min}) {
      bool const max = op == oktopk::reduction::max;
      auto const first = static_cast<Value>(comm.rank());
      std::vector<Value> const mine = {
          comm.rank() == 0 ? nan : first,
          comm.rank() == last ? -nan : first,                                              // each of one rank
          std::bit_cast<Value>(std::bit_cast<pattern>(nan) + static_cast<pattern>(first)), // another one on each
          comm.rank() == last ? Value(-0.0) : Value(0),
          comm.rank() == 0 ? Value(-0.0) : Value(0),
          comm.rank() == last ? (max ? inf : -inf) : first,
          comm.rank() == 0 ? (max ? -inf : inf) : first};
      bulk_numbers<Value, E> const numbers(count);
      for (std::size_t shift = 0; shift < mine.size(); ++shift) {
        for (std::size_t i = 0; i < count; ++i) {
          numbers.all()[i] = mine[(i + shift) % mine.size()];
        }
        reduce(exec, comm, numbers, op, oktopk::phase::reduce);
        std::string wrong;
        for (std::size_t i = 0; i < count; ++i) {
          Value const got = numbers.all()[i];
          std::size_t const which = (i + shift) % mine.size();
          bool const right = which < 3    ? std::isnan(got)
                             : which < 5  ? got == 0 && std::signbit(got) == (!max || comm.size() == 1) // alone: -0
                             : which == 5 ? got == (max ? inf : -inf)
                                          : got == (comm.size() == 1 ? mine[6] : Value(max ? last : 1));
          if (!right) {
            wrong += " " + std::to_string(which) + " at " + std::to_string(i);
          }
        }
        CHECK(wrong.substr(0, 100) == "");
        check_same_everywhere<Value>(comm, numbers.all());
      }
    }
  }
}

/// What is wrong when a rank goes on with a communicator that it has left.
template <class Comm>
void check_left(Comm comm, int to, int from) {
  int number = 0;
  float sum = 0;
  for (outcome const& each :
       {outcome_of([&] { comm.isend(bytes_of(number), to, oktopk::phase::control); }),
        outcome_of([&] { comm.irecv(space_in(number), from, oktopk::phase::control); }),
        outcome_of([&] { comm.allreduce(std::span(&sum, 1), oktopk::reduction::sum, oktopk::phase::control); })}) {
    CHECK(unlike(each, oktopk::fault::communication,
                 "rank " + std::to_string(comm.rank()) + " left a collective by an exception") == "");
    CHECK(each.says("cannot be used any more"));
  }
}

/// Control 4 and bulk 6: after a cancellation nothing is active, and every copy refuses to start a message and says
/// why. The ranks leave together, so that nobody waits; who comes late may hear that another one has left.
template <class E>
void check_cancellation(any comm) {
  if (comm.size() == 1) {
    return;
  }
  any copy(comm);
  int number = 0;
  any::request never;
  outcome const posted =
      outcome_of([&] { never = comm.irecv(space_in(number), before(comm), oktopk::phase::balance); });
  CHECK((posted.code == oktopk::fault::none || posted.code == oktopk::fault::abandoned));
  comm.cancel(std::span(&never, 1));
  CHECK_FALSE(never.active());
  comm.cancel(std::span(&never, 1)); // again, for nothing
  auto const refuses = [&](auto const& attempt) {
    outcome const heard = outcome_of(attempt);
    CHECK((heard.code == oktopk::fault::communication || heard.code == oktopk::fault::abandoned));
    CHECK(heard.says("cannot be used any more"));
  };
  bulk_numbers<float, E> one(1);
  refuses([&] { copy.isend(bytes_of(number), next(comm), oktopk::phase::control); });
  refuses([&] { copy.irecv(space_in(number), before(comm), oktopk::phase::control); });
  refuses([&] { copy.allreduce(std::span<float>(one.view.data(), 1), oktopk::reduction::sum, oktopk::phase::reduce); });
  refuses([&] {
    oktopk::bulk_message const message{one.bytes(), before(comm), oktopk::phase::reduce, true};
    any::request request;
    copy.start(E(), std::span(&message, 1), std::span(&request, 1));
  });
}

/// All that `communicator` promises; see comm/concept.hpp. Bulk messages lie in the memory of `E`.
template <class E = Kokkos::DefaultHostExecutionSpace, class Launch>
void check_communicator(Launch const& launch) {
  launch([]<oktopk::communicator Comm>(Comm comm) { check_ranks(comm); });
  launch([]<oktopk::communicator Comm>(Comm comm) { check_order(comm); });
  void (*const checks[])(any) = {check_all_to_all,
                                 check_collectives,
                                 check_groups<E>,
                                 check_allreduce<float, E>,
                                 check_allreduce<double, E>,
                                 check_special_values<float, E>,
                                 check_special_values<double, E>,
                                 check_cancellation<E>};
  for (auto const check : checks) {
    launch([check]<oktopk::communicator Comm>(Comm comm) { check(any(std::move(comm))); });
  }
}

} // namespace oktopk_tests::communicating

namespace oktopk_tests {

using communicating::check_communicator;

} // namespace oktopk_tests
