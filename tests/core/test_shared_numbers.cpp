// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/seeded.hpp"

#include <oktopk/core/shared_numbers.hpp>

#include <cstdint>

using namespace oktopk_tests;
using numbers = oktopk::shared_numbers<std::int64_t, host_execution>;

TEST_CASE("a kernel's numbers reach the host, and the host's reach a kernel") {
  host_execution const exec;
  numbers shared("oktopk::tests::numbers");
  shared.reserve(exec, 100);
  CHECK(shared.device().extent(0) == 100);
  std::int64_t* const device = shared.device().data();
  using range = Kokkos::RangePolicy<host_execution, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for("oktopk::tests::fill", range(exec, 0, 100), [=](std::int64_t i) { device[i] = i * i; });
  shared.to_host(exec, 100, "oktopk::tests::to_host");
  CHECK(shared.host()[99] == 99 * 99);

  shared.host()[7] = -1;
  shared.to_device(exec, 100);
  std::int64_t sum = 0;
  Kokkos::parallel_reduce(
      "oktopk::tests::sum", range(exec, 0, 100), [=](std::int64_t i, std::int64_t& part) { part += device[i]; }, sum);
  CHECK(sum == 328350 - 49 - 1);
}
