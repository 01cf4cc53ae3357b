// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "exchange/parts.hpp"
#include "select/distributions.hpp"
#include "support/call.hpp"
#include "support/catch.hpp"

#include <oktopk/exchange/global_selection.hpp>
#include <oktopk/partition/uniform.hpp>
#include <oktopk/select/exact.hpp>

// The group of all ranks, each with the candidates of its own region. That together they select what one rank would that
// has everything is in the suite of selectors, tests/select/suite.hpp.
using namespace oktopk_tests;
using oktopk::fault;
using oktopk::phase;
using oktopk::detail::fault_report;

namespace {

template <class Value>
using format_of = oktopk::coo<Value, std::int32_t>;

template <class Value>
using group_of = oktopk::detail::all_ranks<execution, counting, format_of<Value>>;

static_assert(oktopk::detail::gathering_group<group_of<float>, execution, std::int32_t, float>);

using search_of = oktopk::detail::exact_search<execution, std::int32_t, float, group_of<float>>;

/// The values of one rank's region as candidates, with their indices.
template <class Value>
sparse_vector<Value> region_of(std::vector<Value> const& values, int rank, int ranks) {
  sparse_vector<Value> region;
  auto const size = static_cast<std::int64_t>(values.size());
  // Uneven: rank 0 has nothing where there are several ranks.
  std::int64_t const parts = ranks == 1 ? 1 : ranks - 1;
  std::int64_t const part = ranks == 1 ? 0 : rank - 1;
  for (std::int64_t i = part < 0 ? 0 : size * part / parts; i < (part < 0 ? 0 : size * (part + 1) / parts); ++i) {
    region.push_back(i, values[static_cast<std::size_t>(i)]);
  }
  return region;
}

} // namespace

TEST_CASE("with fewer candidates than k all are selected") {
  for (int const ranks : {1, 2, 5}) {
    oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
      counting counted(comm);
      group_of<float> everybody;
      workspace_of<float> workspace;
      auto call = call_on(counted, 100);
      everybody.begin(call, 100);
      device_part<format_of<float>> const mine(region_of(std::vector<float>{5, -3, 0, 3, 2, 9}, comm.rank(), ranks));
      oktopk::exact::state<float> state;
      execution const exec;
      auto const said = oktopk::exact().select(oktopk::selection_context{exec, 50, 0, everybody, workspace},
                                               local_candidates<float>(mine.entries), state);
      CHECK(said.entries.size() == mine.entries.size());
      CHECK(said.total() == 6);
    });
  }
}

TEST_CASE("histograms cost no more than 3k/8 words, or the least there is, whatever the candidates are") {
  for (int const ranks : rank_counts) {
    double log_ranks = 0;
    for (int reach = 1; reach < ranks; reach *= 2) {
      log_ranks += 1;
    }
    for (std::int64_t const k : {1, 100, 1000, 10000, 1000000}) {
      // Counts take as many bytes as all candidates together need.
      for (std::int64_t const most : {std::int64_t(65535), std::int64_t(65536), std::int64_t(1) << 32}) {
        oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
          counting counted(comm);
          group_of<float> everybody;
          workspace_of<float> workspace;
          auto call = call_on(counted, 1000);
          everybody.begin(call, most);
          std::vector<float> values(10);
          correlated{8}({comm.rank(), ranks, 0}, values);
          device_part<format_of<float>> const mine(all_entries(values));
          execution const exec;
          search_of search({exec, k, 0, everybody, workspace});
          search.bracket(local_candidates<float>(mine.entries), k, {}, 0);
          double const count_words = most <= 65535 ? 0.5 : most < (std::int64_t(1) << 32) ? 1 : 2;
          double const least = 8 * 16 * count_words * log_ranks;
          double const sent = counted.of_phase(phase::threshold).words_sent();
          CHECK(sent <= std::max(3 * static_cast<double>(k) / 8, least));
          CHECK(sent <= std::max(static_cast<double>(k) / 4, least));
          CHECK(counted.total().bytes_sent == counted.of_phase(phase::threshold).bytes_sent);
        });
      }
    }
  }
}

TEST_CASE("a search in a range costs less, and says on every rank whether it found the k-th magnitude") {
  constexpr std::int64_t k = 2000;
  for (int const ranks : {1, 2, 3, 8}) {
    std::vector<float> all(9000);
    correlated{8}({0, 1, 0}, all);
    std::uint32_t smallest_kept = ~std::uint32_t(0);
    for (float const x : top(all_entries(all), k).values) {
      smallest_kept = std::min(smallest_kept, oktopk::detail::magnitude_bits(x));
    }
    auto const search = [&](oktopk::detail::magnitude_range<float> range) {
      std::vector<std::int64_t> found(static_cast<std::size_t>(ranks));
      std::vector<double> sent(static_cast<std::size_t>(ranks));
      oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
        counting counted(comm);
        group_of<float> everybody;
        workspace_of<float> workspace;
        auto call = call_on(counted, 9000);
        everybody.begin(call, 9000);
        device_part<format_of<float>> const mine(region_of(all, comm.rank(), ranks));
        execution const exec;
        auto const bracket =
            search_of({exec, k, 0, everybody, workspace}).bracket(local_candidates<float>(mine.entries), k, range, 0);
        auto const rank = static_cast<std::size_t>(comm.rank());
        found[rank] = bracket.found ? static_cast<std::int64_t>(bracket.floor) : -1;
        sent[rank] = counted.total().words_sent();
      });
      CHECK(std::all_of(found.begin(), found.end(), [&](std::int64_t each) { return each == found.front(); }));
      return std::pair(found.front(), sent.front());
    };
    auto const whole = search({});
    CHECK(whole.first == smallest_kept);
    for (int const bits : {2, 8, 13, 20, 24}) {
      std::uint32_t const size = std::uint32_t(1) << bits;
      CAPTURE(ranks, bits);
      auto const middle = search({smallest_kept - size / 2, bits});
      CHECK(middle.first == smallest_kept);
      CHECK((ranks == 1 || middle.second < whole.second));
      CHECK(search({smallest_kept, bits}).first == smallest_kept);
      // The last place of a range is nobody's.
      CHECK(search({smallest_kept - (size - 1), bits}).first == -1);
      CHECK(search({smallest_kept + 1, bits}).first == -1);
      CHECK(search({0, bits}).first == -1);
    }
  }
}

TEST_CASE("exact selects the same across ranks whatever it has guessed before") {
  for (int const ranks : {1, 3, 8}) {
    for (int const bits : {0, 1, 12, 24}) {
      for (float const magnitude : {0.0F, 1e-30F, 0.01F, 1.0F, 3e38F}) {
        std::vector<float> all(500);
        correlated{8}({0, 1, 0}, all);
        auto const expected = top(all_entries(all), 60);
        std::vector<std::int64_t> chosen;
        oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
          counting counted(comm);
          group_of<float> everybody;
          workspace_of<float> workspace;
          device_part<format_of<float>> const mine(region_of(all, comm.rank(), ranks));
          oktopk::exact::state<float> state;
          state.guess.bracket = {magnitude, bits};
          execution const exec;
          for (int iteration = 0; iteration < 3; ++iteration) {
            auto call = call_on(counted, 500);
            everybody.begin(call, 500);
            auto const said =
                oktopk::exact().select(oktopk::selection_context{exec, 60, iteration, everybody, workspace},
                                       local_candidates<float>(mine.entries), state);
            CHECK(said.total() == 60);
            if (iteration == 2) {
              auto const part = entries_of(said.entries);
              chosen.insert(chosen.end(), part.indices.begin(), part.indices.end());
            }
          }
        });
        std::sort(chosen.begin(), chosen.end());
        CHECK((chosen == expected.indices));
      }
    }
  }
}

TEST_CASE("sums of counts are right in every width") {
  for (std::int64_t const most : {std::int64_t(60000), std::int64_t(4000000000), std::int64_t(1) << 40}) {
    for (int const ranks : {1, 2, 3, 8}) {
      oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
        counting counted(comm);
        group_of<float> everybody;
        auto call = call_on(counted, 1000);
        everybody.begin(call, most);
        std::vector<std::int64_t> counts{0, most / ranks, comm.rank() + 1};
        everybody.sum(counts);
        CHECK((counts == std::vector<std::int64_t>{0, most / ranks * ranks, ranks * (ranks + 1) / 2}));
        std::vector<std::int64_t> const row{10 + comm.rank(), -comm.rank(), most};
        auto const rows = everybody.gather_rows(row);
        REQUIRE(rows.size() == 3 * static_cast<std::size_t>(ranks));
        for (int rank = 0; rank < ranks; ++rank) {
          auto const its = rows.subspan(3 * static_cast<std::size_t>(rank), 3);
          CHECK((its[0] == 10 + rank && its[1] == -rank && its[2] == most));
        }
        auto const counts_of_all = everybody.adopt_counts(rows, 3);
        REQUIRE(counts_of_all.size() == static_cast<std::size_t>(ranks));
        for (int rank = 0; rank < ranks; ++rank) {
          CHECK(counts_of_all[static_cast<std::size_t>(rank)] == 10 + rank);
        }
      });
    }
  }
}

TEST_CASE("a fault reaches everybody with the counts, that of the lowest rank") {
  for (int const ranks : {1, 2, 3, 8}) {
    for (int round = 0; round < 2 * ranks; ++round) {
      int const bad_rank = round / 2;
      bool const by_row = round % 2 == 1;
      auto const said = failures_of(ranks, [&](oktopk::in_process_communicator comm) {
        counting counted(comm);
        group_of<float> everybody;
        fault_report const mine =
            comm.rank() >= bad_rank ? fault_report{fault::length_mismatch, 40 + comm.rank()} : fault_report{};
        auto call = call_on(counted, 1000);
        call.note(mine);
        everybody.begin(call, 100);
        if (by_row) {
          everybody.gather_rows(std::vector<std::int64_t>{5, 7});
        } else {
          everybody.gather_counts(5);
        }
      });
      CHECK(unlike(said, fault::length_mismatch,
                   "test: rank " + std::to_string(bad_rank) + ": the accumulator has " + std::to_string(40 + bad_rank) +
                       " elements, expected 1000") == "");
    }
  }
}
