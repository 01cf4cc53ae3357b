// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/seeded.hpp"

#include <oktopk/core/workspace.hpp>

namespace {

using oktopk_tests::host_execution;
using int_buffer = oktopk::detail::buffer<std::int64_t, oktopk_tests::host_memory>;

bool all_zero(int_buffer const& memory) {
  return std::all_of(memory.data(), memory.data() + memory.capacity(), [](std::int64_t x) { return x == 0; });
}

} // namespace

TEST_CASE("a buffer begins empty and takes at first just what is asked for") {
  int_buffer memory("oktopk::tests::room");
  CHECK(memory.capacity() == 0);
  memory.reserve(host_execution(), 0);
  CHECK(memory.capacity() == 0);
  memory.reserve(host_execution(), 7);
  CHECK(memory.capacity() == 7);
  CHECK(memory.view().data() == memory.data());
  CHECK(memory.view().label() == "oktopk::tests::room");
}

TEST_CASE("a buffer that is large enough stays, growth takes half as much again, and sizes that wander settle") {
  int_buffer memory("oktopk::tests::room");
  memory.reserve(host_execution(), 10);
  memory.reserve(host_execution(), 11);
  CHECK(memory.capacity() == 16);
  std::int64_t* const settled = memory.data();
  std::fill(settled, settled + 16, 42);
  for (std::int64_t size : {12, 16, 9, 15}) {
    memory.reserve(host_execution(), size);
  }
  CHECK((memory.data() == settled && memory.capacity() == 16));
  CHECK(std::all_of(settled, settled + 16, [](std::int64_t x) { return x == 42; }));
  memory.reserve(host_execution(), 17);
  CHECK(memory.capacity() == 25);
}

TEST_CASE("a zeroed buffer is zero after each growth, whatever was in it") {
  int_buffer memory("oktopk::tests::zeros", true);
  for (std::int64_t size = 100; size < 100000; size *= 3) {
    memory.reserve(host_execution(), size);
    CHECK(all_zero(memory));
    std::fill(memory.data(), memory.data() + memory.capacity(), -1);
    memory.reserve(host_execution(), size);
    CHECK(memory.data()[0] == -1);
  }
}

using namespace oktopk_tests;
using numbers = oktopk::detail::shared_numbers<std::int64_t, host_execution>;

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
