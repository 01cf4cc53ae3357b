// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"

#include <oktopk/core/sparse.hpp>

namespace {

using entries = oktopk::sparse_ref<std::int64_t, double, Kokkos::HostSpace>;
using update = oktopk::sparse_update<std::int64_t, double, Kokkos::HostSpace>;

} // namespace

TEST_CASE("the width of a region is exact far out") {
  std::int64_t const far = std::int64_t(1) << 40;
  CHECK(oktopk::region{far, far + 3}.width() == 3);
  CHECK(oktopk::region{}.width() == 0);
}

TEST_CASE("a slice refers to the entries from first to last, none or all, without a copy") {
  std::vector<std::int64_t> indices = {3, 5, 8, 13, 21};
  std::vector<double> const values = {.3, .5, .8, .13, .21};
  entries const all(indices.data(), values.data(), 5);
  CHECK(all.size() == 5);

  entries const middle = all.slice(1, 4);
  REQUIRE(middle.size() == 3);
  CHECK(middle.indices(0) == 5);
  CHECK(middle.indices(2) == 13);
  CHECK(middle.values(0) == .5);
  CHECK(middle.values(2) == .13);
  indices[2] = 9;
  CHECK(middle.indices(1) == 9);

  entries const inner = middle.slice(1, 2);
  REQUIRE(inner.size() == 1);
  CHECK(inner.values(0) == .8);
  CHECK((all.slice(0, 0).size() == 0 && all.slice(5, 5).size() == 0 && entries().size() == 0));
  CHECK((all.slice(0, 5).indices.data() == indices.data() && all.slice(0, 5).size() == 5));
}

TEST_CASE("an update tells sums, contributed and returned entries apart") {
  std::vector<std::int64_t> const indices = {4, 6, 7};
  std::vector<double> const values = {40, 60, 70};
  std::vector<std::int64_t> const contributed = {6};
  std::vector<std::int64_t> const dropped = {1, 2};
  std::vector<double> const dropped_values = {10, 20};
  update const made(entries(indices.data(), values.data(), 3), update::indices_type(contributed.data(), 1),
                    entries(dropped.data(), dropped_values.data(), 2));
  REQUIRE(made.indices().extent(0) == 3);
  REQUIRE(made.values().extent(0) == 3);
  CHECK(made.indices()(2) == 7);
  CHECK(made.values()(2) == 70);
  REQUIRE(made.contributed().extent(0) == 1);
  CHECK(made.contributed()(0) == 6);
  REQUIRE(made.returned().size() == 2);
  CHECK(made.returned().indices(1) == 2);
  CHECK(made.returned().values(1) == 20);

  update const nothing;
  CHECK(nothing.indices().extent(0) == 0);
  CHECK(nothing.returned().size() == 0);
}
