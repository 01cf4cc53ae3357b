// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "select/suite.hpp"

#include <oktopk/select/random_k.hpp>

#include <set>

using namespace oktopk_tests;

namespace {

sparse_vector<float> drawn_by(oktopk::random_k const& selector, std::vector<float> const& values, std::int64_t k,
                              std::int64_t iteration) {
  auto const view = to_view(values);
  oktopk::detail::one_rank alone;
  selecting::subject<std::int32_t, float, oktopk::random_k> subject{selector};
  return subject.select(alone, candidates_in(view), k, iteration, static_cast<std::int64_t>(values.size()));
}

/// The chi-squared statistic of counts that should all be alike, less its mean, in standard deviations.
double surprise(std::vector<std::int64_t> const& counts, double expected, double variance) {
  double sum = 0;
  for (std::int64_t const count : counts) {
    sum += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected) / variance;
  }
  auto const cells = static_cast<double>(counts.size());
  return (sum - cells) / std::sqrt(2 * cells);
}

} // namespace

TEST_CASE("random_k keeps the contract of a selector") {
  check_selector<oktopk::random_k>({}, {.several_ranks = false});
}

TEST_CASE("random_k is a permutation of any number of places") {
  for (std::int64_t const size : {1, 2, 3, 4, 5, 63, 64, 65, 1000, 4097}) {
    oktopk::detail::index_shuffle const shuffle(size, 7, 3);
    std::set<std::uint64_t> images;
    for (std::int64_t i = 0; i < size; ++i) {
      images.insert(shuffle(static_cast<std::uint64_t>(i)));
    }
    CHECK(
        (images.size() == static_cast<std::size_t>(size) && *images.rbegin() == static_cast<std::uint64_t>(size) - 1));
  }
  CHECK(oktopk::detail::index_shuffle(std::int64_t(1) << 62, 1, 1)(5) < std::uint64_t(1) << 62);
}

TEST_CASE(
    "random_k draws the same places for the same seed and iteration, whatever the values are, and others for others") {
  auto const ones = std::vector<float>(5000, 1);
  auto const others = drawn<float>([](std::uint64_t b) { return static_cast<float>(heavy_tailed(b)); }, 5000, 9);
  auto const places = drawn_by(oktopk::random_k({.seed = 4}), ones, 100, 8).indices;
  CHECK(drawn_by(oktopk::random_k({.seed = 4}), others, 100, 8).indices == places);
  CHECK(drawn_by(oktopk::random_k({.seed = 4}), ones, 100, 9).indices != places);
  CHECK(drawn_by(oktopk::random_k({.seed = 5}), ones, 100, 8).indices != places);
  CHECK(drawn_by(oktopk::random_k({.seed = -4}), ones, 100, 8).indices != places);
  CHECK(drawn_by(oktopk::random_k(), ones, 5000, 0).size() == 5000);
}

TEST_CASE("random_k takes each place, each pair of places and each distance equally often") {
  for (std::int64_t const size : {16, 37, 100}) {
    CAPTURE(size);
    auto const values = std::vector<float>(static_cast<std::size_t>(size), 1);
    std::int64_t const k = size / 5;
    constexpr int draws = 4000;
    auto const n = static_cast<std::size_t>(size);
    std::vector<std::int64_t> single(n);
    std::vector<std::int64_t> pairs;
    std::vector<std::int64_t> again(1); // places that the next draw has, too
    std::vector<std::int64_t> together(n * n);
    sparse_vector<float> before;
    for (int draw = 0; draw < draws; ++draw) {
      auto const chosen = drawn_by(oktopk::random_k({.seed = 1}), values, k, draw);
      for (std::int64_t const i : chosen.indices) {
        single[static_cast<std::size_t>(i)] += 1;
        again[0] += std::count(before.indices.begin(), before.indices.end(), i);
        for (std::int64_t const j : chosen.indices) {
          together[static_cast<std::size_t>(i) * n + static_cast<std::size_t>(j)] += i < j ? 1 : 0;
        }
      }
      before = chosen;
    }
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = i + 1; j < n; ++j) {
        pairs.push_back(together[i * n + j]);
      }
    }
    auto const share = static_cast<double>(k) / static_cast<double>(size);
    double const of_pair = share * static_cast<double>(k - 1) / static_cast<double>(size - 1);
    CHECK(std::abs(surprise(single, draws * share, draws * share * (1 - share))) < 4);
    CHECK(std::abs(surprise(pairs, draws * of_pair, draws * of_pair * (1 - of_pair))) < 4);
    double const repeated = (draws - 1) * share * static_cast<double>(k);
    CHECK(std::abs(static_cast<double>(again[0]) - repeated) < 4 * std::sqrt(repeated));
  }
}

TEST_CASE("random_k tells its seed to the other ranks, and how many it selects") {
  CHECK(oktopk::random_k({.seed = -2}).describe() == "random_k (seed -2)");
  CHECK(oktopk::random_k().problem().empty());
  CHECK(oktopk::random_k().bounded());
  CHECK(oktopk::random_k().capacity(1000, 1'000'000) == 1000);
  CHECK(oktopk::random_k().capacity(1000, 10) == 10);
}
