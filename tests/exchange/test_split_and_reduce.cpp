// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "exchange/parts.hpp"
#include "support/call.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/noting.hpp"

#include <oktopk/exchange/radix.hpp>
#include <oktopk/exchange/split_and_reduce.hpp>
#include <oktopk/format/packed.hpp>
#include <oktopk/partition/uniform.hpp>

#include <numeric>
#include <optional>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::detail::fault_report;

namespace {

constexpr std::int64_t length = 700;

/// A selection of about one in five; rank 1 has nothing. Whole numbers have the same sum in any order.
template <class Value>
sparse_vector<Value> selection_of(int rank, std::uint64_t seed, std::int64_t offset, bool whole = false) {
  sparse_vector<Value> chosen;
  for (std::int64_t i = 0; rank != 1 && i < length; ++i) {
    auto const bits = noise(seed, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(i));
    if (bits % 5 == 0) {
      auto const number = static_cast<Value>(bits / 5 % 201) - 100;
      chosen.push_back(offset + i, whole ? number : static_cast<Value>(heavy_tailed(bits)));
    }
  }
  return chosen;
}

/// Boundaries of uneven regions, some empty.
std::vector<std::int64_t> uneven_boundaries(int ranks, std::uint64_t seed, std::int64_t offset) {
  std::vector<std::int64_t> boundaries{offset, offset + length};
  for (int r = 1; r < ranks; ++r) {
    boundaries.push_back(offset + number_in(0, length, noise(seed, 99, static_cast<std::uint64_t>(r / 2))));
  }
  std::sort(boundaries.begin(), boundaries.end());
  return boundaries;
}

template <class Format>
struct reduced {
  sparse_vector<typename Format::value_type> sums;
  fault_report first_fault;
  int faulty_rank = -1;
  outcome thrown{}; ///< in the round with faults
  oktopk::traffic reduce;
  oktopk::traffic control;
};

struct scenario {
  std::uint64_t seed = 1;
  int bucket = 4;
  bool announced = false;
  std::vector<int> faulty{}; ///< ranks that report a fault in the round before
  std::int64_t offset = 0;   ///< of all indices
  int radix = 0;             ///< of stages, whose sums are of whole numbers; 0 for one stage
};

template <class Schedule>
Schedule schedule_of(scenario const& how) {
  if constexpr (std::is_same_v<Schedule, oktopk::radix>) {
    return oktopk::radix({.bucket = how.bucket, .radix = how.radix});
  } else {
    return Schedule({.bucket = how.bucket});
  }
}

/// A round with faults where there are some, and then a good one in the same buffers, whose outcome is given.
template <class Format, class Schedule = oktopk::rotated>
std::vector<reduced<Format>> reduce(int ranks, scenario how) {
  using value_type = typename Format::value_type;
  std::vector<reduced<Format>> all(static_cast<std::size_t>(ranks));
  auto const boundaries = uneven_boundaries(ranks, how.seed, how.offset);
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
    counting counted(comm);
    auto& mine = all[static_cast<std::size_t>(comm.rank())];
    oktopk::detail::split_and_reduce<execution, counting, Format, Schedule> phase(schedule_of<Schedule>(how));
    auto const selection = selection_of<value_type>(comm.rank(), how.seed, how.offset, how.radix > 0);
    device_part<Format> const given(selection);
    std::optional<std::int64_t> const most = how.announced ? std::nullopt : std::optional<std::int64_t>(length);
    auto const owned = regions_of(boundaries);
    if (!how.faulty.empty()) {
      bool const bad = std::find(how.faulty.begin(), how.faulty.end(), comm.rank()) != how.faulty.end();
      auto call = call_on(counted, length);
      call.note(bad ? fault_report{fault::non_finite, comm.rank()} : fault_report{});
      mine.thrown = outcome_of([&] {
        phase.run(call, {bad ? decltype(given.entries){} : given.entries, most}, owned);
      });
      mine.first_fault = call.faults.report();
      mine.faulty_rank = call.faults.rank();
    }
    counted.reset();
    auto call = call_on(counted, length);
    mine.sums = entries_of(phase.run(call, {given.entries, most}, owned).sums);
    CHECK_FALSE(call.faults);
    mine.reduce = counted.of_phase(oktopk::phase::reduce);
    mine.control = counted.of_phase(oktopk::phase::control);
  });
  return all;
}

template <class Format>
void check(int ranks, scenario how) {
  using value_type = typename Format::value_type;
  CAPTURE(ranks, how.bucket, how.announced, how.seed);
  auto const all = reduce<Format>(ranks, how);
  auto const boundaries = uneven_boundaries(ranks, how.seed, how.offset);
  std::vector<sparse_vector<value_type>> selections;
  std::vector<sparse_vector<value_type>> sums;
  for (int rank = 0; rank < ranks; ++rank) {
    selections.push_back(selection_of<value_type>(rank, how.seed, how.offset));
    sums.push_back(all[static_cast<std::size_t>(rank)].sums);
  }
  auto const expected = sum_by_regions(selections, boundaries);
  auto const found = joined(sums);
  CHECK(same(found, expected));
  for (int rank = 0; rank < ranks; ++rank) {
    auto const r = static_cast<std::size_t>(rank);
    // One message per peer: a header of 8 bytes, and the entries of its region.
    auto const& mine = selections[r].indices;
    auto const own = std::lower_bound(mine.begin(), mine.end(), boundaries[r + 1]) -
                     std::lower_bound(mine.begin(), mine.end(), boundaries[r]);
    CHECK(all[r].reduce.messages_sent == ranks - 1);
    CHECK(all[r].reduce.messages_received == ranks - 1);
    CHECK(all[r].reduce.bytes_sent ==
          8 * (ranks - 1) + Format::entry_bytes * (selections[r].size() - static_cast<std::int64_t>(own)));
    CHECK(all[r].control.messages_sent == (how.announced ? ranks - 1 : 0));
    CHECK(all[r].control.bytes_sent == (how.announced ? 8 * (ranks - 1) : 0));
  }
}

} // namespace

TEST_CASE("split_and_reduce sums in the documented order, with one message per peer, for any bucket") {
  constexpr int largest = std::numeric_limits<int>::max();
  for (int const ranks : rank_counts) {
    for (int const bucket : {1, 2, 4, 100, largest / 2 + 1, largest}) {
      check<oktopk::coo<>>(ranks, {.seed = static_cast<std::uint64_t>(bucket), .bucket = bucket});
    }
    check<oktopk::coo<>>(ranks, {.seed = 5, .bucket = 3, .announced = true});
  }
}

TEST_CASE("split_and_reduce with indices beyond 2^40 and double values") {
  for (int const ranks : {2, 5}) {
    check<oktopk::coo<double, std::int64_t>>(ranks, {.seed = 6, .bucket = 2, .offset = std::int64_t(1) << 40});
  }
}

TEST_CASE("split_and_reduce reports the fault of the lowest rank everywhere, and the next round is clean") {
  for (int const ranks : {1, 2, 3, 5, 8}) {
    for (bool const announced : {false, true}) {
      for (int lowest = 0; lowest < ranks; ++lowest) {
        std::vector<int> faulty{lowest};
        if (lowest + 2 < ranks) {
          faulty.push_back(lowest + 2);
        }
        scenario const how{.seed = 8, .bucket = 2, .announced = announced, .faulty = faulty};
        for (auto const& outcome : reduce<oktopk::coo<>>(ranks, how)) {
          CHECK(outcome.first_fault.code == fault::non_finite);
          CHECK(outcome.first_fault.detail == lowest);
          CHECK(outcome.faulty_rank == lowest);
          CHECK(unlike(outcome.thrown, fault::non_finite, "rank " + std::to_string(lowest) + ": the value at index") ==
                "");
        }
        check<oktopk::coo<>>(ranks, how);
      }
    }
  }
}

namespace {

/// The messages that a rank sends at most in stages of a radix.
int messages_of(int ranks, int radix) {
  int messages = 0;
  for (int range = ranks; range > 1; range = (range + radix - 1) / radix) {
    messages += std::min(radix, range) - 1;
  }
  return messages;
}

void check_stages(int ranks, scenario how) {
  CAPTURE(ranks, how.bucket, how.announced, how.radix);
  auto const all = reduce<oktopk::coo<>, oktopk::radix>(ranks, how);
  std::vector<sparse_vector<float>> selections;
  std::vector<sparse_vector<float>> sums;
  for (int rank = 0; rank < ranks; ++rank) {
    selections.push_back(selection_of<float>(rank, how.seed, how.offset, true));
    sums.push_back(all[static_cast<std::size_t>(rank)].sums);
  }
  CHECK(same(joined(sums), sum_by_regions(selections, uneven_boundaries(ranks, how.seed, how.offset))));
  int most = 0;
  for (auto const& each : all) {
    most = std::max(most, static_cast<int>(each.reduce.messages_sent));
    CHECK(each.control.messages_sent == (how.announced ? each.reduce.messages_sent : 0));
  }
  CHECK(most == messages_of(ranks, how.radix));
}

} // namespace

TEST_CASE("radix: the same sums in fewer messages, for any number of ranks") {
  for (int const ranks : {1, 2, 3, 4, 5, 7, 8, 13, 16, 27, 31}) {
    for (int const radix : {2, 3, 4, 6}) {
      for (int const bucket : {1, 2, 100}) {
        check_stages(ranks, {.seed = static_cast<std::uint64_t>(radix), .bucket = bucket, .radix = radix});
      }
      check_stages(ranks, {.seed = 5, .bucket = 3, .announced = true, .radix = radix});
    }
  }
}

TEST_CASE("radix: ranks of larger groups are spread over those of smaller ones") {
  // Groups of 5, 5, 5, 4 and 4: the last ranks of three have no counterpart in the others.
  for (auto const& each : reduce<oktopk::coo<>, oktopk::radix>(23, {.seed = 2, .radix = 5})) {
    CHECK(each.reduce.messages_received <= 4 + 4);
  }
}

TEST_CASE("radix: with as many groups as ranks it is rotated, to the bit") {
  for (int const ranks : {1, 2, 5, 8, 13}) {
    scenario const how{.seed = 3, .bucket = 3, .radix = 100};
    auto const one_stage = reduce<oktopk::coo<>>(ranks, how);
    auto const found = reduce<oktopk::coo<>, oktopk::radix>(ranks, how);
    for (std::size_t r = 0; r < found.size(); ++r) {
      CHECK(same(found[r].sums, one_stage[r].sums));
      CHECK(found[r].reduce.messages_sent == one_stage[r].reduce.messages_sent);
      CHECK(found[r].reduce.bytes_sent == one_stage[r].reduce.bytes_sent);
    }
  }
}

TEST_CASE("radix: the fault of the lowest rank is heard everywhere, and the next round is clean") {
  for (int const ranks : {2, 3, 5, 8, 13}) {
    for (int const radix : {2, 3}) {
      for (bool const announced : {false, true}) {
        for (int lowest = 0; lowest < ranks; ++lowest) {
          std::vector<int> faulty{lowest};
          if (lowest + 2 < ranks) {
            faulty.push_back(lowest + 2);
          }
          scenario const how{.seed = 8, .bucket = 2, .announced = announced, .faulty = faulty, .radix = radix};
          for (auto const& outcome : reduce<oktopk::coo<>, oktopk::radix>(ranks, how)) {
            CHECK(outcome.first_fault.detail == lowest);
            CHECK(outcome.faulty_rank == lowest);
            CHECK(unlike(outcome.thrown, fault::non_finite,
                         "rank " + std::to_string(lowest) + ": the value at index") == "");
          }
          check_stages(ranks, how);
        }
      }
    }
  }
}

TEST_CASE("radix: the entries of a rank go to the ranks next to it, and sums to others") {
  constexpr int ranks = 32;
  constexpr int near = 4;
  std::vector<std::int64_t> boundaries(ranks + 1);
  oktopk::detail::even_regions(length, boundaries);
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
    std::vector<sent_message> sent;
    noting noted(comm, sent);
    oktopk::detail::split_and_reduce<execution, noting, oktopk::coo<>, oktopk::radix> phase(
        oktopk::radix({.radix = near}));
    device_part<oktopk::coo<>> const given(selection_of<float>(comm.rank(), 4, 0));
    auto call = call_on(noted, length);
    phase.run(call, {given.entries, length}, regions_of(boundaries));
    REQUIRE(sent.size() == 3 + 3 + 1); // groups of 8, of 2 and of 1
    for (std::size_t i = 0; i < sent.size(); ++i) {
      CAPTURE(comm.rank(), i, sent[i].to);
      CHECK((sent[i].to / near == comm.rank() / near) == (i < 3));
      CHECK((sent[i].to % near == comm.rank() % near) == (i >= 3));
    }
  });
}

TEST_CASE("radix: sums that overflow on the way are noted, and not sent") {
  constexpr float largest = std::numeric_limits<float>::max();
  for (int const ranks : {4, 8}) {
    std::vector<fault_report> noted(static_cast<std::size_t>(ranks));
    std::vector<std::int64_t> boundaries(static_cast<std::size_t>(ranks) + 1);
    oktopk::detail::even_regions(length, boundaries);
    oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
      counting counted(comm);
      oktopk::detail::split_and_reduce<execution, counting, oktopk::coo<>, oktopk::radix> phase(
          oktopk::radix({.radix = 2}));
      sparse_vector<float> selection;
      // Another order of sums is finite.
      selection.push_back(boundaries[1] + 3, comm.rank() / 2 % 2 == 0 ? largest : -largest);
      device_part<oktopk::coo<>> const given(selection);
      auto call = call_on(counted, length);
      phase.run(call, {given.entries, length}, regions_of(boundaries));
      noted[static_cast<std::size_t>(comm.rank())] = call.faults.report();
    });
    std::erase_if(noted, [](fault_report const& each) { return !each; });
    CHECK_FALSE(noted.empty());
    CHECK(std::ranges::all_of(noted, [&](fault_report const& each) {
      return each.code == fault::non_finite && each.detail == boundaries[1] + 3;
    }));
  }
}

TEST_CASE(
    "radix: what a format rounds off in any stage is listed in ascending order, below the own region and above it") {
  using format = oktopk::packed<float, std::int32_t, oktopk::bfloat16_values>;
  constexpr int ranks = 8;
  std::vector<std::int64_t> boundaries(ranks + 1);
  oktopk::detail::even_regions(length, boundaries);
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
    counting counted(comm);
    oktopk::detail::split_and_reduce<execution, counting, format, oktopk::radix> phase(oktopk::radix({.radix = 2}));
    device_part<format> const given(selection_of<float>(comm.rank(), 9, 0));
    auto call = call_on(counted, length);
    auto const owned = regions_of(boundaries);
    auto const found = phase.run(call, {given.entries, length}, owned);
    oktopk::region const own = found.order->region_of(found.place);
    std::vector<std::int64_t> indices;
    for (auto const& losses : {found.losses_below, found.losses_above}) {
      for (auto const& each : losses) {
        auto const listed = entries_of(each).indices;
        indices.insert(indices.end(), listed.begin(), listed.end());
      }
    }
    CHECK(std::ranges::is_sorted(indices, std::less_equal<>()));
    std::int64_t below = 0;
    for (auto const& each : found.losses_below) {
      below += each.size();
    }
    CHECK(std::ranges::lower_bound(indices, own.begin) - indices.begin() == below);
    CHECK(std::ranges::lower_bound(indices, own.end) - indices.begin() == below);
    CHECK(found.order->restored(own.begin) == owned.region_of(comm.rank()).begin);
    CHECK_FALSE(indices.empty());
  });
}

TEST_CASE("radix: few messages where they cost most, one stage where words do") {
  auto const stages = [](int ranks, std::int64_t k) {
    auto const cuts = oktopk::radix().groups(ranks, 100 * k, k);
    std::vector<int> found;
    for (int range = ranks; range > 1; range = (range + found.back() - 1) / found.back()) {
      found.push_back(cuts[static_cast<std::size_t>(range)]);
    }
    return found;
  };
  for (int const ranks : {2, 3, 5, 8}) {
    CHECK(stages(ranks, 10) == std::vector<int>{ranks});
    CHECK(stages(ranks, 10'000'000) == std::vector<int>{ranks});
  }
  CHECK(stages(256, 100'000'000) == std::vector<int>{256});
  auto const messages = [&](int ranks) {
    auto const found = stages(ranks, 1000);
    return std::accumulate(found.begin(), found.end(), 0) - static_cast<int>(found.size());
  };
  CHECK(messages(256) <= 20);
  CHECK(messages(1024) <= 25);
}
