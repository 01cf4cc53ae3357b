// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "select/distributions.hpp"

#include <oktopk/select/exact.hpp>

using namespace oktopk_tests;

TEMPLATE_TEST_CASE("kth_magnitude and its ties are those of a sort, whatever the values", "", float, double) {
  workspace_of<TestType> workspace; // one for all: the histograms are used again
  for (auto const& [name, from] : distributions<TestType>()) {
    for (std::int64_t const size : {1, 2, 3, 17, 1000, 4099}) {
      auto const view = to_view(drawn<TestType>(from, size, static_cast<std::uint64_t>(size)));
      std::vector<TestType> sorted = to_vector(view);
      std::transform(sorted.begin(), sorted.end(), sorted.begin(), [](TestType x) { return std::fabs(x); });
      std::sort(sorted.begin(), sorted.end(), std::greater<>());
      for (std::int64_t const k : {std::int64_t(1), std::min<std::int64_t>(2, size), (size + 99) / 100, (size + 2) / 3,
                                   std::max<std::int64_t>(size - 1, 1), size}) {
        CAPTURE(name, size, k);
        auto const found = oktopk::detail::kth_magnitude(execution(), candidates_in(view), k, workspace);
        TestType const expected = sorted[static_cast<std::size_t>(k - 1)];
        auto const [first, last] = std::equal_range(sorted.begin(), sorted.end(), expected, std::greater<>());
        CHECK(oktopk::detail::magnitude_from_bits<TestType>(found.threshold) == expected);
        CHECK((found.ties == last - first && found.ties_wanted == k - (first - sorted.begin())));
      }
    }
  }
}

TEST_CASE("a search is not misled by a sample that misses what is large") {
  // One stretch in 50000 has all that is large: too short to be sampled as often as it deserves.
  for (std::int64_t const large : {1, 3, 40, 900}) {
    std::vector<float> values(100003, 1.0F);
    for (std::int64_t i = 0; i < large; ++i) {
      values[static_cast<std::size_t>(70000 + i)] = static_cast<float>(100 + i);
    }
    auto const view = to_view(values);
    workspace_of<float> workspace;
    execution const exec; // the search keeps a reference to it
    for (std::int64_t const k : {large, large + 1, large + 500}) {
      oktopk::detail::one_rank alone;
      oktopk::detail::search_guess<float> guess;
      oktopk::detail::search_alone<execution, std::int32_t, float> search({exec, k, 0, alone, workspace});
      CHECK(same(selection_in(workspace, search.run(candidates_in(view), guess).entries.size()), largest(values, k)));
    }
  }
}

TEMPLATE_TEST_CASE("kth_magnitude gives a threshold and its ties, NaN above infinity above all else", "", float,
                   double) {
  using limits = std::numeric_limits<TestType>;
  workspace_of<TestType> workspace;
  auto const found = [&](std::vector<TestType> const& values, std::int64_t k) {
    auto const view = to_view(values);
    return oktopk::detail::kth_magnitude(execution(), candidates_in(view), k, workspace);
  };
  auto const at = [&](std::int64_t k) {
    return oktopk::detail::magnitude_from_bits<TestType>(
        found({1, -limits::infinity(), 3, -limits::quiet_NaN(), limits::max()}, k).threshold);
  };
  CHECK((std::isnan(at(1)) && at(2) == limits::infinity() && at(3) == limits::max() && at(5) == 1));
  auto const second = found({7, -5, 6, 5, 5}, 4);
  CHECK((second.threshold == oktopk::detail::magnitude_bits(TestType(5)) && second.ties == 3));
  CHECK(second.ties_wanted == 2);
  auto const all = found({7, -5, 6, 5}, 100); // fewer than k: the threshold is that of the smallest
  CHECK((all.threshold == oktopk::detail::magnitude_bits(TestType(5)) && all.ties == 2 && all.ties_wanted == 2));
  auto const nothing = found({}, 3);
  CHECK((nothing.ties == 0 && nothing.ties_wanted == 0));
}
