// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "exchange/gather_suite.hpp"
#include "exchange/parts.hpp"

#include <oktopk/exchange/ring.hpp>

using namespace oktopk_tests;
using oktopk::ring_allgatherv;

namespace {

/// What each rank sends and receives for parts of these sizes.
template <class Format = oktopk::coo<>>
std::vector<oktopk::traffic> traffic_of(std::vector<std::int64_t> const& sizes) {
  std::vector<oktopk::traffic> all(sizes.size());
  auto const parts = random_parts<float>(sizes, 5);
  oktopk::in_process::run(static_cast<int>(sizes.size()), [&](oktopk::in_process_communicator inner) {
    counting comm(inner);
    ring_allgatherv::step<execution, counting, Format> step{ring_allgatherv()};
    device_part<Format> const mine(parts[static_cast<std::size_t>(comm.rank())]);
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

TEST_CASE("a ring passes on the bytes that a piece has, not its room, where a format does not fix them") {
  std::vector<std::int64_t> const sizes{40, 40, 40, 40};
  auto const parts = random_parts<float>(sizes, 5);
  std::vector<std::int64_t> bytes;
  for (auto const& part : parts) {
    device_part<oktopk::packed<>> const given(part);
    std::vector<std::byte> room(1000);
    std::int64_t const encoded =
        oktopk::packed<>().encode(execution(), given.entries, {0, length_of_parts}, room.data());
    bytes.push_back(oktopk::message_header_bytes + oktopk::detail::round_up_to_8(encoded));
  }
  std::int64_t const all = std::accumulate(bytes.begin(), bytes.end(), std::int64_t(0));
  auto const seen = traffic_of<oktopk::packed<>>(sizes);
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    CHECK(seen[rank].bytes_sent == all - bytes[(rank + 1) % sizes.size()]);
  }
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
