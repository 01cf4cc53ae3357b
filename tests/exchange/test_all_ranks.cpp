// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "exchange/parts.hpp"
#include "select/distributions.hpp"
#include "support/call.hpp"
#include "support/catch.hpp"

#include <oktopk/exchange/global_selection.hpp>
#include <oktopk/partition/uniform.hpp>
#include <oktopk/select/exact.hpp>

#include <bit>

// The group of all ranks, each with the candidates of its own region. That together they select what one rank would that
// has everything is in the suite of selectors, tests/select/suite.hpp.
using namespace oktopk_tests;
using oktopk::fault;
using oktopk::phase;
using oktopk::detail::fault_report;

namespace {

using format = oktopk::coo<>;
using group = oktopk::detail::all_ranks<execution, counting, format>;

static_assert(oktopk::detail::gathering_group<group, execution, std::int32_t, float>);

using search = oktopk::detail::exact_search<execution, std::int32_t, float, group>;

/// Runs `body(everybody, call, workspace)` on so many ranks that are a group, with counts of candidates up to `most`.
template <class Body>
void on_group(int ranks, std::int64_t most, Body const& body) {
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
    counting counted(comm);
    group everybody;
    workspace_of<float> workspace;
    auto call = call_on(counted, 1000);
    everybody.begin(call, most);
    body(everybody, call, workspace);
  });
}

/// The values of one rank's region as candidates, with their indices; rank 0 has nothing where there are several ranks.
sparse_vector<float> region_of(std::vector<float> const& values, int rank, int ranks) {
  std::size_t const parts = ranks == 1 ? 1 : static_cast<std::size_t>(ranks) - 1;
  sparse_vector<float> region;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i * parts / values.size() + (ranks == 1 ? 0 : 1) == static_cast<std::size_t>(rank)) {
      region.push_back(static_cast<std::int64_t>(i), values[i]);
    }
  }
  return region;
}

} // namespace

TEST_CASE("with fewer candidates than k all are selected") {
  for (int const ranks : {1, 2, 5}) {
    on_group(ranks, 100, [&](group& everybody, auto& call, auto& workspace) {
      device_part<format> const mine(region_of({5, -3, 0, 3, 2, 9}, call.comm.rank(), ranks));
      oktopk::exact::state<float> state;
      auto const said = oktopk::exact().select(oktopk::selection_context{call.exec, 50, 0, everybody, workspace},
                                               local_candidates<float>(mine.entries), state);
      CHECK(said.entries.size() == mine.entries.size());
      CHECK(said.total() == 6);
    });
  }
}

TEST_CASE("histograms cost no more than k/4 words, or the least there is, whatever the candidates are") {
  for (int const ranks : rank_counts) {
    for (std::int64_t const k : {1, 100, 1000, 10000, 1000000}) {
      // Counts take as many bytes as all candidates together need.
      for (std::int64_t const most : {std::int64_t(65535), std::int64_t(65536), std::int64_t(1) << 32}) {
        on_group(ranks, most, [&](group& everybody, auto& call, auto& workspace) {
          std::vector<float> values(10);
          correlated{8}({call.comm.rank(), ranks, 0}, values);
          device_part<format> const mine(all_entries(values));
          search({call.exec, k, 0, everybody, workspace}).bracket(local_candidates<float>(mine.entries), k, {}, 0);
          double const count_words = most <= 65535 ? 0.5 : most < (std::int64_t(1) << 32) ? 1 : 2;
          double const least = 8 * 16 * count_words * std::bit_width(static_cast<unsigned>(ranks - 1));
          auto const sent = call.comm.of_phase(phase::threshold);
          CHECK(sent.words_sent() <= std::max(static_cast<double>(k) / 4, least));
          CHECK(call.comm.total().bytes_sent == sent.bytes_sent);
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
    auto const found_in = [&](oktopk::detail::magnitude_range<float> range) {
      std::vector<std::int64_t> found(static_cast<std::size_t>(ranks));
      double sent = 0;
      on_group(ranks, 9000, [&](group& everybody, auto& call, auto& workspace) {
        device_part<format> const mine(region_of(all, call.comm.rank(), ranks));
        auto const bracket =
            search({call.exec, k, 0, everybody, workspace}).bracket(local_candidates<float>(mine.entries), k, range, 0);
        found[static_cast<std::size_t>(call.comm.rank())] =
            bracket.found ? static_cast<std::int64_t>(bracket.floor) : -1;
        sent = call.comm.rank() == 0 ? call.comm.total().words_sent() : sent;
      });
      CHECK(found == std::vector<std::int64_t>(found.size(), found.front()));
      return std::pair(found.front(), sent);
    };
    auto const whole = found_in({});
    CHECK(whole.first == smallest_kept);
    for (int const bits : {2, 8, 13, 20, 24}) {
      std::uint32_t const size = std::uint32_t(1) << bits;
      CAPTURE(ranks, bits);
      auto const middle = found_in({smallest_kept - size / 2, bits});
      CHECK(middle.first == smallest_kept);
      CHECK((ranks == 1 || middle.second < whole.second));
      CHECK(found_in({smallest_kept, bits}).first == smallest_kept);
      // The last place of a range is nobody's.
      CHECK(found_in({smallest_kept - (size - 1), bits}).first == -1);
      CHECK(found_in({smallest_kept + 1, bits}).first == -1);
      CHECK(found_in({0, bits}).first == -1);
    }
  }
}

TEST_CASE("exact selects the same across ranks whatever it has guessed before") {
  std::vector<float> all(500);
  correlated{8}({0, 1, 0}, all);
  for (int const ranks : {1, 3, 8}) {
    for (int const bits : {0, 1, 12, 24}) {
      for (float const magnitude : {0.0F, 1e-30F, 0.01F, 1.0F, 3e38F}) {
        std::vector<oktopk::exact::state<float>> states(static_cast<std::size_t>(ranks));
        for (auto& state : states) {
          state.guess.bracket = {magnitude, bits};
        }
        for (int iteration = 0; iteration < 3; ++iteration) {
          CAPTURE(ranks, bits, magnitude, iteration);
          std::vector<sparse_vector<float>> chosen(static_cast<std::size_t>(ranks));
          on_group(ranks, 500, [&](group& everybody, auto& call, auto& workspace) {
            auto const rank = static_cast<std::size_t>(call.comm.rank());
            device_part<format> const mine(region_of(all, call.comm.rank(), ranks));
            auto const said =
                oktopk::exact().select(oktopk::selection_context{call.exec, 60, iteration, everybody, workspace},
                                       local_candidates<float>(mine.entries), states[rank]);
            CHECK(said.total() == 60);
            chosen[rank] = entries_of(said.entries);
          });
          CHECK((joined(chosen) == top(all_entries(all), 60)));
        }
      }
    }
  }
}

TEST_CASE("sums of counts are right in every width") {
  for (std::int64_t const most : {std::int64_t(60000), std::int64_t(4000000000), std::int64_t(1) << 40}) {
    for (int const ranks : {1, 2, 3, 8}) {
      on_group(ranks, most, [&](group& everybody, auto& call, auto&) {
        std::int64_t const me = call.comm.rank();
        std::vector<std::int64_t> counts{0, most / ranks, me + 1};
        everybody.sum(counts);
        CHECK((counts == std::vector<std::int64_t>{0, most / ranks * ranks, ranks * (ranks + 1) / 2}));
        auto const rows = everybody.gather_rows(std::vector<std::int64_t>{10 + me, -me, most});
        std::vector<std::int64_t> all_rows;
        std::vector<std::int64_t> all_counts;
        for (int rank = 0; rank < ranks; ++rank) {
          all_rows.insert(all_rows.end(), {10 + rank, -rank, most});
          all_counts.push_back(10 + rank);
        }
        CHECK(std::vector<std::int64_t>(rows.begin(), rows.end()) == all_rows);
        auto const counts_of_all = everybody.adopt_counts(rows, 3);
        CHECK(std::vector<std::int64_t>(counts_of_all.begin(), counts_of_all.end()) == all_counts);
      });
    }
  }
}

TEST_CASE("a fault reaches everybody with the counts, that of the lowest rank") {
  for (int const ranks : {1, 2, 3, 8}) {
    for (int round = 0; round < 2 * ranks; ++round) {
      int const bad_rank = round / 2;
      bool const by_row = round % 2 == 1;
      auto const said = outcomes_of(ranks, [&](oktopk::in_process_communicator comm) {
        counting counted(comm);
        group everybody;
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
