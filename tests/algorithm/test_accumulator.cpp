// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The argument of a call: which types are one, and what is wrong in its shape.

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <oktopk/algorithm/concept.hpp>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::detail::check_accumulator;

namespace {

using making = oktopk::detail::accumulation<std::int32_t, float, memory>;
using vector = Kokkos::View<float*, memory>;

static_assert(oktopk::detail::is_accumulation<making> && !oktopk::detail::is_accumulation<vector>);
static_assert(oktopk::accumulator_input<making, std::int32_t, float, execution>);
static_assert(oktopk::accumulator_input<vector, std::int32_t, float, execution>);
static_assert(oktopk::accumulator_input<Kokkos::View<float const*, memory>, std::int32_t, float, execution>);
static_assert(!oktopk::accumulator_input<making, std::int64_t, float, execution>); // of other indices
static_assert(!oktopk::accumulator_input<vector, std::int32_t, double, execution>);
static_assert(!oktopk::accumulator_input<Kokkos::View<float**, memory>, std::int32_t, float, execution>);

} // namespace

TEST_CASE("an accumulator has the length of its algorithm, and its values lie one after the other") {
  vector const fits("fits", 6);
  CHECK(check_accumulator(fits, 6).code == fault::none);
  auto const longer = check_accumulator(fits, 5);
  CHECK((longer.code == fault::length_mismatch && longer.detail == 6));
  CHECK(check_accumulator(vector(), 0).code == fault::none);

  Kokkos::View<float**, Kokkos::LayoutLeft, memory> const matrix("matrix", 2, 6);
  CHECK(check_accumulator(Kokkos::subview(matrix, 0, Kokkos::ALL()), 6).code == fault::not_contiguous);
  CHECK(check_accumulator(Kokkos::subview(matrix, 0, Kokkos::ALL()), 7).code == fault::length_mismatch);
}

TEST_CASE("residual, gradient and accumulator in the making have the length of their algorithm") {
  vector const six("six", 6);
  vector const five("five", 5);
  auto const made = [](vector const& residual, vector const& gradient, vector const& accumulator) {
    making of;
    of.residual = oktopk::array_ref<float const, memory>(residual.data(), residual.extent(0));
    of.gradient = oktopk::array_ref<float const, memory>(gradient.data(), gradient.extent(0));
    of.accumulator = oktopk::array_ref<float, memory>(accumulator.data(), accumulator.extent(0));
    return of;
  };
  CHECK(check_accumulator(made(six, six, six), 6).code == fault::none);
  for (auto const& wrong : {made(five, six, six), made(six, five, six), made(six, six, five)}) {
    auto const report = check_accumulator(wrong, 6);
    CHECK((report.code == fault::length_mismatch && report.detail == 5));
  }
}
