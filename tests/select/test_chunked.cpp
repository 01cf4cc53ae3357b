// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "select/suite.hpp"

#include <oktopk/select/chunked.hpp>

using namespace oktopk_tests;

namespace {

std::vector<float> heavy(std::int64_t length, std::uint64_t seed) {
  return drawn<float>([](std::uint64_t b) { return static_cast<float>(heavy_tailed(b)); }, length, seed);
}

sparse_vector<float> chosen_by(oktopk::chunked const& selector, std::vector<float> const& values, std::int64_t k) {
  auto const view = to_view(values);
  oktopk::detail::one_rank alone;
  selecting::subject<std::int32_t, float, oktopk::chunked> subject{selector};
  return subject.select(alone, candidates_in(view), k, 0, static_cast<std::int64_t>(values.size()));
}

std::vector<std::int64_t> counts_of(sparse_vector<float> const& chosen, std::int64_t length, std::int64_t chunk) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>((length + chunk - 1) / chunk));
  for (std::int64_t const i : chosen.indices) {
    counts[static_cast<std::size_t>(i / chunk)] += 1;
  }
  return counts;
}

} // namespace

TEST_CASE("chunked takes the same number of every chunk, and of a shorter one what it has") {
  auto const values = heavy(1003, 1); // 15 chunks of 64 and 43 values
  for (std::int64_t const per_chunk : {1, 5, 43, 50, 64}) {
    oktopk::chunked const selector({.chunk = 64, .per_chunk = per_chunk});
    std::vector<std::int64_t> expected(15, per_chunk);
    expected.push_back(std::min<std::int64_t>(per_chunk, 43));
    for (std::int64_t const k : {1, 500}) {
      CHECK(counts_of(chosen_by(selector, values, k), 1003, 64) == expected);
    }
    CHECK(chosen_by(selector, values, 0).size() == 0);
  }
}

TEST_CASE("chunked divides k among the chunks in proportion") {
  auto const values = heavy(1003, 2);
  oktopk::chunked const selector({.chunk = 64});
  for (std::int64_t const k : {1, 7, 14, 15, 16, 100, 999, 1003}) {
    CAPTURE(k);
    auto const counts = counts_of(chosen_by(selector, values, k), 1003, 64);
    CHECK(std::accumulate(counts.begin(), counts.end(), std::int64_t(0)) == k);
    auto const [least, most] = std::minmax_element(counts.begin(), counts.end() - 1);
    CHECK(*most - *least <= 1);
    CHECK(counts.back() == k * 43 / 1003);
  }
  // Those that give one more lie evenly: 7 of 15 chunks are never three in a row, nor are the others.
  auto const few = counts_of(chosen_by(selector, values, 7), 1003, 64);
  CHECK(few == std::vector<std::int64_t>{0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0});
}

TEST_CASE("chunked copes with chunks of very different scale") {
  std::vector<float> values = heavy(64 * 40, 4);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::ldexp(values[i], static_cast<int>(i / 64 * 7 % 120) - 60);
  }
  auto const chosen = chosen_by(oktopk::chunked({.chunk = 64, .per_chunk = 3}), values, 1);
  CHECK(same(chosen, selecting::largest_of_chunks(values, 64, chosen)));
  CHECK(chosen.size() == 120);
}

TEST_CASE("chunked finds what is not finite, also in a chunk that gives nothing") {
  for (std::int64_t const bad : {0, 70, 700, 970, 1002}) {
    auto values = heavy(1003, 5);
    for (float const what : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
      values[static_cast<std::size_t>(bad)] = what;
      for (std::int64_t const k : {1, 7, 100}) {
        CAPTURE(bad, k);
        auto const chosen = chosen_by(oktopk::chunked({.chunk = 64}), values, k);
        CHECK(chosen.size() == k);
        CHECK(std::count(chosen.indices.begin(), chosen.indices.end(), bad) == 1);
      }
    }
  }
}

TEST_CASE("chunked tells what is wrong with its options") {
  auto const problem = [](std::int64_t chunk, std::int64_t per_chunk) {
    return oktopk::chunked({.chunk = chunk, .per_chunk = per_chunk}).problem();
  };
  CHECK(problem(4096, 0).empty());
  CHECK(problem(64, 64).empty());
  CHECK(problem(63, 0) == "chunk must be 64 to 1048576, not 63");
  CHECK(problem((1 << 20) + 1, 0) == "chunk must be 64 to 1048576, not 1048577");
  CHECK(problem(64, 65) == "per_chunk must be 0 to chunk, which is 64, not 65");
  CHECK(problem(64, -1) == "per_chunk must be 0 to chunk, which is 64, not -1");
  CHECK(oktopk::chunked({.chunk = 64, .per_chunk = 2}).describe() == "chunked (chunk 64, per_chunk 2)");
}

TEST_CASE("chunked knows before how many it selects") {
  CHECK(oktopk::chunked().capacity(1000, 1'000'000) == 1000);
  CHECK(oktopk::chunked({.per_chunk = 32}).capacity(1, 8192) == 64);
  CHECK(oktopk::chunked({.per_chunk = 32}).capacity(1, 8192 + 5) == 69);
  CHECK(oktopk::chunked({.per_chunk = 32}).capacity(0, 8192) == 0);
  CHECK(oktopk::chunked().capacity(std::int64_t(1) << 35, std::int64_t(1) << 36) == std::int64_t(1) << 35);
  CHECK(oktopk::chunked().bounded());
  CHECK(!oktopk::chunked({.per_chunk = 32}).bounded());
}

TEST_CASE("a team for each chunk selects the same as one thread") {
  for (auto const& [name, from] : distributions<float>()) {
    for (std::int64_t const size : {1, 63, 64, 65, 1003}) {
      auto const values = drawn<float>(from, size, 6);
      auto const view = to_view(values);
      for (auto const& shares :
           {oktopk::detail::same_shares(size, 64, 3), oktopk::detail::proportional_shares(size, 64, (size + 9) / 10)}) {
        CAPTURE(name, size);
        execution const exec;
        workspace_of<float> by_threads;
        workspace_of<float> by_teams;
        by_threads.reserve(exec, shares.total() + 1);
        by_teams.reserve(exec, shares.total() + 1);
        auto const source = candidates_in(view);
        oktopk::detail::select_chunks<execution, false>(exec, source, shares, by_threads.indices.data(),
                                                        by_threads.values.data());
        oktopk::detail::select_chunks<execution, true>(exec, source, shares, by_teams.indices.data(),
                                                       by_teams.values.data());
        exec.fence();
        CHECK(same(selection_in(by_teams, shares.total()), selection_in(by_threads, shares.total())));
      }
    }
  }
}
