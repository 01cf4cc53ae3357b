// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "exchange/gather_suite.hpp"

#include <oktopk/exchange/allgatherv.hpp>

#include <bit>
#include <numeric>

using namespace oktopk_tests;
using oktopk::balanced_allgatherv;

namespace {

constexpr balanced_allgatherv::options never{.ratio = 1e9, .bound_sent = false, .message_entries = -1};

struct gather_outcome {
  std::vector<oktopk::traffic> sent; // of each rank
  bool balanced = false;
};

/// Gathers parts of these sizes, checks the result, and what is sent where parts are not balanced; tells what was sent.
template <class Format = oktopk::coo<>>
gather_outcome gather(std::vector<std::int64_t> const& sizes, balanced_allgatherv::options how, std::uint64_t seed) {
  INFO("sizes " << Catch::Detail::stringify(sizes));
  auto const parts = random_parts<typename Format::value_type>(sizes, seed);
  auto const everything = joined(parts);
  gather_outcome outcome{std::vector<oktopk::traffic>(sizes.size()), false};
  oktopk::in_process::run(static_cast<int>(sizes.size()), [&](oktopk::in_process_communicator comm) {
    auto const rank = static_cast<std::size_t>(comm.rank());
    counting counted(comm);
    balanced_allgatherv::step<execution, counting, Format> step{balanced_allgatherv(how)};
    device_part<Format> const mine(parts[rank]);
    auto call = call_on(counted, length_of_parts);
    auto const all = step.run(call, mine.entries, sizes);
    CHECK((entries_of(all.entries) == everything));
    auto const balance = counted.of_phase(oktopk::phase::balance);
    auto const gather = counted.of_phase(oktopk::phase::gather);
    outcome.sent[rank] = counted.total();
    outcome.balanced = all.balanced;
    CHECK(outcome.sent[rank].bytes_sent == balance.bytes_sent + gather.bytes_sent);
    CHECK((all.balanced || balance.messages_sent == 0));
    CHECK(gather.messages_sent <= static_cast<std::int64_t>(std::bit_width(sizes.size() - 1)));
    if constexpr (Format::exact_size) { // parts start at multiples of 8 bytes, which every entry of these formats takes
      CHECK((all.balanced ||
             gather.bytes_sent == oktopk::detail::allgatherv_entries_sent(sizes, rank) * Format::entry_bytes));
    }
  });
  return outcome;
}

/// The most words that a rank sends.
double most_sent(gather_outcome const& outcome) {
  double most = 0;
  for (oktopk::traffic const& each : outcome.sent) {
    most = std::max(most, each.words_sent());
  }
  return most;
}

/// 4k(P-1)/P words, and P-1 entries for parts that differ by one.
double most_words(std::vector<std::int64_t> const& sizes) {
  auto const ranks = static_cast<double>(sizes.size());
  auto const k = static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0)));
  return 4 * k * (ranks - 1) / ranks + 2 * (ranks - 1);
}

std::vector<std::int64_t> one_has_all(std::size_t ranks, std::size_t who, std::int64_t count) {
  std::vector<std::int64_t> sizes(ranks, 0);
  sizes[who] = count;
  return sizes;
}

bool wants_balance(balanced_allgatherv const& policy, std::vector<std::int64_t> const& sizes) {
  std::vector<oktopk::detail::transfer> scheme;
  return policy.plan(sizes, scheme);
}

} // namespace

TEST_CASE("balanced_allgatherv keeps the contract of a gather, whenever it balances") {
  check_gather<balanced_allgatherv>();
  check_gather<balanced_allgatherv>({.ratio = 1, .bound_sent = false, .message_entries = 0});
  check_gather<balanced_allgatherv>(never);
}

TEST_CASE("parts that are not balanced are forwarded in the messages and entries that are said") {
  for (std::uint64_t seed = 100; seed < 180; ++seed) {
    auto const sizes = random_sizes(seed);
    auto const coo = gather(sizes, never, seed);
    auto const packed = gather<oktopk::packed<>>(sizes, never, seed); // sizes travel with the parts
    CHECK_FALSE((coo.balanced || packed.balanced));
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      CHECK(packed.sent[rank].messages_sent == coo.sent[rank].messages_sent);
    }
  }
  for (int const ranks : rank_counts) {
    auto const count = static_cast<std::size_t>(ranks);
    gather(std::vector<std::int64_t>(count, 0), never, 2);
    gather<oktopk::coo<double, std::int64_t>>(one_has_all(count, count / 2, 33), never, 3);
    // Even parts cost each rank all parts but its own.
    for (auto const& each : gather(std::vector<std::int64_t>(count, 7), never, 1).sent) {
      CHECK(each.bytes_sent == 7 * (ranks - 1) * oktopk::coo<>::entry_bytes);
    }
  }
}

TEST_CASE("balanced_allgatherv balances when the largest part exceeds the ratio") {
  balanced_allgatherv const paper({.ratio = 4, .bound_sent = false});
  CHECK_FALSE(wants_balance(paper, std::vector<std::int64_t>{4, 0, 0, 0}));
  CHECK_FALSE(wants_balance(paper, std::vector<std::int64_t>{4, 0, 1, 0, 0}));
  CHECK(wants_balance(paper, std::vector<std::int64_t>{5, 0, 1, 0, 0}));
  CHECK_FALSE(wants_balance(paper, std::vector<std::int64_t>{0, 0, 0, 0, 0}));
  CHECK_FALSE(wants_balance(paper, std::vector<std::int64_t>{8}));
  balanced_allgatherv const strict({.ratio = 1, .bound_sent = false});
  CHECK_FALSE(wants_balance(strict, std::vector<std::int64_t>{3, 3, 3}));
  CHECK(wants_balance(strict, std::vector<std::int64_t>{3, 4, 3}));
}

TEST_CASE("balanced_allgatherv also balances where a rank would send more than twice its even share") {
  balanced_allgatherv const ours({.message_entries = 1 << 20}); // for no other reason
  // Rank 0 would forward its 300 entries twice: 600 > 2 x 75 x 3.
  CHECK(wants_balance(ours, std::vector<std::int64_t>{300, 0, 0, 0}));
  CHECK_FALSE(wants_balance(ours, std::vector<std::int64_t>{100, 100, 100, 0}));
  // With two ranks nobody forwards anything, so there is nothing to gain.
  CHECK_FALSE(wants_balance(ours, std::vector<std::int64_t>{300, 0}));
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    auto const sizes = random_sizes(seed);
    auto const total = static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0)));
    auto const ranks = static_cast<double>(sizes.size());
    bool over = false;
    double largest = 0;
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      over = over || static_cast<double>(oktopk::detail::allgatherv_entries_sent(sizes, rank)) >
                         2 * total * (ranks - 1) / ranks;
      largest = std::max(largest, static_cast<double>(sizes[rank]));
    }
    if (wants_balance(ours, sizes) != (over || largest > 4 * total / ranks)) {
      FAIL("sizes " << Catch::Detail::stringify(sizes));
    }
  }
}

TEST_CASE("balanced_allgatherv sends at most 4k(P-1)/P words whatever the parts are") {
  int balanced = 0;
  for (std::uint64_t seed = 300; seed < 400; ++seed) {
    auto const sizes = random_sizes(seed);
    gather_outcome const outcome = gather(sizes, {}, seed);
    CHECK(most_sent(outcome) <= most_words(sizes));
    balanced += outcome.balanced ? 1 : 0;
  }
  CHECK(balanced > 20); // both ways were taken
  CHECK(balanced < 90);
}

TEST_CASE("balanced_allgatherv keeps its bound where one rank has everything, or just not enough to balance") {
  for (int const ranks : rank_counts) {
    auto const count = static_cast<std::size_t>(ranks);
    for (std::size_t who = 0; who < count; ++who) {
      for (std::int64_t const k : {1, 2, 1000}) {
        auto const sizes = one_has_all(count, who, k);
        CHECK(most_sent(gather(sizes, {}, 1)) <= most_words(sizes));
      }
      // Two neighbours that hold as much as goes unbalanced.
      std::vector<std::int64_t> sizes(count, 10);
      sizes[who] = 60;
      sizes[(who + 1) % count] = 60;
      CHECK(most_sent(gather(sizes, {}, 2)) <= most_words(sizes));
    }
  }
}

TEST_CASE("balanced_allgatherv balances where that is quicker, and leaves small parts alone") {
  // One part of 32 is twice the others: in every step some rank forwards it.
  std::vector<std::int64_t> sizes(32, 20000);
  sizes[5] = 40000;
  std::vector<std::int64_t> const small(sizes.size(), 20);
  std::vector<std::int64_t> small_uneven = small;
  small_uneven[5] = 40;
  balanced_allgatherv const ours;
  CHECK(wants_balance(ours, sizes));
  CHECK_FALSE(wants_balance(ours, std::vector<std::int64_t>(32, 20000)));
  CHECK_FALSE(wants_balance(ours, small_uneven));
  CHECK_FALSE(wants_balance(balanced_allgatherv({.message_entries = -1}), sizes));
  CHECK_FALSE(wants_balance(balanced_allgatherv({.message_entries = 100000}), sizes));
}

TEST_CASE("what the steps and the balancing take one after the other is what the ranks send") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(number_in(1, 20, noise(seed, 1))));
    std::int64_t total = 0;
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      sizes[rank] = number_in(0, 50, noise(seed, 2, rank));
      total += sizes[rank];
    }
    std::int64_t most = 0;
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      most = std::max(most, oktopk::detail::allgatherv_entries_sent(sizes, rank));
    }
    std::int64_t const steps = oktopk::detail::allgatherv_critical_entries(sizes);
    CHECK(steps >= most);
    CHECK(steps <= 5 * total);

    std::vector<oktopk::detail::transfer> scheme;
    oktopk::detail::balancing_scheme(sizes, scheme);
    std::vector<std::int64_t> entries(2 * sizes.size(), 0);
    std::vector<std::int64_t> messages(2 * sizes.size(), 0);
    for (auto const& each : scheme) {
      if (each.from != each.to) {
        for (int const who : {2 * each.from, 2 * each.to + 1}) {
          entries[static_cast<std::size_t>(who)] += each.last - each.first;
          messages[static_cast<std::size_t>(who)] += 1;
        }
      }
    }
    auto const cost = oktopk::detail::cost_of(scheme);
    CHECK(cost.entries == *std::max_element(entries.begin(), entries.end()));
    CHECK(cost.messages == *std::max_element(messages.begin(), messages.end()));
  }
}

TEST_CASE("balanced_allgatherv balances where the rank that sends most sends noticeably less that way") {
  balanced_allgatherv const ours;
  // The last of 16 regions has drifted to twice its share: it would be forwarded four times.
  std::vector<std::int64_t> sizes(16, 700);
  sizes.back() = 1400;
  CHECK(wants_balance(ours, sizes));
  CHECK_FALSE(wants_balance(balanced_allgatherv({.bound_sent = false}), sizes));
  CHECK_FALSE(wants_balance(balanced_allgatherv({.message_entries = -1}), sizes));
  // What little is saved is worth no message where there are few entries.
  std::vector<std::int64_t> few(16, 100);
  few.back() = 200;
  CHECK_FALSE(wants_balance(ours, few));
  sizes.back() = 1050; // 13 % more than balanced
  CHECK_FALSE(wants_balance(ours, sizes));
  // Of two ranks each sends its part but once.
  CHECK_FALSE(wants_balance(ours, std::vector<std::int64_t>{20000, 10000}));
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::vector<std::int64_t> drifted(16);
    for (std::size_t rank = 0; rank < drifted.size(); ++rank) {
      drifted[rank] = number_in(500, 2000, noise(seed, rank));
    }
    std::int64_t const total = std::accumulate(drifted.begin(), drifted.end(), std::int64_t(0));
    if (!wants_balance(ours, drifted)) {
      for (std::size_t rank = 0; rank < drifted.size(); ++rank) {
        CHECK(static_cast<double>(oktopk::detail::allgatherv_entries_sent(drifted, rank)) <
              1.15 * static_cast<double>(total + 16) * 15 / 16 + 512 + 2000);
      }
    }
  }
}
