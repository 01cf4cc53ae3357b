// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "exchange/gather_suite.hpp"
#include "exchange/parts.hpp"

#include <oktopk/exchange/ring.hpp>

using namespace oktopk_tests;
using oktopk::ring_allgatherv;

namespace {

/// What each rank sends and receives for parts of these sizes.
std::vector<oktopk::traffic> traffic_of(std::vector<std::int64_t> const& sizes) {
  std::vector<oktopk::traffic> all(sizes.size());
  auto const parts = random_parts<float>(sizes, 5);
  oktopk::in_process::run(static_cast<int>(sizes.size()), [&](oktopk::in_process_communicator inner) {
    counting comm(inner);
    ring_allgatherv::step<execution, counting, oktopk::coo<>> step{ring_allgatherv()};
    device_part<oktopk::coo<>> const mine(parts[static_cast<std::size_t>(comm.rank())]);
    auto call = call_on(comm, length_of_parts);
    step.run(call, mine.entries, sizes);
    all[static_cast<std::size_t>(comm.rank())] = comm.total();
    std::int64_t const total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0));
    CHECK(comm.total().words_sent() <= step.bound_words(comm.size(), length_of_parts, total).total(comm));
  });
  return all;
}

} // namespace

TEST_CASE("ring_allgatherv keeps the contract of a gather") {
  check_gather<ring_allgatherv>();
}

TEST_CASE("a ring sends every entry once to every rank but its maker, in pieces of mean size") {
  for (std::vector<std::int64_t> const& sizes :
       {std::vector<std::int64_t>{40, 40, 40, 40}, {160, 0, 0, 0}, {0, 0, 90, 6, 0, 0, 0, 300}, {1, 2}, {0, 0, 0}}) {
    std::size_t const ranks = sizes.size();
    std::int64_t const total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0));
    std::int64_t const most = (total + static_cast<std::int64_t>(ranks) - 1) / static_cast<std::int64_t>(ranks);
    std::int64_t pieces = 0;
    for (std::int64_t const size : sizes) {
      pieces += size == 0 ? 0 : (size + most - 1) / most;
    }
    CHECK(pieces < 2 * static_cast<std::int64_t>(ranks));
    auto const seen = traffic_of(sizes);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      CAPTURE(sizes, rank);
      CHECK(seen[rank].bytes_sent == 8 * (total - sizes[(rank + 1) % ranks]));
      CHECK(seen[rank].bytes_received == 8 * (total - sizes[rank]));
      CHECK(seen[rank].messages_sent <= pieces);
    }
  }
}
