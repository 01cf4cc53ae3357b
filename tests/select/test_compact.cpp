// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "select/distributions.hpp"

#include <oktopk/select/kernel/compact.hpp>
#include <oktopk/select/kernel/source.hpp>

using namespace oktopk_tests;
using oktopk::detail::magnitude_bits;

namespace {

template <class Value = float>
std::vector<Value> some_values(std::int64_t size) {
  return drawn<Value>([](std::uint64_t b) { return static_cast<Value>(number_in(-20, 20, b)); }, size, 3);
}

} // namespace

TEMPLATE_TEST_CASE("compact writes what it keeps in ascending order", "", float, double) {
  for (std::int64_t const size : {0, 1, 31, 32, 63, 1000, 20000, 70000}) {
    auto const values = some_values<TestType>(size);
    auto const view = to_view(values);
    TestType const least = 15;
    auto const expected = at_least(all_entries(values), least);
    workspace_of<TestType> workspace;
    workspace.reserve(execution(), size);
    auto const count = oktopk::detail::compact(execution(), candidates_in(view), magnitude_bits(least), workspace);
    CHECK(count == expected.size());
    CHECK((selection_in(workspace, count) == expected));
  }
}

TEST_CASE("compact with too little room says so, and how much it takes when asked to count all") {
  auto const values = some_values(40000);
  auto const view = to_view(values);
  auto const expected = at_least(all_entries(values), 10.0F);
  REQUIRE(expected.size() > 20000);
  for (std::int64_t const capacity : {std::int64_t(0), std::int64_t(1), std::int64_t(99), expected.size() - 1}) {
    workspace_of<float> workspace;
    workspace.reserve(execution(), capacity);
    REQUIRE(workspace.indices.capacity() == capacity);
    auto const kept = magnitude_bits(10.0F);
    CHECK(oktopk::detail::compact(execution(), candidates_in(view), kept, workspace) > capacity);
    CHECK(oktopk::detail::compact(execution(), candidates_in(view), kept, workspace, true) == expected.size());
  }
}

TEST_CASE("compact on a CPU writes nothing beyond its room, however the kept ones lie") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    // Crowds of kept ones between stretches of none.
    std::vector<float> values;
    for (std::uint64_t i = 0; i < 500; ++i) {
      bool const crowd = noise(seed, i / 40) % 3 == 0;
      values.push_back(noise(seed, i, 1) % 10 < (crowd ? 8U : 1U) ? 2.0F : 1.0F);
    }
    auto const expected = at_least(all_entries(values), 2.0F);
    oktopk::detail::candidates<std::int32_t, float, Kokkos::HostSpace> const from(
        oktopk::array_ref<float const, Kokkos::HostSpace>(values.data(), values.size()), {});
    std::int64_t const capacity = number_in(0, expected.size() + 40, noise(seed, 5));
    std::vector<std::int32_t> indices(600, -7);
    std::vector<float> kept(600, -7);
    auto const count =
        oktopk::detail::compact_range(from, oktopk::detail::magnitude_filter<float>{magnitude_bits(2.0F)}, 0, 500,
                                      indices.data(), kept.data(), capacity, seed % 2 == 0);
    auto const end = static_cast<std::size_t>(capacity);
    bool const clean = std::all_of(indices.begin() + capacity, indices.end(), [](auto i) { return i == -7; }) &&
                       std::all_of(kept.begin() + capacity, kept.end(), [](auto x) { return x == -7; });
    CAPTURE(seed, end);
    CHECK(clean);
    CHECK((count > capacity) == (expected.size() > capacity));
    if (count <= capacity) {
      CHECK(count == expected.size());
      CHECK(std::equal(expected.indices.begin(), expected.indices.end(), indices.begin()));
    }
  }
}

TEST_CASE("compact forms the accumulator as it selects from it") {
  for (std::int64_t const size : {0, 1, 31, 33, 1000, 70000}) {
    auto const residual = some_values(size);
    auto gradient = residual;
    std::reverse(gradient.begin(), gradient.end());
    std::vector<float> sums;
    for (std::size_t i = 0; i < residual.size(); ++i) {
      sums.push_back(residual[i] + 0.5F * gradient[i]);
    }
    auto const expected = at_least(all_entries(sums), 17.0F);
    // With room for all, and with too little: the accumulator is complete in any case.
    for (std::int64_t const capacity : {size, expected.size() / 2}) {
      auto const residual_view = to_view(residual);
      auto const gradient_view = to_view(gradient);
      auto const accumulator_view = to_view(std::vector<float>(residual.size(), -1.0F));
      oktopk::detail::accumulation<std::int32_t, float, memory> making;
      making.residual = oktopk::array_ref<float const, memory>(residual_view.data(), residual.size());
      making.gradient = oktopk::array_ref<float const, memory>(gradient_view.data(), residual.size());
      making.accumulator = oktopk::array_ref<float, memory>(accumulator_view.data(), residual.size());
      making.rate = 0.5F;
      workspace_of<float> workspace;
      workspace.reserve(execution(), capacity);
      auto const count = oktopk::detail::compact(execution(), making, magnitude_bits(17.0F), workspace);
      execution().fence();
      CHECK((to_vector(accumulator_view) == sums));
      CHECK((count > capacity) == (expected.size() > capacity));
      if (count <= capacity) {
        CHECK((selection_in(workspace, count) == expected));
      }
    }
  }
}

TEST_CASE("a selection above a threshold leaves out ties after the last one wanted") {
  auto const values = some_values(900);
  auto const view = to_view(values);
  std::vector<std::int64_t> ties;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::fabs(values[i]) == 12) {
      ties.push_back(static_cast<std::int64_t>(i));
    }
  }
  REQUIRE(ties.size() > 5);
  workspace_of<float> workspace;
  workspace.reserve(execution(), 900);
  for (std::size_t wanted = 0; wanted <= ties.size(); ++wanted) {
    std::int64_t const last = wanted > 0 ? ties[wanted - 1] : -1;
    sparse_vector<float> expected;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::fabs(values[i]) > 12 || (std::fabs(values[i]) == 12 && static_cast<std::int64_t>(i) <= last)) {
        expected.push_back(static_cast<std::int64_t>(i), values[i]);
      }
    }
    auto const written = oktopk::detail::write_above_threshold(execution(), candidates_in(view), magnitude_bits(12.0F),
                                                               static_cast<std::int64_t>(wanted), 900, workspace);
    CHECK(written.kept == expected.size());
    CHECK((selection_in(workspace, written.kept) == expected));
  }
}

TEST_CASE("compact takes indices that stand beside the values") {
  std::vector<float> const values{3, -1, 4, -1, 5};
  std::vector<std::int64_t> const indices{7, 90, std::int64_t(1) << 33, (std::int64_t(1) << 33) + 1,
                                          std::int64_t(1) << 50};
  auto const value_view = to_view(values);
  auto const index_view = to_view(indices);
  oktopk::detail::selection_workspace<std::int64_t, float, execution> workspace;
  workspace.reserve(execution(), 5);
  oktopk::detail::candidates<std::int64_t, float, memory> const from{
      oktopk::array_ref<float const, memory>(value_view.data(), 5),
      oktopk::array_ref<std::int64_t const, memory>(index_view.data(), 5)};
  REQUIRE(oktopk::detail::compact(execution(), from, magnitude_bits(3.0F), workspace) == 3);
  CHECK((to_vector(workspace.entries(3).indices) == std::vector<std::int64_t>{7, indices[2], indices[4]}));
}

TEST_CASE("first_non_finite finds the lowest position") {
  auto const found_in = [](std::vector<float> const& values) {
    auto const view = to_view(values);
    return oktopk::detail::first_non_finite<execution, float>(
        execution(), oktopk::array_ref<float const, memory>(view.data(), view.extent(0)));
  };
  float const infinity = std::numeric_limits<float>::infinity();
  float const nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values(5000, std::numeric_limits<float>::max());
  CHECK(found_in(values) == 5000);
  values[4999] = -infinity;
  CHECK(found_in(values) == 4999);
  values[1234] = nan;
  values[3000] = infinity;
  CHECK(found_in(values) == 1234);
  values[0] = -nan;
  CHECK(found_in(values) == 0);
  CHECK(found_in({}) == 0);
  CHECK(found_in({std::numeric_limits<float>::denorm_min(), -0.0F}) == 2);
}
