// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <oktopk_bench/input.hpp>
#include <oktopk_bench/reference.hpp>

#include "support/catch.hpp"

#include <iterator>

namespace {

constexpr std::int64_t length = 200'000;
constexpr std::int64_t k = length / 100;

std::vector<float> gradient(int rank, std::int64_t step, std::uint64_t seed = 1, std::int64_t size = length) {
  std::vector<float> values(static_cast<std::size_t>(size));
  oktopk_bench::synthetic_input(size, seed, rank).read(step, values);
  return values;
}

std::vector<std::int64_t> shared(std::vector<std::int64_t> const& a, std::vector<std::int64_t> const& b) {
  std::vector<std::int64_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

} // namespace

TEST_CASE("synthetic gradients depend on seed, rank and step alone") {
  CHECK(gradient(1, 5) == gradient(1, 5));
  CHECK(gradient(1, 5) != gradient(1, 5, 2));
  CHECK(gradient(1, 5) != gradient(2, 5));
  CHECK(gradient(1, 5) != gradient(1, 6));
  CHECK(gradient(0, -3) != gradient(0, 3));
}

TEST_CASE("synthetic gradients are heavy-tailed") {
  auto const values = gradient(0, 0);
  double square = 0;
  double largest = 0;
  for (float const value : values) {
    square += static_cast<double>(value) * static_cast<double>(value);
    largest = std::max(largest, std::abs(static_cast<double>(value)));
  }
  double const deviation = std::sqrt(square / length);
  CHECK(largest > 12 * deviation); // of 200,000 normal values the largest is about 4.6 deviations away
}

TEST_CASE("synthetic selections overlap between ranks and change slowly") {
  auto const first = oktopk_bench::top_k(gradient(0, 0), k);
  auto const other = oktopk_bench::top_k(gradient(1, 0), k);
  auto const later = oktopk_bench::top_k(gradient(0, 1), k);
  auto const both = static_cast<std::int64_t>(shared(first, other).size());
  CHECK(both > 3 * k / 100); // independent selections would share one per cent
  CHECK(both < k / 2);
  CHECK(static_cast<std::int64_t>(shared(first, later).size()) > 3 * k / 4);
}

TEST_CASE("synthetic selections crowd in places") {
  std::vector<std::int64_t> regions(8);
  for (std::int64_t const index : oktopk_bench::top_k(gradient(0, 0), k)) {
    regions[static_cast<std::size_t>(index * 8 / length)] += 1;
  }
  CHECK(*std::max_element(regions.begin(), regions.end()) > k / 4);
}

TEST_CASE("synthetic gradients of any length are finite") {
  for (std::int64_t const size : {1, 2, 23, 24, 25, 1000, 200'000}) {
    auto const values = gradient(0, 0, 3, size);
    CHECK(std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }));
    CHECK(std::any_of(values.begin(), values.end(), [](float value) { return value != 0; }));
  }
}
