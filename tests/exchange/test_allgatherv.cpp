// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "exchange/parts.hpp"
#include "support/call.hpp"
#include "support/catch.hpp"

#include <oktopk/exchange/allgatherv.hpp>
#include <oktopk/format/packed.hpp>

#include <numeric>

using namespace oktopk_tests;

namespace {

template <class Format>
void check_sizes(std::vector<std::int64_t> const& sizes, std::uint64_t seed) {
  using value_type = typename Format::value_type;
  INFO("sizes " << Catch::Detail::stringify(sizes));
  auto const parts = random_parts<value_type>(sizes, seed);
  std::vector<sparse_vector<value_type>> gathered(sizes.size());
  std::vector<oktopk::traffic> traffic(sizes.size());
  oktopk::in_process::run(static_cast<int>(sizes.size()), [&](oktopk::in_process_communicator comm) {
    auto const rank = static_cast<std::size_t>(comm.rank());
    counting counted(comm);
    oktopk::allgatherv<execution, counting, Format> gather;
    for (int repeat = 0; repeat < 2; ++repeat) { // the second time in used buffers
      counted.reset();
      device_part<Format> const mine(parts[rank]);
      auto call = call_on(counted, length_of_parts);
      gathered[rank] = entries_of(gather.run(call, mine.entries, std::span<std::int64_t const>(sizes)));
      traffic[rank] = counted.total();
    }
  });
  std::int64_t log_ranks = 0;
  for (std::size_t reach = 1; reach < sizes.size(); reach *= 2) {
    log_ranks += 1;
  }
  auto const everything = joined(parts);
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    CHECK((gathered[rank] == everything));
    CHECK(traffic[rank].messages_sent <= log_ranks);
    // Parts start at multiples of 8 bytes on the wire, which every entry of these formats takes.
    CHECK(traffic[rank].bytes_sent == oktopk::detail::allgatherv_entries_sent(sizes, rank) * Format::entry_bytes);
  }
}

} // namespace

TEST_CASE("allgatherv gives everybody everything, and sends what it says") {
  for (std::uint64_t seed = 100; seed < 180; ++seed) {
    check_sizes<oktopk::coo<>>(random_sizes(seed), seed);
  }
}

TEST_CASE("allgatherv of even parts, of no parts, and of one part alone") {
  for (int const ranks : rank_counts) {
    auto const count = static_cast<std::size_t>(ranks);
    check_sizes<oktopk::coo<>>(std::vector<std::int64_t>(count, 7), 1);
    check_sizes<oktopk::coo<>>(std::vector<std::int64_t>(count, 0), 2);
    std::vector<std::int64_t> one(count, 0);
    one[count / 2] = 33;
    check_sizes<oktopk::coo<>>(one, 3);
    // Even parts cost each rank all parts but its own.
    for (std::size_t rank = 0; rank < count; ++rank) {
      CHECK(oktopk::detail::allgatherv_entries_sent(std::vector<std::int64_t>(count, 7), rank) == 7 * (ranks - 1));
    }
  }
}

TEST_CASE("allgatherv with wide entries") {
  for (std::uint64_t seed = 200; seed < 210; ++seed) {
    check_sizes<oktopk::coo<double, std::int64_t>>(random_sizes(seed), seed);
  }
}

TEST_CASE("allgatherv of a format of open size: sizes travel with the parts, in no message more") {
  using packed = oktopk::packed<>;
  for (std::uint64_t seed = 300; seed < 340; ++seed) {
    auto const sizes = random_sizes(seed);
    auto const parts = random_parts<float>(sizes, seed);
    oktopk::in_process::run(static_cast<int>(sizes.size()), [&](oktopk::in_process_communicator comm) {
      device_part<packed> const mine(parts[static_cast<std::size_t>(comm.rank())]);
      counting with_coo(comm);
      counting with_packed(comm);
      oktopk::allgatherv<execution, counting, oktopk::coo<>> coo_gather;
      oktopk::allgatherv<execution, counting, packed> packed_gather;
      auto coo_call = call_on(with_coo, length_of_parts);
      auto packed_call = call_on(with_packed, length_of_parts);
      coo_gather.run(coo_call, mine.entries, std::span<std::int64_t const>(sizes));
      auto const all = entries_of(packed_gather.run(packed_call, mine.entries, std::span<std::int64_t const>(sizes)));
      CHECK((all == joined(parts)));
      CHECK(with_packed.total().messages_sent == with_coo.total().messages_sent);
      CHECK(with_packed.total().messages_sent == with_packed.of_phase(oktopk::phase::gather).messages_sent);
    });
  }
}

TEST_CASE("encoded pieces that cannot be as long as they say are an error") {
  using packed = oktopk::packed<>;
  execution const exec;
  oktopk::in_process::run(1, [&](oktopk::in_process_communicator comm) {
    oktopk::detail::message_buffer<execution> buffer("buffer");
    buffer.reserve(exec, comm, 64);
    oktopk::detail::encoded_pieces<execution, packed> const pieces{packed()};
    oktopk::region const where{0, 1000};
    auto const refused = [&](std::uint64_t stated, std::int64_t available) {
      buffer.put(exec, 0, stated);
      try {
        pieces.encoded_bytes(exec, 2, where, buffer, 0, available);
      } catch (oktopk::error const& caught) {
        return caught.code() == oktopk::fault::damaged_message;
      }
      return false;
    };
    CHECK(!refused(24, 32));
    CHECK(refused(25, 32));                // the message is shorter
    CHECK(refused(~std::uint64_t(0), 64)); // no size at all
    CHECK(refused(static_cast<std::uint64_t>(packed().max_encoded_bytes(2, where)) + 1,
                  64));   // more than two entries take
    CHECK(refused(0, 4)); // no room for the header
  });
}
