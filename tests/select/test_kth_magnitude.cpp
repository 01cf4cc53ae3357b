// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "select/distributions.hpp"
#include "support/catch.hpp"

#include <oktopk/select/exact.hpp>

#include <functional>
#include <set>

using namespace oktopk_tests;

namespace {

template <class Value>
std::string kth_fault(std::vector<Value> const& values, std::int64_t k, workspace_of<Value>& workspace) {
  std::vector<Value> magnitudes;
  for (Value const x : values) {
    magnitudes.push_back(std::fabs(x));
  }
  auto const place = magnitudes.begin() + (k - 1);
  std::nth_element(magnitudes.begin(), place, magnitudes.end(), std::greater<>());
  Value const expected = *place;
  auto const larger = std::count_if(magnitudes.begin(), magnitudes.end(), [&](Value x) { return x > expected; });
  auto const equal = std::count(magnitudes.begin(), magnitudes.end(), expected);

  auto const view = to_view(values);
  auto const found = oktopk::detail::kth_magnitude(execution(), candidates_in(view), k, workspace);
  if (oktopk::detail::magnitude_from_bits<Value>(found.threshold) != expected) {
    return "threshold " + std::to_string(oktopk::detail::magnitude_from_bits<Value>(found.threshold)) + " instead of " +
           std::to_string(expected);
  }
  if (found.ties != equal || found.ties_wanted != k - larger) {
    return "ties " + std::to_string(found.ties) + ", wanted " + std::to_string(found.ties_wanted) + "; there are " +
           std::to_string(equal) + ", wanted " + std::to_string(k - larger);
  }
  return {};
}

template <class Value>
void check_all_distributions() {
  workspace_of<Value> workspace; // one for all: the histograms are used again
  for (auto const& [name, from] : distributions<Value>()) {
    for (std::int64_t const size : {1, 2, 3, 17, 1000, 4099}) {
      auto const values = drawn<Value>(from, size, static_cast<std::uint64_t>(size));
      for (std::int64_t const k : std::set<std::int64_t>{1, std::min<std::int64_t>(2, size), (size + 99) / 100,
                                                         (size + 2) / 3, std::max<std::int64_t>(size - 1, 1), size}) {
        std::string const fault = kth_fault(values, k, workspace);
        if (!fault.empty()) {
          FAIL_CHECK(name << ", size " << size << ", k " << k << ": " << fault);
        }
      }
    }
  }
}

} // namespace

TEMPLATE_TEST_CASE("kth_magnitude agrees with std::nth_element", "", float, double) {
  check_all_distributions<TestType>();
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
    for (std::int64_t const k : {large, large + 1, large + 500}) {
      oktopk::detail::one_rank alone;
      oktopk::detail::search_guess<float> guess;
      oktopk::detail::search_alone<execution, std::int32_t, float> search({execution(), k, 0, alone, workspace});
      CHECK(same(selection_in(workspace, search.run(candidates_in(view), guess).entries.size()), largest(values, k)));
    }
  }
}

TEST_CASE("kth_magnitude puts NaN above infinity above all else") {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  float const infinity = std::numeric_limits<float>::infinity();
  workspace_of<float> workspace;
  auto const view = to_view(std::vector<float>{1, -infinity, 3, -nan, std::numeric_limits<float>::max()});
  auto const at = [&](std::int64_t k) {
    auto const found = oktopk::detail::kth_magnitude(execution(), candidates_in(view), k, workspace);
    return oktopk::detail::magnitude_from_bits<float>(found.threshold);
  };
  CHECK(std::isnan(at(1)));
  CHECK(at(2) == infinity);
  CHECK(at(3) == std::numeric_limits<float>::max());
  CHECK(at(5) == 1);
}

TEST_CASE("kth_magnitude of fewer candidates than k keeps all of them") {
  workspace_of<float> workspace;
  auto const view = to_view(std::vector<float>{7, -5, 6, 5});
  auto const found = oktopk::detail::kth_magnitude(execution(), candidates_in(view), 100, workspace);
  CHECK(found.threshold <= oktopk::detail::magnitude_bits(5.0F));
  CHECK(found.ties_wanted == found.ties);
  // As documented: the threshold is that of the smallest.
  CHECK(found.threshold == oktopk::detail::magnitude_bits(5.0F));
  CHECK(found.ties == 2);

  auto const none = to_view(std::vector<float>{});
  auto const nothing = oktopk::detail::kth_magnitude(execution(), candidates_in(none), 3, workspace);
  CHECK(nothing.ties == 0);
  CHECK(nothing.ties_wanted == 0);
}
