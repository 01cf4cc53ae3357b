// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"
#include "support/reference.hpp"

#include <oktopk/sparse/arithmetic.hpp>

#include <iterator>

using namespace oktopk_tests;

namespace {

/// Ascending indices from `first` on, with gaps of 1 to `widest`.
template <class Index>
std::vector<Index> ascending(std::int64_t count, std::int64_t first, std::int64_t widest, std::uint64_t seed) {
  std::vector<Index> indices;
  std::int64_t next = first;
  for (std::int64_t i = 0; i < count; ++i) {
    indices.push_back(static_cast<Index>(next));
    next += number_in(1, widest, noise(seed, static_cast<std::uint64_t>(i)));
  }
  return indices;
}

template <class Index>
void check(std::vector<Index> const& these, std::vector<Index> const& those) {
  std::vector<Index> expected;
  std::set_intersection(these.begin(), these.end(), those.begin(), those.end(), std::back_inserter(expected));
  auto const a = to_view(these);
  auto const b = to_view(those);
  Index const guard = std::numeric_limits<Index>::max();
  auto const out = to_view(std::vector<Index>(these.size() + 1, guard));
  using list = oktopk::array_ref<Index const, memory>;
  std::int64_t const count = oktopk::detail::intersection<execution, Index>(execution(), list(a.data(), a.extent(0)),
                                                                            list(b.data(), b.extent(0)), out.data());
  auto found = to_vector(out);
  CHECK(found.back() == guard); // there is room for these and no more
  REQUIRE(count == static_cast<std::int64_t>(expected.size()));
  found.resize(expected.size());
  CHECK((found == expected));
}

template <class Index>
void check_lists(std::int64_t offset) {
  std::uint64_t seed = 1;
  for (std::int64_t const count : {0, 1, 15, 16, 17, 300, 2047, 2048, 2049, 9000}) {
    for (std::int64_t const widest : {1, 2, 100, 4095, 4096, 5000, 200000}) {
      INFO("lists of " << count << " with gaps up to " << widest << " from " << offset);
      auto const these = ascending<Index>(count, offset, widest, seed++);
      check(these, these);
      check(these, {});
      check({}, these);
      check(these, ascending<Index>(count, offset, widest, seed++));
      check(these, ascending<Index>(count / 3, offset + 50, 3 * widest, seed++));
      check(these, ascending<Index>(2 * count, offset, 1, seed++));
      check(ascending<Index>(2 * count, offset, 1, seed++), these);
      if (count > 0) {
        check(these, {these.front()});
        check(these, {these.back()});
        check({these.back()}, these);
      }
    }
  }
}

} // namespace

TEST_CASE("an intersection is what two ascending lists have in common, and writes nothing past its room") {
  check_lists<std::int32_t>(0);
  check_lists<std::int64_t>(0);
}

TEST_CASE("an intersection takes indices up to the largest") {
  constexpr std::int32_t last = std::numeric_limits<std::int32_t>::max();
  check_lists<std::int64_t>((std::int64_t(1) << 40) - 3);
  check<std::int32_t>({0, last}, {0, last});
  check<std::int32_t>({last}, {0, 1, last - 1, last});
  std::vector<std::int32_t> high;
  for (std::int32_t i = 99; i >= 0; --i) {
    high.push_back(last - 7 * i);
  }
  check(high, high);
  check<std::int32_t>(high, {0, last - 14, last});
}

TEST_CASE("an intersection of lists with crowds and deserts") {
  std::vector<std::int64_t> these;
  std::vector<std::int64_t> those;
  for (std::int64_t part = 0; part < 40; ++part) {
    std::int64_t const begin = part * part * (std::int64_t(1) << 16) + part % 2 * ((std::int64_t(1) << 15) - 1);
    auto const seed = static_cast<std::uint64_t>(part);
    auto const some = ascending<std::int64_t>(part % 3 == 0 ? 2 : 700, begin, 20, 2 * seed);
    auto const others = ascending<std::int64_t>(part % 5 == 0 ? 1 : 900, begin, 15, 2 * seed + 1);
    these.insert(these.end(), some.begin(), some.end());
    those.insert(those.end(), others.begin(), others.end());
  }
  check(these, those);
  check(those, these);
}

TEST_CASE("entries are parted by whether their indices are in another list") {
  execution const exec;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto const count = static_cast<std::size_t>(number_in(0, 700, noise(seed, 1)));
    sparse_vector<float> entries;
    std::vector<std::int32_t> those;
    std::int64_t index = 0;
    for (std::size_t i = 0; i < count; ++i) {
      index += number_in(1, 9, noise(seed, 2, i));
      entries.push_back(index, static_cast<float>(i) + 1);
      if (noise(seed, 3, i) % 3 != 0) {
        those.push_back(static_cast<std::int32_t>(index + (noise(seed, 4, i) % 4 == 0 ? 1 : 0)));
      }
    }
    those.erase(std::unique(those.begin(), those.end()), those.end());
    sparse_vector<float> expected[2];
    for (std::size_t i = 0; i < count; ++i) {
      bool const among = std::binary_search(those.begin(), those.end(), static_cast<std::int32_t>(entries.indices[i]));
      expected[among ? 1 : 0].push_back(entries.indices[i], entries.values[i]);
    }
    auto const indices = to_view(std::vector<std::int32_t>(entries.indices.begin(), entries.indices.end()));
    auto const values = to_view(entries.values);
    auto const others = to_view(those);
    oktopk::sparse_ref<std::int32_t, float, memory> const given(indices.data(), values.data(), entries.size());
    oktopk::array_ref<std::int32_t const, memory> const list(others.data(), those.size());
    Kokkos::View<std::int32_t*, memory> const found("found", count + 1);
    Kokkos::View<float*, memory> const found_values("found_values", count + 1);
    auto const check = [&](std::int64_t size, sparse_vector<float> const& right) {
      auto const got = to_vector(found);
      auto const got_values = to_vector(found_values);
      REQUIRE(size == right.size());
      CHECK(std::equal(right.indices.begin(), right.indices.end(), got.begin()));
      CHECK(std::equal(right.values.begin(), right.values.end(), got_values.begin()));
    };
    check(oktopk::detail::difference<execution, std::int32_t, float>(exec, given, list, found.data(),
                                                                     found_values.data()),
          expected[0]);
    check(oktopk::detail::common_entries<execution, std::int32_t, float>(exec, given, list, found.data(),
                                                                         found_values.data()),
          expected[1]);
  }
}

TEMPLATE_TEST_CASE("lower_bound finds what std::lower_bound finds", "", std::int32_t, std::int64_t) {
  for (std::int64_t size = 0; size < 40; ++size) {
    std::vector<TestType> sorted;
    for (std::int64_t i = 0; i < size; ++i) {
      sorted.push_back(static_cast<TestType>(i * i / 3 - 5));
    }
    for (std::int64_t value = -8; value < 600; ++value) {
      auto const expected = std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin();
      REQUIRE(oktopk::detail::lower_bound(sorted.data(), size, value) == expected);
    }
  }
  std::vector<TestType> const few{0, 1};
  CHECK(oktopk::detail::lower_bound(few.data(), 2, std::int64_t(1) << 40) == 2);
  CHECK(oktopk::detail::lower_bound(few.data(), 2, -(std::int64_t(1) << 40)) == 0);
}
