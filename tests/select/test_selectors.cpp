// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "select/distributions.hpp"

#include <oktopk/select/exact.hpp>
#include <oktopk/select/reused_threshold.hpp>

#include <set>

using namespace oktopk_tests;
using oktopk::reused_threshold;
using oktopk::unguarded_threshold;

namespace {

/// A selector with its state and workspace, called as an algorithm does.
template <class Selector, class Value = float>
struct bench {
  Selector selector{};
  typename Selector::template state<Value> state{};
  workspace_of<Value> workspace{};
  oktopk::detail::one_rank alone{};

  struct outcome {
    bool reevaluated;
    sparse_vector<Value> chosen;
  };

  outcome select(std::vector<Value> const& values, std::int64_t k, std::int64_t iteration) {
    auto const view = to_view(values);
    execution const exec;
    auto const said =
        selector.select(oktopk::selection_context{exec, k, iteration, alone, workspace}, candidates_in(view), state);
    CHECK(said.total() == said.entries.size());
    CHECK(said.entries.size() <= std::min(selector.capacity(k, static_cast<std::int64_t>(values.size())),
                                          static_cast<std::int64_t>(values.size())));
    return {said.reevaluated, entries_of(said.entries)};
  }
};

/// Magnitudes 1 .. size in some order.
std::vector<float> permutation(std::int64_t size, float scale = 1) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < size; ++i) {
    values.push_back(scale * static_cast<float>(1 + (i * 37) % size) * (i % 2 == 0 ? 1.0F : -1.0F));
  }
  return values;
}

} // namespace

TEMPLATE_TEST_CASE("exact selects exactly the k largest, ties to the lower index", "", float, double) {
  bench<oktopk::exact, TestType> exact;
  for (auto const& [name, from] : distributions<TestType>()) {
    // Long ones are guessed at, and on several threads cut in chunks; short ones go through histograms.
    for (std::int64_t const size : {1, 2, 50, 3000, 70000}) {
      auto const values = drawn<TestType>(from, size, 5);
      for (std::int64_t const k : std::set<std::int64_t>{0, 1, size / 100, size / 5, (size + 1) / 2, size}) {
        auto const result = exact.select(values, k, 0);
        auto const expected = top(all_entries(values), k);
        if (result.chosen.indices != expected.indices || bits(result.chosen.values) != bits(expected.values)) {
          FAIL_CHECK(name << ", size " << size << ", k " << k);
        }
      }
    }
  }
}

TEST_CASE("exact selects the same whatever it has guessed before") {
  auto const kinds = distributions<float>();
  bench<oktopk::exact> practised;
  for (std::uint64_t call = 0; call < 60; ++call) {
    auto const values = drawn<float>(kinds[noise(9, call) % kinds.size()].second, 4000, call);
    auto const k = number_in(1, 300, noise(10, call));
    bench<oktopk::exact> fresh;
    bench<oktopk::exact> misled;
    misled.state.guess.prefilter.magnitude = call % 3 == 0   ? std::numeric_limits<float>::max()
                                             : call % 3 == 1 ? std::numeric_limits<float>::denorm_min()
                                                             : std::numeric_limits<float>::quiet_NaN();
    auto const expected = top(all_entries(values), k);
    CAPTURE(call, k);
    for (auto* each : {&practised, &fresh, &misled}) {
      auto const result = each->select(values, k, 0);
      CHECK((result.chosen.indices == expected.indices));
      CHECK((bits(result.chosen.values) == bits(expected.values)));
    }
  }
}

TEST_CASE("the same state gives the same guesses, whatever the buffers were used for before") {
  auto const kinds = distributions<float>();
  bench<oktopk::exact> practised;
  for (std::int64_t const k : {70000, 100, 70000}) { // leaves buffers that have grown, and been swapped
    practised.select(drawn<float>(kinds[0].second, 70000, 1), k, 0);
  }
  bench<oktopk::exact> fresh;
  fresh.state = practised.state;
  for (std::uint64_t call = 0; call < 12; ++call) {
    // Long, and far larger every other time: then almost all reach the last guess, more than fresh buffers hold.
    auto values = drawn<float>(kinds[0].second, 60000, call);
    for (float& value : values) {
      value *= call % 2 == 0 ? 1.0F : 1000.0F;
    }
    auto const k = number_in(1, 300, noise(10, call));
    CAPTURE(call, k);
    practised.select(values, k, 0);
    fresh.select(values, k, 0);
    CHECK((practised.state == fresh.state));
  }
}

TEST_CASE("reused_threshold selects by the old threshold until tau' iterations have passed") {
  bench<reused_threshold> reused{reused_threshold({.tau_prime = 5})};
  std::int64_t const k = 100;
  for (int iteration = 7; iteration < 30; ++iteration) { // the first call need not be iteration 0
    // Larger by 1 % each time: more and more pass, until the threshold is found anew.
    auto const values = permutation(1009, std::pow(1.01F, static_cast<float>(iteration)));
    float const old = reused.state.threshold;
    auto const result = reused.select(values, k, iteration);
    bool const due = (iteration - 7) % 5 == 0;
    CAPTURE(iteration);
    CHECK(result.reevaluated == due);
    auto const expected = top(due ? all_entries(values) : at_least(all_entries(values), old), k); // and k at most
    CHECK((result.chosen == expected));
    CHECK(reused.state.threshold == (due ? smallest(expected) : old));
    CHECK(reused.state.evaluated == (due ? iteration : iteration - (iteration - 7) % 5));
  }
}

TEST_CASE("reused_threshold keeps a threshold at the ends of its band and drops it beyond") {
  // Magnitudes 1 .. 1009, k = 90: the threshold is 920, and a shift moves the count.
  std::int64_t const k = 90;
  auto const shifted = [](int by) {
    auto values = permutation(1009);
    for (float& x : values) {
      x += x > 0 ? static_cast<float>(by) : -static_cast<float>(by);
    }
    return values;
  };
  struct at {
    int shift;
    bool kept;
  };
  for (at const each :
       {at{0, true}, at{45, true}, at{46, false}, at{-30, true}, at{-31, false}, at{2000, false}, at{-919, false}}) {
    bench<reused_threshold> reused;
    reused.select(shifted(0), k, 0);
    REQUIRE(reused.state.threshold == 920);
    auto const values = shifted(each.shift);
    auto const result = reused.select(values, k, 1);
    CAPTURE(each.shift);
    CHECK(result.reevaluated == !each.kept);
    CHECK(result.chosen.size() == std::min(k, each.kept ? k + each.shift : k));
    CHECK((result.chosen == top(each.kept ? at_least(all_entries(values), 920.0F) : all_entries(values), k)));
    if (!each.kept) {
      CHECK((result.chosen == top(all_entries(values), k)));
      CHECK(reused.state.evaluated == 1);
    }
  }
}

TEST_CASE("reused_threshold has a band of its own where it is told so") {
  bench<reused_threshold> narrow{reused_threshold({.tau_prime = 100, .low = 1, .high = 1})};
  auto values = permutation(200);
  CHECK(narrow.select(values, 20, 0).reevaluated);
  CHECK_FALSE(narrow.select(values, 20, 1).reevaluated);
  *std::max_element(values.begin(), values.end()) = 0;
  CHECK(narrow.select(values, 20, 2).reevaluated);

  bench<reused_threshold> wide{reused_threshold({.tau_prime = 100, .low = 0, .high = 3})};
  wide.select(permutation(200), 20, 0);
  CHECK(wide.select(permutation(200, 1e-6F), 20, 1).chosen.size() == 0);
  auto const larger = wide.select(permutation(200, 1.25F), 20, 2); // 145 .. 200 pass: 56, of which 20 are kept
  CHECK_FALSE(larger.reevaluated);
  CHECK(larger.chosen.size() == 20);
  CHECK(wide.select(permutation(200, 2), 20, 3).reevaluated);
}

TEST_CASE("reused_threshold with ties selects no more than its capacity") {
  bench<reused_threshold> reused;
  std::vector<float> values(300, 1);
  // All tie with the threshold: the old one would select everything in every iteration.
  for (int iteration = 0; iteration < 4; ++iteration) {
    auto const result = reused.select(values, 10, iteration);
    CHECK(result.reevaluated);
    CHECK((result.chosen == top(all_entries(values), 10)));
  }
  values.assign(300, 0);
  CHECK(reused.select(values, 10, 5).chosen.size() == 10);
}

TEST_CASE("reused_threshold of nothing selects nothing and stays as it was") {
  bench<reused_threshold> reused;
  CHECK(reused.select(permutation(50), 0, 0).chosen.size() == 0);
  CHECK(reused.state.evaluated == -1);
  CHECK(reused.select({}, 0, 1).chosen.size() == 0);
}

TEST_CASE("selectors tell their capacity") {
  CHECK(oktopk::exact().capacity(10, 1000) == 10);
  CHECK(oktopk::exact().bounded());
  CHECK(reused_threshold().capacity(10, 1000) == 15);
  CHECK(reused_threshold().capacity(11, 1000) == 16);
  CHECK(reused_threshold().capacity(900, 1000) == 1000);
  CHECK(reused_threshold().bounded());
  CHECK_FALSE(reused_threshold({.high = std::numeric_limits<double>::infinity()}).bounded());
  CHECK_FALSE(unguarded_threshold().bounded());
  CHECK(unguarded_threshold().capacity(10, 1000) == 1000);
  CHECK(unguarded_threshold().capacity(0, 1000) == 1000);
}
