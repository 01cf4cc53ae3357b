// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The allreduce that a checked communicator makes of messages: results, the same bits on all ranks, and what it sends.

#include "support/catch.hpp"
#include "support/reduced.hpp"
#include "support/seeded.hpp"

#include <oktopk/comm/checked.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

using namespace oktopk_tests;
using oktopk::in_process_communicator;
using oktopk::phase;
using oktopk::reduction;

namespace {

template <class T>
std::vector<T> numbers_of(int rank, std::size_t count) {
  seeded draw(static_cast<std::uint64_t>(rank) + 1);
  std::vector<T> numbers(count);
  for (T& x : numbers) {
    x = static_cast<T>(static_cast<std::int64_t>(draw.next() >> 44) - (std::int64_t(1) << 19)); // sums are exact
  }
  return numbers;
}

template <class T>
void check_reductions(int ranks, std::size_t count) {
  for (reduction const op : {reduction::sum, reduction::min, reduction::max}) {
    auto const expected = reduced(ranks, op, [&](int rank) { return numbers_of<T>(rank, count); });
    oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
      INFO(ranks << " ranks, " << count << " numbers");
      auto data = numbers_of<T>(comm.rank(), count);
      std::vector<T> room;
      oktopk::detail::reduce_in_ring(comm, std::span(data), op, phase::control, room);
      CHECK(data == expected);
    });
  }
}

} // namespace

TEST_CASE("a reduction in a ring is that of all ranks, whatever their number and the length") {
  for (int const ranks : {1, 2, 3, 4, 7}) {
    for (std::size_t const count : {0U, 1U, 2U, 3U, 6U, 7U, 8U, 100U}) {
      check_reductions<double>(ranks, count);
      check_reductions<std::int64_t>(ranks, count);
    }
  }
}

TEST_CASE("a reduction in a ring gives all ranks the same bits, where sums are rounded") {
  std::vector<std::vector<float>> results(5);
  oktopk::in_process::run(5, [&](in_process_communicator comm) {
    seeded draw(static_cast<std::uint64_t>(comm.rank()) + 9);
    std::vector<float> data(1000);
    std::generate(data.begin(), data.end(), [&] { return static_cast<float>(draw.next() >> 40) * 1e-3F; });
    std::vector<float> room;
    oktopk::detail::reduce_in_ring(comm, std::span(data), reduction::sum, phase::control, room);
    results[static_cast<std::size_t>(comm.rank())] = data;
  });
  for (auto const& each : results) {
    CHECK(each == results[0]);
  }
}

TEST_CASE("a reduction in a ring sends 2n(P-1)/P elements in 2(P-1) messages") {
  for (int const ranks : {1, 2, 3, 8}) {
    oktopk::in_process::run(ranks, [&](in_process_communicator inner) {
      oktopk::counted comm(inner);
      std::size_t const count = 240; // a multiple of each number of ranks
      auto data = numbers_of<double>(comm.rank(), count);
      std::vector<double> room;
      oktopk::detail::reduce_in_ring(comm, std::span(data), reduction::sum, phase::reduce, room);
      auto const sent = comm.of_phase(phase::reduce);
      auto const others = static_cast<std::size_t>(ranks - 1);
      CHECK(static_cast<std::size_t>(sent.bytes_sent) ==
            2 * count * others / static_cast<std::size_t>(ranks) * sizeof(double));
      CHECK(static_cast<std::size_t>(sent.messages_sent) == 2 * others);
      CHECK(room.size() == count / static_cast<std::size_t>(ranks) + 1);
    });
  }
}
