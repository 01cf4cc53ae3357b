// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "format/suite.hpp"

#include <oktopk/format/gap8.hpp>

using namespace oktopk_tests;
using oktopk::gap8;

static_assert(oktopk::detail::encodes_on<gap8<>, Kokkos::DefaultExecutionSpace>);
static_assert(std::same_as<oktopk::detail::width_of<gap8<>>, std::int64_t>);
static_assert(std::same_as<oktopk::detail::width_of<oktopk::coo<>>, oktopk::detail::width_of_one>);

TEMPLATE_TEST_CASE("gap8 keeps the contract of a format, for rows of any width", "", gap8<>,
                   (gap8<double, std::int64_t>), (gap8<std::int64_t, std::int32_t>)) {
  for (std::int64_t const width : {1, 3}) {
    check_format(TestType(width));
  }
}

TEST_CASE(
    "gap8 takes a byte of most gaps, a bitmap where a seventh of the places are full, and no indices where all are") {
  gap8<float, std::int64_t> const rows(2);
  auto const bytes = [&](std::int64_t count, region where) {
    return std::ssize(encoded(some_entries(count, where, rows), where, rows));
  };
  CHECK(bytes(0, {0, 1000}) == 0);
  CHECK(bytes(31, {0, 1000}) == 31 * 8 + 16 + 30);   // gaps of 31 places
  CHECK(bytes(10, {0, 1280}) == 10 * 8 + 16 + 10);   // of 127 places, and the last of 254
  CHECK(bytes(10, {0, 130000}) == 10 * 8 + 16 + 19); // of 12,999, and of 25,999
  CHECK(bytes(300, {0, 3000}) == 300 * 8 + 2 * 16 + 298);
  CHECK(bytes(400, {0, 3000}) == 47 * 8 + 400 * 8);
  CHECK(bytes(999, {0, 1000}) == 16 * 8 + 999 * 8);
  CHECK(bytes(1000, {5, 1005}) == 1000 * 8);
}

TEST_CASE("gap8: what random entries take is about what is expected of them") {
  gap8<> const format;
  for (std::int64_t const every : {3, 20, 100, 5000}) {
    std::int64_t const width = 2000 * every;
    arrays<gap8<>> sent(0);
    seeded draw(3);
    for (std::int64_t i = 0; i < width; ++i) {
      if (draw.below(every) == 0) {
        sent.indices.push_back(static_cast<std::int32_t>(i));
        sent.values.push_back(1);
      }
    }
    auto const count = std::ssize(sent.indices);
    auto const bytes = static_cast<double>(std::ssize(encoded(sent, {0, width})));
    CAPTURE(every, count, bytes);
    CHECK(oktopk::detail::expected_bytes(format, static_cast<double>(count), static_cast<double>(width)) ==
          Approx(bytes).epsilon(0.03));
  }
}

TEST_CASE("gap8: a damaged message stays in the region and in the arrays, and values that are missing are none") {
  gap8<> const format;
  region const where{1000, 1100};
  auto const check = [&](std::vector<std::byte> const& damaged, std::int64_t count, region in) {
    auto const got = decoded<gap8<>>(damaged, count, in);
    CHECK(std::ranges::all_of(got.indices, [&](std::int64_t i) { return i >= in.begin && i < in.end; }));
    return got;
  };
  auto const sent = some_entries<gap8<>>(60, where); // a bitmap
  auto const wire = encoded(sent, where);
  for (std::byte const wrong : {std::byte(0), std::byte(0xff)}) {
    auto damaged = wire;
    std::fill_n(damaged.begin(), 16, wrong);
    auto const got = check(damaged, 60, where);
    for (std::size_t i = 0; i < 60; ++i) {
      CHECK(std::isnan(got.values[i]) == (wrong == std::byte(0)));
    }
  }
  CHECK(outcome_of([&] { decoded<gap8<>>(wire, 60, where, std::ssize(wire) - 1); }).code ==
        oktopk::fault::damaged_message);
  CHECK(outcome_of([&] { decoded<gap8<>>(wire, 101, where); }).code == oktopk::fault::damaged_message);
  region const wide{1000, 100000}; // gaps
  auto const gaps = encoded(some_entries<gap8<>>(600, wide), wide);
  seeded draw(8);
  for (int repeat = 0; repeat < 2000; ++repeat) {
    auto damaged = gaps;
    for (int i = 0; i < 4; ++i) {
      damaged[static_cast<std::size_t>(600 * 4 + draw.below(std::ssize(gaps) - 600 * 4))] =
          static_cast<std::byte>(draw.below(256));
    }
    check(damaged, 600, wide);
  }
  auto const cut = check({gaps.begin(), gaps.end() - 20}, 600, wide);
  CHECK(std::ranges::count_if(cut.values, [](float x) { return std::isnan(x); }) > 0);
  CHECK(std::isnan(cut.values.back()));
}
