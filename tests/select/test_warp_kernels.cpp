// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "select/distributions.hpp"
#include "support/warps.hpp"

#include <oktopk/select/kernel/compact.hpp>
#include <oktopk/select/kernel/device.hpp>

// The kernels that select on a device, in every form of a warp: also on a host, where one thread plays each.
using namespace oktopk_tests;
using oktopk::detail::magnitude_bits;
using oktopk::detail::tile_width;

namespace {

/// The candidates that reach a magnitude; NaN reaches any.
template <class Value>
sparse_vector<Value> reaching(std::vector<Value> const& values, Value least) {
  sparse_vector<Value> entries;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (magnitude_bits(values[i]) >= magnitude_bits(least)) {
      entries.push_back(static_cast<std::int64_t>(i), values[i]);
    }
  }
  return entries;
}

/// Lengths around those of rows, warps, tiles and of what is written at a time.
template <class Warp, class Value>
std::vector<std::int64_t> lengths() {
  std::int64_t const tile = tile_width<Warp, Value>;
  std::vector<std::int64_t> all = {0, 1, 2};
  for (std::int64_t const width : {std::int64_t(Warp::lanes), tile / 2, tile, 3 * tile}) {
    for (std::int64_t const beside : {-1, 0, 1}) {
      all.push_back(width + beside);
    }
  }
  return all;
}

template <class Warp, class Index, class Value>
void check_compact(std::vector<Value> const& values, Value least, std::int64_t capacity,
                   workspace_of<Value, Index>& workspace) {
  auto const view = to_view(values);
  workspace.reserve(execution(), capacity);
  std::int64_t const count =
      oktopk::detail::compact_by_teams<Warp>(execution(), candidates_in<Index>(view), magnitude_bits(least), workspace);
  auto const expected = reaching(values, least);
  REQUIRE(count == expected.size());
  if (count <= workspace.indices.capacity()) {
    REQUIRE(same(selection_in(workspace, count), expected));
  }
}

/// How the k largest are found from a guess, and whether they are where that is promised.
template <class Warp, class Value>
void check_near_guess(std::vector<Value> const& values, std::int64_t k, Value guess, std::int64_t most,
                      workspace_of<Value>& workspace) {
  auto const view = to_view(values);
  auto const result =
      oktopk::detail::select_near_guess<Warp>(execution(), candidates_in(view), k, guess, most, workspace);
  auto const near_guess = reaching(values, guess);
  CHECK(result.count == near_guess.size());
  auto const expected = largest(values, k);
  auto threshold = std::numeric_limits<oktopk::detail::bits_of<Value>>::max();
  for (Value const value : expected.values) {
    threshold = std::min(threshold, magnitude_bits(value));
  }
  using bits = oktopk::detail::bits_of<Value>;
  bits const last = (bits(1) << std::numeric_limits<Value>::digits) - 1; // stands for all beyond the range
  bool const near = threshold >= magnitude_bits(guess) && threshold - magnitude_bits(guess) < last;
  REQUIRE(result.found == (near_guess.size() >= k && near_guess.size() <= most && near));
  if (result.found) {
    CHECK(result.threshold == threshold);
    CHECK(result.kept == k);
    REQUIRE(same(selection_in(workspace, k), expected));
    std::int64_t first = -1;
    for (std::size_t i = expected.values.size(); i-- > 0;) {
      first = magnitude_bits(expected.values[i]) >= oktopk::detail::infinity_bits<Value> ? expected.indices[i] : first;
    }
    CHECK(result.not_finite == first);
  }
}

} // namespace

TEMPLATE_LIST_TEST_CASE("warps compact what passes, in ascending order, at any length, doubles and 64-bit indices too",
                        "", warps) {
  auto const check = [](auto zero, auto& workspace) {
    using value = decltype(zero);
    for (std::int64_t const length : lengths<TestType, value>()) {
      auto const values = drawn<value>([](std::uint64_t b) { return static_cast<value>(number_in(-20, 20, b)); },
                                       length, static_cast<std::uint64_t>(length));
      for (int const threshold : {0, 15, 20, 21}) {
        check_compact<TestType>(values, static_cast<value>(threshold), length, workspace);
      }
    }
  };
  workspace_of<float> floats;
  workspace_of<double, std::int64_t> doubles;
  workspace_of<float, std::int64_t> far_floats;
  check(0.0F, floats);
  check(0.0, doubles);
  check(0.0F, far_floats);
}

TEMPLATE_LIST_TEST_CASE("warps that have too little room tell how much it takes", "", warps) {
  auto const values = drawn<float>([](std::uint64_t b) { return static_cast<float>(number_in(-20, 20, b)); }, 30000, 5);
  for (std::int64_t const capacity : {0, 1, 1000, 20000}) {
    workspace_of<float> workspace;
    check_compact<TestType>(values, 3.0F, capacity, workspace);
    check_compact<TestType>(values, 20.0F, capacity, workspace); // and goes on as if nothing had been
  }
}

TEMPLATE_LIST_TEST_CASE("warps find the k largest near a guess, whatever the values", "", warps) {
  workspace_of<float> floats;
  workspace_of<double> doubles;
  for (auto const& [name, draw] : distributions<float>()) {
    INFO(name);
    auto const values = drawn<float>(draw, 9000, 7);
    for (std::int64_t const k : {1, 700}) {
      auto const exact = std::abs(largest(values, k).values.back());
      for (float const guess : {exact, exact / 2, exact / 64}) {
        check_near_guess<TestType>(values, k, std::isfinite(guess) ? guess : 1.0F, 3 * k + 1000, floats);
      }
    }
  }
  for (auto const& [name, draw] : distributions<double>()) {
    INFO(name);
    auto const values = drawn<double>(draw, 3000, 8);
    for (double const guess : {0.3, 1.0}) {
      check_near_guess<TestType>(values, 100, guess, 3000, doubles);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("warps note the first of the selected that is not finite", "", warps) {
  workspace_of<float> workspace;
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values(10000, 1.0F);
  values[123] = -inf;
  values[9000] = 1.5F;
  check_near_guess<TestType>(values, 1, inf, 100, workspace);
  values[124] = nan;
  values[9999] = -nan;
  check_near_guess<TestType>(values, 3, inf, 100, workspace);
  check_near_guess<TestType>(values, 2, inf, 100, workspace); // both NaNs are larger than the infinity
  auto const view = to_view(values);
  auto const from = candidates_in(view);
  auto const all =
      oktopk::detail::select_above_threshold<TestType>(execution(), from, magnitude_bits(1.5F), 1, 4, workspace);
  CHECK(all.kept == 4);
  CHECK(all.not_finite == 123);
}

TEMPLATE_LIST_TEST_CASE("warps keep the first ties", "", warps) {
  workspace_of<float> workspace;
  for (std::int64_t const length : {1, 32, 127, 128, 129, 1000, 40000}) {
    auto const values = drawn<float>([](std::uint64_t b) { return static_cast<float>(b % 3); }, length, 3);
    auto const view = to_view(values);
    std::int64_t const ones = reaching(values, 1.0F).size() - reaching(values, 2.0F).size();
    for (std::int64_t const ties : {std::int64_t(0), std::int64_t(1), ones / 2, ones, ones + 5}) {
      std::int64_t const twos = reaching(values, 2.0F).size();
      auto const result = oktopk::detail::select_above_threshold<TestType>(
          execution(), candidates_in(view), magnitude_bits(1.0F), ties, length, workspace);
      std::int64_t const kept = twos + std::min(ties, ones);
      REQUIRE(result.kept == kept);
      CHECK(result.not_finite == -1);
      REQUIRE(same(selection_in(workspace, kept), largest(values, kept)));
    }
  }
}

TEMPLATE_LIST_TEST_CASE("warps count every digit as the host does", "", warps) {
  auto const values = drawn<float>([](std::uint64_t b) { return static_cast<float>(heavy_tailed(b)); }, 9000, 9);
  auto const view = to_view(values);
  for (int const width : {4, 9, 12}) {
    for (int const range_bits : {12, 24, 31}) {
      oktopk::detail::magnitude_range<float> const range{range_bits == 31 ? 0 : magnitude_bits(0.5F), range_bits};
      for (int shift = range_bits - width; shift >= 0; shift -= width) {
        auto const middle = range.place(std::max(range.floor, magnitude_bits(1.0F)));
        oktopk::detail::digit<float> const which{range, middle >> shift >> (width - 1) >> 1, shift, width};
        auto const expected = histogram_by_definition(values, which);
        auto const sums = to_view(std::vector<std::int64_t>(expected.size(), 0));
        Kokkos::View<oktopk::detail::selection_record*, memory> const record("record", 1);
        auto const out = to_view(std::vector<std::int64_t>(expected.size(), -1));
        for (int turn = 0; turn < 2; ++turn) { // the sums are zero again after it
          oktopk::detail::count_digit_by_teams(execution(), 9000,
                                               oktopk::detail::digit_kernel<TestType, false, execution, float>{
                                                   view.data(), 9000, which, sums.data(), record.data(), out.data()});
          REQUIRE(to_vector(out) == expected);
        }
      }
    }
  }
}
