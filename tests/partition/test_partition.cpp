// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "partition/suite.hpp"
#include "support/caught.hpp"

#include <oktopk/partition/balanced.hpp>
#include <oktopk/partition/sampled.hpp>
#include <oktopk/partition/splitters.hpp>
#include <oktopk/partition/uniform.hpp>

#include <bit>
#include <functional>
#include <numeric>

using namespace oktopk_tests;
using namespace oktopk_tests::partitioning;

namespace {

selection nothing(int) {
  return {};
}

/// k indices crowded at the front, at other places on each rank.
selection crowded(int rank, std::int64_t length, std::int64_t k) {
  selection chosen;
  for (std::uint64_t i = 0; static_cast<std::int64_t>(chosen.size()) < k; ++i) {
    double const where = std::pow(fraction(noise(4, static_cast<std::uint64_t>(rank), i)), 6);
    chosen.push_back(static_cast<std::int64_t>(where * static_cast<double>(length)));
    if (chosen.size() == static_cast<std::size_t>(k)) {
      std::sort(chosen.begin(), chosen.end());
      chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    }
  }
  return chosen;
}

/// Entries that the fullest region receives, over the mean.
double imbalance(int ranks, std::vector<std::int64_t> const& boundaries,
                 std::function<selection(int)> const& selected) {
  std::vector<double> load(static_cast<std::size_t>(ranks), 0);
  double total = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::int64_t const index : selected(rank)) {
      auto const region =
          std::upper_bound(boundaries.begin() + 1, boundaries.end() - 1, index) - boundaries.begin() - 1;
      load[static_cast<std::size_t>(region)] += 1;
      total += 1;
    }
  }
  return *std::max_element(load.begin(), load.end()) * ranks / total;
}

} // namespace

TEST_CASE("uniform regions differ by one at most and need no messages") {
  for (int const ranks : rank_counts) {
    for (std::int64_t const length : {std::int64_t(0), std::int64_t(1), std::int64_t(7), std::int64_t(1000003),
                                      (std::int64_t(1) << 40) + 5, std::int64_t(1) << 62}) {
      auto const boundaries = checked<oktopk::uniform>(ranks, length, nothing);
      std::vector<std::int64_t> widths(boundaries.size());
      std::adjacent_difference(boundaries.begin(), boundaries.end(), widths.begin());
      auto const [least, most] = std::minmax_element(widths.begin() + 1, widths.end());
      CHECK(*most - *least <= 1);
      CHECK(partition<oktopk::uniform>(ranks, length, nothing)[0].traffic.bytes_sent == 0);
    }
  }
  CHECK(oktopk::uniform::due(0));
  CHECK_FALSE(oktopk::uniform::due(1));
}

TEST_CASE("balanced regions are the averages of the ranks' own") {
  // Rank 0 would cut at 20 and 40, rank 1 at 60 and 80, rank 2 at 1 and 1001.
  std::vector<selection> const chosen{{0, 10, 20, 30, 40, 50}, {50, 60, 80}, {0, 1, 1001}};
  auto const boundaries =
      checked<oktopk::balanced>(3, 2000, [&](int rank) { return chosen[static_cast<std::size_t>(rank)]; });
  CHECK((boundaries == std::vector<std::int64_t>{0, (20 + 60 + 1) / 3, (40 + 80 + 1001) / 3, 2000}));
}

TEMPLATE_TEST_CASE("balanced and sampled regions are uniform where nobody selected anything", "", oktopk::balanced,
                   oktopk::sampled) {
  for (int const ranks : rank_counts) {
    CHECK((checked<TestType>(ranks, 1000, nothing) == checked<oktopk::uniform>(ranks, 1000, nothing)));
  }
}

TEST_CASE("a rank that selected nothing has no say in balanced regions") {
  for (int const ranks : {2, 3, 5, 8}) {
    auto const one = [&](int rank) { return rank == ranks - 1 ? crowded(3, 100000, 4096) : selection(); };
    auto const all = [](int) { return crowded(3, 100000, 4096); };
    CHECK((checked<oktopk::balanced>(ranks, 100000, one) == checked<oktopk::balanced>(ranks, 100000, all)));
  }
}

TEMPLATE_TEST_CASE("partitioners keep their contract", "", oktopk::uniform, oktopk::balanced, oktopk::sampled,
                   oktopk::splitters) {
  check_partitioner<TestType>();
}

TEST_CASE("partitioners keep their contract with other options than the usual ones") {
  check_partitioner(oktopk::balanced({.tau = 1}));
  check_partitioner(oktopk::sampled({.tau = 1, .most = 1.01, .check_from = 0}));
}

TEMPLATE_TEST_CASE("balanced and sampled regions balance what is crowded in the same places, where uniform ones do not",
                   "", oktopk::balanced, oktopk::sampled, oktopk::splitters) {
  for (int const ranks : {2, 4, 8, 16}) {
    auto const selected = [](int rank) { return crowded(rank, 1 << 20, 10000); };
    CAPTURE(ranks);
    CHECK(imbalance(ranks, checked<TestType>(ranks, 1 << 20, selected), selected) < 1.1);
    CHECK(imbalance(ranks, checked<oktopk::uniform>(ranks, 1 << 20, selected), selected) > 1.3);
  }
}

TEST_CASE("splitters balance what ranks have at different places, few entries and a whole vector") {
  for (int const ranks : {2, 3, 5, 8, 13, 16}) {
    CAPTURE(ranks);
    auto const apart = [&](int rank) { // more on higher ranks, each in a stretch of its own
      selection chosen;
      for (std::int64_t i = 0; i < 500 * (rank + 1); ++i) {
        chosen.push_back(rank * 100000 + i * 3);
      }
      return chosen;
    };
    CHECK(imbalance(ranks, checked<oktopk::splitters>(ranks, 100000 * ranks, apart), apart) < 1.5);
    auto const whole = [](int) {
      selection chosen(1 << 16);
      std::iota(chosen.begin(), chosen.end(), 0);
      return chosen;
    };
    CHECK(imbalance(ranks, checked<oktopk::splitters>(ranks, 1 << 16, whole), whole) < 1.001);
  }
}

TEST_CASE("splitters refuse samples that no rank can have given") {
  auto const said = outcomes_of(2, [](oktopk::in_process_communicator comm) {
    auto call = call_on(comm, 100);
    oktopk::splitters::step<execution, oktopk::in_process_communicator> step{oktopk::splitters()};
    auto const indices = to_view(selection{comm.rank() == 0 ? 120 : 3});
    step.run(call, oktopk::array_ref<std::int64_t const, memory>(indices.data(), 1));
  });
  CHECK(unlike(said, oktopk::fault::damaged_message, "the samples of a rank") == "");
}

TEST_CASE("balanced regions of lengths near 2^40 do not overflow") {
  std::int64_t const length = (std::int64_t(1) << 40) + 11;
  selection chosen;
  for (std::int64_t i = 1000; i > 0; --i) {
    chosen.push_back(length - i);
  }
  auto const at_the_end = [&](int) { return chosen; };
  for (int const ranks : {1, 2, 7, 16}) {
    auto const boundaries = checked<oktopk::balanced>(ranks, length, at_the_end);
    for (int r = 1; r < ranks; ++r) {
      CHECK(std::abs(boundaries[static_cast<std::size_t>(r)] - (length - 1000 + 1000 * r / ranks)) <= ranks);
    }
  }
}

TEMPLATE_TEST_CASE("balanced and sampled regions are due every tau iterations, and refuse bad options", "",
                   oktopk::balanced, oktopk::sampled) {
  TestType const often({.tau = 3});
  for (std::int64_t iteration = 0; iteration < 20; ++iteration) {
    bool const is_early = std::is_same_v<TestType, oktopk::sampled> && (iteration == 1 || iteration == 2);
    CHECK(often.due(iteration) == (iteration % 3 == 0 || is_early));
  }
  CHECK(often.describe() != TestType({.tau = 4}).describe());
  std::string const name = std::is_same_v<TestType, oktopk::balanced> ? "balanced" : "sampled";
  CHECK(TestType({.tau = 0}).problem() == "tau = 0 of " + name + " is not positive");
  CHECK(TestType({.tau = 1}).problem().empty());
}

TEST_CASE("sampled regions balance what is crowded in other places on each rank, where averages do not") {
  for (int const ranks : {4, 8, 16}) {
    // Every rank has most of its selection in a stretch of its own; the stretches leave gaps.
    auto const selected = [=](int rank) {
      selection chosen = crowded(rank, 1 << 16, 4000);
      for (std::int64_t& index : chosen) {
        index += (std::int64_t(rank) * 5 % ranks) << 17;
      }
      return chosen;
    };
    std::int64_t const length = std::int64_t(ranks) << 17;
    CAPTURE(ranks);
    CHECK(imbalance(ranks, checked<oktopk::balanced>(ranks, length, selected), selected) > 1.8);
    CHECK(imbalance(ranks, checked<oktopk::sampled>(ranks, length, selected), selected) < 1.6);
  }
}

TEST_CASE("balanced regions: a selection that all ranks have is cut into parts that differ by one, larger ones first") {
  selection const tens{0, 10, 20, 30, 40, 50, 60, 70, 80, 90};
  auto const cut = checked<oktopk::balanced>(4, 100, [&](int) { return tens; });
  CHECK(cut == std::vector<std::int64_t>{0, 30, 60, 80, 100});
}

TEST_CASE("balanced regions cost one sum of P integers, sampled ones three") {
  for (int const ranks : rank_counts) {
    std::int64_t const steps = std::bit_width(static_cast<unsigned>(ranks - 1));
    auto const selected = [](int rank) { return crowded(rank, 1000, 100); };
    auto const averaged = partition<oktopk::balanced>(ranks, 1000, selected);
    auto const sampled = partition<oktopk::sampled>(ranks, 1000, selected);
    for (std::size_t rank = 0; rank < sampled.size(); ++rank) {
      CHECK(averaged[rank].traffic.messages_sent <= steps);
      CHECK(averaged[rank].traffic.bytes_sent <= 8 * ranks * steps);
      CHECK(sampled[rank].traffic.bytes_sent == 3 * averaged[rank].traffic.bytes_sent);
      CHECK(sampled[rank].traffic.messages_sent == 3 * averaged[rank].traffic.messages_sent);
    }
  }
}

namespace {

/// Selections that regions by averages divide worst.
std::vector<std::function<selection(int)>> adverse(int ranks, std::int64_t length) {
  std::int64_t const k = 2000;
  auto const stretch = [=](std::int64_t begin, std::int64_t stride) {
    selection chosen;
    for (std::int64_t i = 0; i < k && begin + i * stride < length; ++i) {
      chosen.push_back(begin + i * stride);
    }
    return chosen;
  };
  return {
      [=](int rank) { return stretch(rank * k, 1); },                               // disjoint, side by side
      [=](int rank) { return stretch(rank * (length / ranks), 1); },                // disjoint, far apart
      [=](int) { return stretch(length - k, 1); },                                  // all in the same places at the end
      [=](int rank) { return rank == ranks - 1 ? stretch(7, 3) : selection(); },    // one rank has everything
      [=](int rank) { return stretch(0, 1 + (rank * rank * 997) % (length / k)); }, // as dense as the rank likes
      [=](int rank) { return rank == 0 ? stretch(0, length / k) : stretch(length / 2, 1); },
      [=](int rank) { // beyond a wide gap, by a little more than half: where averages are worst
        selection chosen = rank == 0 ? stretch(0, 1) : rank == 1 ? stretch(length - k, 1) : selection();
        chosen.resize(rank == 0 ? chosen.size() * 9 / 10 : chosen.size());
        return chosen;
      },
  };
}

} // namespace

TEST_CASE("sampled regions keep their ratio for any selections") {
  std::int64_t const length = 1 << 22;
  for (int const ranks : {2, 3, 5, 8, 16}) {
    std::size_t which = 0;
    for (auto const& selected : adverse(ranks, length)) {
      CAPTURE(ranks, which);
      which += 1;
      for (double const ratio : {1.05, 1.25, 2.0, 1e300}) {
        oktopk::sampled const how({.most = ratio, .check_from = 0});
        double total = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          total += static_cast<double>(selected(rank).size());
        }
        double const rounding = ranks * ranks / total; // P entries
        CHECK(imbalance(ranks, checked<oktopk::sampled>(ranks, length, selected, how), selected) <= ratio + rounding);
      }
    }
  }
}

TEST_CASE("sampled regions are made anew when a region would get too much, on all ranks alike") {
  std::int64_t const length = 1 << 20;
  for (int const ranks : {1, 2, 5, 8}) {
    oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
      counting counted(comm);
      auto call = call_on(counted, length);
      oktopk::sampled::step<execution, counting> step{oktopk::sampled({.check_from = 0})};
      auto const as_array = [](auto const& view) {
        return oktopk::array_ref<std::int64_t const, memory>(view.data(), view.extent(0));
      };
      auto const before = to_view(crowded(comm.rank(), length, 1000));
      auto const found = step.run(call, as_array(before), false);
      std::vector<std::int64_t> const boundaries(found.begin(), found.end());
      counted.reset();
      CHECK(step.fits(call, as_array(before), boundaries));
      CHECK(counted.total().words_sent() <= oktopk::detail::allreduce_words_at_most(ranks, ranks));
      auto const moved = to_view(comm.rank() == 0 ? crowded(3, 1 << 10, 1000) : selection());
      CHECK(step.fits(call, as_array(moved), boundaries) == (ranks == 1));
      CHECK(step.fits(call, as_array(moved), std::vector<std::int64_t>(boundaries)) == (ranks == 1));
    });
  }
  CHECK(oktopk::sampled({.most = 1}).problem() == "most = 1 of sampled is below 1.01");
}

TEST_CASE("sampled regions are due early, and are checked where k is large for the number of messages") {
  oktopk::sampled const how({.tau = 20});
  std::vector<std::int64_t> due;
  for (std::int64_t iteration = 0; iteration < 61; ++iteration) {
    how.due(iteration) ? due.push_back(iteration) : void();
  }
  CHECK((due == std::vector<std::int64_t>{0, 1, 2, 4, 8, 16, 20, 40, 60}));
  double const once = oktopk::detail::allreduce_words_at_most(8, 8);
  CHECK(how.bound_words(8, 3 * 32768 - 1, false) == 3 * once);
  CHECK(how.bound_words(8, 3 * 32768, false) > 100 * once);
  CHECK(how.bound_words(8, 3 * 32768 - 1, true) == how.bound_words(8, 3 * 32768, false));
  oktopk::in_process::run(8, [&](oktopk::in_process_communicator comm) {
    counting counted(comm);
    auto call = call_on(counted, 1000);
    oktopk::sampled::step<execution, counting> step{oktopk::sampled()};
    auto const selected = to_view(comm.rank() == 0 ? crowded(3, 1000, 100) : selection());
    CHECK(step.fits(call, oktopk::array_ref<std::int64_t const, memory>(selected.data(), selected.extent(0)),
                    std::vector<std::int64_t>{0, 0, 0, 0, 0, 0, 0, 0, 1000}));
    CHECK(counted.total().messages_sent == 0);
    // An index that all ranks have selected cannot be cut: its region has P entries, and the others none.
    oktopk::sampled::step<execution, counting> checking{oktopk::sampled({.check_from = 0})};
    auto const shared = to_view(selection{5});
    CHECK(checking.fits(call, oktopk::array_ref<std::int64_t const, memory>(shared.data(), 1),
                        std::vector<std::int64_t>{0, 100, 200, 300, 400, 500, 600, 700, 1000}));
  });
}

TEST_CASE("sums of counts that no ranks can have are an error") {
  using known = std::vector<oktopk::detail::known_count>;
  auto const of = [](known const& counts) { return outcome_of([&] { oktopk::detail::check_known(counts); }).code; };
  CHECK(of({{0, 0}, {5, 3}, {9, 3}, {10, 7}}) == oktopk::fault::none);
  CHECK(of({{0, 0}, {5, 4}, {9, 3}, {10, 7}}) == oktopk::fault::damaged_message);
  CHECK(of({{0, -1}, {10, 7}}) == oktopk::fault::damaged_message);
  CHECK(of({{0, 0}, {10, std::int64_t(1) << 60}}) == oktopk::fault::damaged_message);
}
