// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What `counted` says is what was sent: the numbers that volume claims rest on.

#include "comm/testing.hpp"
#include "support/unreachable.hpp"

#include <oktopk/comm/self.hpp>

using namespace oktopk_tests;

namespace {

void expect(oktopk::traffic const& t, std::int64_t messages_sent, std::int64_t bytes_sent,
            std::int64_t messages_received, std::int64_t bytes_received) {
  CHECK(t.messages_sent == messages_sent);
  CHECK(t.bytes_sent == bytes_sent);
  CHECK(t.messages_received == messages_received);
  CHECK(t.bytes_received == bytes_received);
}

template <class Comm>
void send_bytes(Comm& comm, std::size_t count, int to, phase use) {
  std::vector<std::byte> const bytes(count);
  auto one = comm.isend(bytes, to, use);
  comm.wait_all(std::span(&one, 1));
}

template <class Comm>
void receive_bytes(Comm& comm, std::size_t capacity, int from, phase use) {
  std::vector<std::byte> bytes(capacity);
  auto one = comm.irecv(bytes, from, use);
  comm.wait_all(std::span(&one, 1));
}

} // namespace

TEST_CASE_ON(inner, 2,
             "messages and bytes are counted per phase, both ways, by what arrives and not by the room for it") {
  counted comm(inner);
  CHECK(comm.rank() == inner.rank());
  CHECK(comm.size() == 2);
  if (comm.rank() == 0) {
    send_bytes(comm, 3, 1, phase::control);
    send_bytes(comm, 10, 1, phase::reduce);
    send_bytes(comm, 20, 1, phase::reduce);
    send_bytes(comm, 0, 1, phase::reduce); // an empty message is a message
    receive_bytes(comm, 500, 1, phase::gather);
    expect(comm.of_phase(phase::control), 1, 3, 0, 0);
    expect(comm.of_phase(phase::reduce), 3, 30, 0, 0);
    expect(comm.of_phase(phase::gather), 0, 0, 1, 7);
    expect(comm.total(), 4, 33, 1, 7);
  } else {
    receive_bytes(comm, 100, 0, phase::control);
    receive_bytes(comm, 100, 0, phase::reduce);
    receive_bytes(comm, 20, 0, phase::reduce);
    receive_bytes(comm, 8, 0, phase::reduce);
    send_bytes(comm, 7, 0, phase::gather);
    expect(comm.of_phase(phase::control), 0, 0, 1, 3);
    expect(comm.of_phase(phase::reduce), 0, 0, 3, 30);
    expect(comm.of_phase(phase::gather), 1, 7, 0, 0);
    expect(comm.of_phase(phase::balance), 0, 0, 0, 0);
    CHECK(comm.total().words_sent() == 7.0 / 4);
    CHECK(comm.total().words_received() == 33.0 / 4);
  }
  CHECK(comm.modelled() == 0);
}

TEST_CASE_ON(inner, 2, "a receive is counted once, however often one waits") {
  counted comm(inner);
  std::array<std::byte, 16> bytes{};
  std::vector<counted::request> all(6); // the first and last stay inactive
  for (std::size_t i = 1; i < 5; ++i) {
    all[i] = comm.rank() == 0 ? comm.isend(std::span(bytes).first(i), 1, phase::reduce)
                              : comm.irecv(std::span(bytes).subspan(4 * (i - 1), 4), 0, phase::reduce);
  }
  std::int64_t const arrived = comm.rank();
  CHECK(comm.of_phase(phase::reduce).messages_received == 0);
  comm.wait_all(std::span(all).first(2));
  CHECK(comm.of_phase(phase::reduce).messages_received == arrived);
  comm.wait_all(all);
  expect(comm.total(), 4 - 4 * arrived, 10 - 10 * arrived, 4 * arrived, 10 * arrived);
  comm.wait_all(all);
  expect(comm.total(), 4 - 4 * arrived, 10 - 10 * arrived, 4 * arrived, 10 * arrived);
  for (counted::request const& each : all) {
    CHECK_FALSE(each.active());
  }
}

TEST_CASE_ON(inner, 2, "copies share counters, others have their own, and reset clears all") {
  counted comm(inner);
  counted copy = comm;
  counted other(inner);
  counted around(other.inner());
  for (counted* each : {&comm, &copy, &other}) {
    pass_around(*each, 1);
  }
  expect(comm.total(), 2, 8, 2, 8);
  expect(copy.total(), 2, 8, 2, 8);
  expect(other.total(), 1, 4, 1, 4);
  expect(around.total(), 0, 0, 0, 0);
  float x = 1;
  copy.allreduce(std::span<float>(&x, 1), reduction::sum, phase::reduce);
  CHECK(comm.modelled() > 0);
  copy.reset();
  expect(comm.total(), 0, 0, 0, 0);
  CHECK(comm.modelled() == 0);
  expect(other.total(), 1, 4, 1, 4);
}

TEST_CASE("what all ranks send is what all ranks receive") {
  constexpr int ranks = 5;
  std::array<oktopk::traffic, oktopk::phase_count> all{};
  oktopk::in_process::run(ranks, [&](in_process_communicator inner) {
    counted comm(inner);
    for (int p = 0; p < oktopk::phase_count; ++p) {
      auto const use = static_cast<phase>(p);
      std::vector<std::byte> out(static_cast<std::size_t>(10 * comm.rank() + p));
      std::vector<std::byte> in(100);
      std::vector<counted::request> both(2);
      both[0] = comm.isend(out, (comm.rank() + 1 + p % 4) % ranks, use);
      both[1] = comm.irecv(in, (comm.rank() + ranks - 1 - p % 4) % ranks, use);
      comm.wait_all(both);
      all[static_cast<std::size_t>(p)] += comm.of_phase(use);
    }
  });
  for (int p = 0; p < oktopk::phase_count; ++p) {
    expect(all[static_cast<std::size_t>(p)], ranks, 100 + ranks * p, ranks, 100 + ranks * p);
  }
}

TEST_CASE("the communicator's own allreduce is counted as the least it can cost, and marked as that") {
  constexpr std::int64_t count = 5040; // a multiple of every number of ranks but 13
  for (int const ranks : rank_counts) {
    oktopk::in_process::run(ranks, [&](in_process_communicator inner) {
      counted comm(inner);
      std::vector<double> numbers(count, 1);
      comm.allreduce(std::span<double>(numbers), reduction::sum, phase::reduce);
      CHECK(numbers.back() == ranks);
      double const bytes = 2.0 * 8 * count * (ranks - 1) / ranks;
      CHECK(static_cast<double>(comm.modelled()) <= bytes);
      CHECK(static_cast<double>(comm.modelled()) > bytes - ranks);
      expect(comm.of_phase(phase::reduce), 2 * doublings(ranks), comm.modelled(), 2 * doublings(ranks),
             comm.modelled());
      CHECK(comm.total().bytes_sent == comm.modelled());
    });
  }
}

TEST_CASE("what is counted may be counted again, and says what it can reach") {
  oktopk::in_process::run(2, [](in_process_communicator inner) {
    counted middle(inner);
    oktopk::counted<counted> outer(middle);
    CHECK(pass_around(outer, outer.rank()) == 1 - outer.rank());
    expect(outer.total(), 1, sizeof(int), 1, sizeof(int));
    expect(middle.total(), 1, sizeof(int), 1, sizeof(int));
    CHECK(outer.can_access<Kokkos::HostSpace>());
  });
  using far = unreachable<oktopk::self_communicator>;
  CHECK_FALSE(oktopk::counted<far>(far(oktopk::self_communicator())).can_access<Kokkos::HostSpace>());
}
