// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dense/suite.hpp"

#include <oktopk/comm/collectives.hpp>

using namespace oktopk_tests;

namespace {

// That nobody leaves before all have come: ranks come one after the other, each when the one below has.
template <class Barrier>
std::vector<oktopk::traffic> check_barrier(int ranks, Barrier const& barrier) {
  std::vector<oktopk::traffic> sent(static_cast<std::size_t>(ranks));
  int came = 0;
  std::vector<int> seen(static_cast<std::size_t>(ranks), -1);
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator inner) {
    counting comm(inner);
    std::byte token{};
    if (inner.rank() > 0) {
      auto turn = inner.irecv(std::span(&token, 1), inner.rank() - 1, oktopk::phase::balance);
      inner.wait_all(std::span(&turn, 1));
    }
    came += 1;
    oktopk::in_process_communicator::request next;
    if (inner.rank() + 1 < ranks) {
      next = inner.isend(std::span<std::byte const>(&token, 1), inner.rank() + 1, oktopk::phase::balance);
    }
    barrier(comm);
    seen[static_cast<std::size_t>(inner.rank())] = came;
    inner.wait_all(std::span(&next, 1));
    sent[static_cast<std::size_t>(inner.rank())] = comm.total();
  });
  CHECK(seen == std::vector<int>(static_cast<std::size_t>(ranks), ranks));
  return sent;
}

} // namespace

TEST_CASE("barrier_all_to_all: nobody leaves before all have come, a byte to everybody else") {
  for (int const ranks : rank_counts) {
    for (auto const& traffic : check_barrier(ranks, [](counting& comm) { oktopk::barrier_all_to_all(comm); })) {
      CHECK(traffic.messages_sent == ranks - 1);
      CHECK(traffic.bytes_sent == ranks - 1);
      CHECK(traffic.bytes_received == ranks - 1);
    }
  }
}

TEST_CASE("barrier_all_to_one: nobody leaves before all have come, a byte from each and one to each from the root") {
  for (int const ranks : rank_counts) {
    int const root = ranks / 2;
    auto const sent = check_barrier(ranks, [&](counting& comm) { oktopk::barrier_all_to_one(comm, root); });
    for (int rank = 0; rank < ranks; ++rank) {
      std::int64_t const expected = rank == root ? ranks - 1 : 1;
      CHECK(sent[static_cast<std::size_t>(rank)].messages_sent == expected);
      CHECK(sent[static_cast<std::size_t>(rank)].bytes_sent == expected);
    }
  }
}
