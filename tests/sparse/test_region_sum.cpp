// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"

#include <oktopk/sparse/region_sum.hpp>

#include <limits>
#include <map>

using namespace oktopk_tests;

namespace {

/// The largest value; a fault where it is over 100.
struct largest {
  KOKKOS_INLINE_FUNCTION static constexpr float identity() { return std::numeric_limits<float>::lowest(); }
  KOKKOS_INLINE_FUNCTION static constexpr float combine(float a, float b) { return a < b ? b : a; }
  KOKKOS_INLINE_FUNCTION static constexpr bool is_fault(float x) { return x > 100; }
};

template <class Index, class Value, class Combiner>
void add(oktopk::region_sum<Index, Value, execution, Combiner>& sum, sparse_vector<Value> const& entries) {
  std::vector<Index> narrow(entries.indices.begin(), entries.indices.end());
  auto const indices = to_view(narrow);
  auto const values = to_view(entries.values);
  sum.add(execution(), {indices.data(), values.data(), entries.size()});
  execution().fence();
}

/// Some entries of the region, each index with a chance of one in `every`.
template <class Value>
sparse_vector<Value> some_entries(oktopk::region where, std::int64_t every, std::uint64_t seed) {
  sparse_vector<Value> some;
  for (std::int64_t i = where.begin; i < where.end; ++i) {
    auto const bits = noise(seed, static_cast<std::uint64_t>(i));
    if (number_in(1, every, bits) == 1) {
      some.push_back(i, static_cast<Value>(heavy_tailed(bits)));
    }
  }
  return some;
}

template <class Index, class Value>
void check_regions(std::int64_t offset) {
  oktopk::region_sum<Index, Value, execution> sum;
  // Widths that grow and shrink, with and without whole words of the bitmap.
  std::uint64_t seed = 1;
  for (std::int64_t const width : {0, 1, 63, 64, 65, 1000, 5, 128, 2000, 1999, 1}) {
    oktopk::region const where{offset + 17, offset + 17 + width};
    sum.open(execution(), where);
    std::map<std::int64_t, Value> expected;
    for (int part = 0; part < 4; ++part) {
      auto const entries = some_entries<Value>(where, 3, seed++);
      add(sum, entries);
      for (std::size_t i = 0; i < entries.indices.size(); ++i) {
        expected[entries.indices[i]] += entries.values[i]; // from 0, in the order of the calls
      }
    }
    auto const found = entries_of(sum.extract(execution()));
    sparse_vector<Value> reference;
    for (auto const& [index, value] : expected) {
      reference.push_back(index, value);
    }
    CHECK(same(found, reference));
    // Nothing stays behind.
    sum.open(execution(), where);
    CHECK(entries_of(sum.extract(execution())).size() == 0);
  }
}

} // namespace

TEST_CASE("region_sum gives the touched places in order, summed in the order of the calls, and is clean after") {
  check_regions<std::int32_t, float>(0);
  check_regions<std::int64_t, double>(std::int64_t(1) << 40);
}

TEST_CASE("region_sum keeps entries that are zero or sum to zero") {
  oktopk::region_sum<std::int32_t, float, execution> sum;
  sum.open(execution(), {0, 100});
  add(sum, sparse_vector<float>{{3, 50, 99}, {1.5F, 0.0F, -2.0F}});
  add(sum, sparse_vector<float>{{3, 99}, {-1.5F, 2.0F}});
  CHECK((entries_of(sum.extract(execution())) == sparse_vector<float>{{3, 50, 99}, {0, 0, 0}}));
}

TEST_CASE("region_sum that was filled and never extracted opens empty") {
  oktopk::region_sum<std::int32_t, float, execution> sum;
  for (std::int64_t const next_width : {130, 64, 1000}) {
    sum.open(execution(), {0, 130});
    add(sum, sparse_vector<float>{{0, 63, 64, 129}, {1, 2, 3, 4}});
    sum.open(execution(), {10, 10 + next_width}); // the call was given up
    CHECK(entries_of(sum.extract(execution())).size() == 0);
    sum.open(execution(), {0, 130});
    add(sum, sparse_vector<float>{{0, 129}, {8, 16}});
    CHECK((entries_of(sum.extract(execution())) == sparse_vector<float>{{0, 129}, {8, 16}}));
  }
}

TEST_CASE("extract_checked reports the sum that overflows at the lowest index, counted from where the indices begin") {
  float const most = std::numeric_limits<float>::max();
  oktopk::region_sum<std::int32_t, float, execution> sum;
  sum.open(execution(), {100, 300});
  add(sum, sparse_vector<float>{{110, 170, 171}, {most, 1, -most}});
  CHECK(!sum.extract_checked(execution()).fault);
  sum.open(execution(), {100, 300});
  add(sum, sparse_vector<float>{{110, 170, 171}, {1, most, -most}});
  add(sum, sparse_vector<float>{{110, 170, 171}, {1, most, -most}});
  auto const found = sum.extract_checked(execution(), 1000);
  CHECK(found.sums.size() == 3);
  CHECK(found.fault.code == oktopk::fault::non_finite);
  CHECK(found.fault.detail == 1070);
  CHECK(found.fault.subject == oktopk::detail::fault_subject::sum);
}

TEST_CASE("region_sum takes identity, combination and fault from its combiner, also after growth and a call given up") {
  oktopk::region_sum<std::int32_t, float, execution, largest> sum;
  for (std::int64_t const width : {10, 100, 50, 1000}) {
    for (int call = 0; call < 3; ++call) {
      sum.open(execution(), {0, width});
      add(sum, sparse_vector<float>{{0, 4, 9}, {-3, -2, -1}});
      add(sum, sparse_vector<float>{{0, 9}, {-5, 2}});
      auto const found = sum.extract_checked(execution());
      CHECK((entries_of(found.sums) == sparse_vector<float>{{0, 4, 9}, {-3, -2, 2}}));
      CHECK(!found.fault);
      if (call == 1) {
        sum.open(execution(), {0, width});
        add(sum, sparse_vector<float>{{0, 9}, {7, 7}}); // the call is given up
      }
    }
    sum.open(execution(), {0, width});
    add(sum, sparse_vector<float>{{0, 4, 9}, {-3, 101, 1e9F}});
    CHECK(sum.extract_checked(execution()).fault.detail == 4);
  }
}
