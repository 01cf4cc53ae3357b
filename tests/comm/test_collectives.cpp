// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Collectives for control data: results, and what they send is what their documentation says.

#include "comm/testing.hpp"
#include "support/seeded.hpp"

#include <oktopk/comm/collectives.hpp>

using namespace oktopk_tests;

namespace {

// Any bits for unsigned types, whose sums wrap; for signed ones of both signs, and small enough that no sum overflows.
template <class T>
std::vector<T> mixed_integers(int rank, std::size_t count) {
  seeded draw(static_cast<std::uint64_t>(rank) + 1);
  std::vector<T> numbers(count);
  for (T& x : numbers) {
    if constexpr (std::numeric_limits<T>::is_signed) {
      constexpr int bits = 8 * static_cast<int>(sizeof(T));
      x = static_cast<T>(static_cast<T>(draw.next() >> (64 - bits + 6)) - (T(1) << (bits - 8)));
    } else {
      x = static_cast<T>(draw.next());
    }
  }
  return numbers;
}

// Messages a rank sends in a recursive doubling over `ranks`: the odd ones of the folded pairs send once and have the
// even ones act for them.
int messages_in_allreduce(int rank, int ranks) {
  int rounds = 0;
  while ((2 << rounds) <= ranks) {
    rounds += 1;
  }
  int const folded = ranks - (1 << rounds);
  if (rank >= 2 * folded) {
    return rounds;
  }
  return rank % 2 == 1 ? 1 : rounds + 1;
}

} // namespace

TEST_CASE("exchange sends to one peer and receives from another at once") {
  std::vector<std::int64_t> heard(5);
  oktopk::in_process::run(5, [&](in_process_communicator comm) {
    std::int64_t const mine = comm.rank();
    std::span<std::int64_t> const in(&heard[static_cast<std::size_t>(comm.rank())], 1);
    oktopk::detail::exchange(comm, std::as_bytes(std::span(&mine, 1)), (comm.rank() + 2) % 5,
                             std::as_writable_bytes(in), (comm.rank() + 3) % 5, phase::balance);
  });
  CHECK(heard == std::vector<std::int64_t>{3, 4, 0, 1, 2});
}

TEMPLATE_TEST_CASE("allgather gives every rank all parts in rank order", "", char, std::int64_t) {
  for (int const ranks : rank_counts) {
    for (std::size_t const width : {std::size_t(0), std::size_t(1), std::size_t(5)}) {
      std::vector<TestType> expected;
      for (int rank = 0; rank < ranks; ++rank) {
        auto const part = mixed_integers<TestType>(rank, width);
        expected.insert(expected.end(), part.begin(), part.end());
      }
      oktopk::in_process::run(ranks, [&](in_process_communicator inner) {
        counted comm(inner);
        oktopk::collective_workspace workspace;
        auto const mine = mixed_integers<TestType>(comm.rank(), width);
        std::vector<TestType> all(expected.size());
        oktopk::allgather(comm, std::span<TestType const>(mine), std::span<TestType>(all), phase::threshold, workspace);
        CHECK(all == expected);
        CHECK(comm.total().messages_sent == doublings(ranks));
        CHECK(comm.total().messages_received == doublings(ranks));
        CHECK(comm.total().bytes_sent == (ranks - 1) * static_cast<std::int64_t>(width * sizeof(TestType)));
        CHECK(comm.total().bytes_received == comm.total().bytes_sent);
        CHECK(comm.of_phase(phase::threshold).messages_sent == comm.total().messages_sent);
      });
    }
  }
}

TEMPLATE_TEST_CASE("allreduce_integers combines element by element, the same everywhere", "", std::uint16_t,
                   std::int32_t, std::uint32_t, std::int64_t, std::uint64_t) {
  constexpr std::size_t count = 19;
  for (int const ranks : rank_counts) {
    for (reduction const op : {reduction::sum, reduction::min, reduction::max}) {
      auto const expected = reduced(ranks, op, [](int rank) { return mixed_integers<TestType>(rank, count); });
      oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
        oktopk::collective_workspace workspace;
        auto mine = mixed_integers<TestType>(comm.rank(), count);
        oktopk::allreduce_integers(comm, std::span<TestType>(mine), op, phase::partition, workspace);
        CHECK(mine == expected);
      });
    }
  }
}

TEST_CASE("allreduce_integers sends as many messages as its documentation says, each of the whole span") {
  constexpr std::int64_t count = 6;
  for (int const ranks : rank_counts) {
    CAPTURE(ranks);
    double most = 0;
    oktopk::in_process::run(ranks, [&](in_process_communicator inner) {
      counted comm(inner);
      oktopk::collective_workspace workspace;
      std::vector<std::int64_t> mine(count, 1);
      oktopk::allreduce_integers(comm, std::span(mine), reduction::sum, phase::partition, workspace);
      CHECK(mine == std::vector<std::int64_t>(count, ranks));
      int const messages = messages_in_allreduce(comm.rank(), ranks);
      CHECK(comm.total().messages_sent == messages);
      CHECK(comm.total().bytes_sent == messages * count * 8);
      CHECK(comm.of_phase(phase::partition).bytes_sent == comm.total().bytes_sent);
      most = std::max(most, comm.total().words_sent());
    });
    CHECK(most == oktopk::detail::allreduce_words_at_most(ranks, count));
  }
}

TEST_CASE_ON(comm, 5, "collectives follow each other in one workspace, of other types and sizes") {
  oktopk::collective_workspace workspace;
  for (std::size_t round = 1; round < 30; ++round) {
    std::vector<std::uint16_t> narrow(round % 7, static_cast<std::uint16_t>(comm.rank()));
    oktopk::allreduce_integers(comm, std::span<std::uint16_t>(narrow), reduction::max, phase::control, workspace);
    REQUIRE(narrow == std::vector<std::uint16_t>(round % 7, 4));
    std::vector<std::int64_t> const mine(round * round % 11, comm.rank());
    std::vector<std::int64_t> all(5 * mine.size());
    oktopk::allgather(comm, std::span<std::int64_t const>(mine), std::span<std::int64_t>(all), phase::control,
                      workspace);
    REQUIRE(std::is_sorted(all.begin(), all.end()));
    REQUIRE((all.empty() || (all.front() == 0 && all.back() == 4)));
  }
}

TEST_CASE("the workspace keeps its room, aligned for any number") {
  oktopk::collective_workspace workspace;
  auto const large = workspace.space<double>(1000);
  CHECK(large.size() == 1000);
  CHECK(reinterpret_cast<std::uintptr_t>(large.data()) % alignof(std::max_align_t) == 0);
  auto const small = workspace.space<char>(8000);
  CHECK(small.size() == 8000);
  CHECK(static_cast<void*>(small.data()) == static_cast<void*>(large.data()));
  auto const more = workspace.space<std::uint16_t>(4001);
  more.back() = 1;
  CHECK(more.size() == 4001);
}

TEST_CASE("folded ranks share out the places of the core, each to one rank or to a pair") {
  for (int ranks = 1; ranks <= 70; ++ranks) {
    std::vector<int> folded(static_cast<std::size_t>(ranks), 0);
    std::vector<int> hosts(static_cast<std::size_t>(ranks), 0);
    int core = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      oktopk::detail::folded_ranks const at(rank, ranks);
      core = at.core;
      REQUIRE((at.core & (at.core - 1)) == 0);
      REQUIRE((at.core <= ranks && 2 * at.core > ranks));
      REQUIRE(at.core + at.folded == ranks);
      REQUIRE((at.place >= 0 && at.place < at.core));
      // A folded rank stays with the rank before it, which is at the same place and stands for both.
      REQUIRE(at.rank_at(at.place) == (at.is_folded ? rank - 1 : rank));
      REQUIRE((at.in_pair || !at.is_folded));
      REQUIRE(at.in_pair == (at.place < at.folded));
      (at.is_folded ? folded : hosts)[static_cast<std::size_t>(at.place)] += 1;
    }
    for (int place = 0; place < core; ++place) {
      CHECK(hosts[static_cast<std::size_t>(place)] == 1);
      CHECK(folded[static_cast<std::size_t>(place)] == (place < ranks - core ? 1 : 0));
    }
  }
}

namespace {

// That nobody leaves before all have come: ranks come one after the other, each when the one below has.
template <class Barrier>
std::vector<oktopk::traffic> check_barrier(int ranks, Barrier const& barrier) {
  std::vector<oktopk::traffic> sent(static_cast<std::size_t>(ranks));
  int came = 0;
  oktopk::in_process::run(ranks, [&](in_process_communicator inner) {
    counted comm(inner);
    int token = 0;
    if (inner.rank() > 0) {
      receive_number<int>(inner, inner.rank() - 1, phase::balance);
    }
    came += 1;
    request next;
    if (inner.rank() + 1 < ranks) {
      next = inner.isend(bytes_of(token), inner.rank() + 1, phase::balance);
    }
    barrier(comm);
    CHECK(came == ranks);
    inner.wait_all(std::span(&next, 1));
    sent[static_cast<std::size_t>(inner.rank())] = comm.total();
  });
  return sent;
}

} // namespace

TEST_CASE("nobody leaves a barrier before all have come: a byte to all others, or one to the root and one from it") {
  for (int const ranks : rank_counts) {
    int const root = ranks / 2;
    auto const to_all = check_barrier(ranks, [](counted& comm) { oktopk::detail::barrier_all_to_all(comm); });
    auto const to_one = check_barrier(ranks, [&](counted& comm) { oktopk::detail::barrier_all_to_one(comm, root); });
    for (int rank = 0; rank < ranks; ++rank) {
      auto const at = static_cast<std::size_t>(rank);
      CHECK((to_all[at].messages_sent == ranks - 1 && to_all[at].bytes_sent == ranks - 1));
      CHECK(to_all[at].bytes_received == ranks - 1);
      std::int64_t const expected = rank == root ? ranks - 1 : 1;
      CHECK((to_one[at].messages_sent == expected && to_one[at].bytes_sent == expected));
    }
  }
}
