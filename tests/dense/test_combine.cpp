// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/collect.hpp"

#include <oktopk/dense/combine.hpp>

using namespace oktopk_tests;
using oktopk::reduction;

namespace {

template <class Value>
std::vector<Value> combined(reduction op, std::vector<Value> const& into, std::vector<Value> const& from) {
  auto const result = to_view(into);
  auto const other = to_view(from);
  oktopk::detail::combine(execution(), op, static_cast<Value const*>(other.data()),
                          static_cast<std::int64_t>(from.size()), result.data());
  execution().fence();
  return to_vector(result);
}

} // namespace

TEMPLATE_TEST_CASE("combine does what the reduction says, and NaN stays NaN from either side", "", float, double) {
  TestType const nan = std::numeric_limits<TestType>::quiet_NaN();
  std::vector<TestType> const a{1, -2, 3, nan, 5};
  std::vector<TestType> const b{4, -7, 3, 1, nan};
  for (bool const turned : {false, true}) {
    auto const of = [&](reduction op) { return turned ? combined(op, b, a) : combined(op, a, b); };
    auto const sum = of(reduction::sum);
    auto const most = of(reduction::max);
    auto const least = of(reduction::min);
    CHECK((sum[0] == 5 && sum[1] == -9 && sum[2] == 6));
    CHECK((most[0] == 4 && most[1] == -2 && most[2] == 3));
    CHECK((least[0] == 1 && least[1] == -7 && least[2] == 3));
    for (auto const& each : {sum, most, least}) {
      CHECK((std::isnan(each[3]) && std::isnan(each[4])));
    }
  }
}

TEST_CASE("combine gives the same bits in either order, zeros of both signs included") {
  std::vector<float> const a{0.0F, -0.0F, 1.5F};
  std::vector<float> const b{-0.0F, 0.0F, 1.5F};
  for (reduction const op : {reduction::sum, reduction::max, reduction::min}) {
    CHECK(bits(combined(op, a, b)) == bits(combined(op, b, a)));
  }
}

TEST_CASE("only a sum tells what it lost") {
  float lost = 0;
  CHECK(outcome_of([&] { oktopk::detail::refuse_losses_of(reduction::max, &lost); }).code ==
        oktopk::fault::option_out_of_range);
  CHECK_NOTHROW(oktopk::detail::refuse_losses_of(reduction::sum, &lost));
  CHECK_NOTHROW(oktopk::detail::refuse_losses_of<float>(reduction::min, nullptr));
}
