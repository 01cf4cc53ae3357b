// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Kernels that fill and copy arrays.

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <oktopk/core/kokkos_ext/execution.hpp>

using namespace oktopk_tests;

TEST_CASE("an array is filled up to the count and no further, by pointer and by view") {
  execution const exec;
  auto const by_pointer = to_view(std::vector<float>{1, 2, 3, 4});
  auto const by_view = to_view(std::vector<float>{1, 2, 3, 4});
  oktopk::detail::fill_array("test::fill", exec, by_pointer.data() + 1, 2, 7.0F);
  oktopk::detail::fill_array("test::fill", exec, by_view, 0, 7.0F);
  exec.fence();
  CHECK(to_vector(by_pointer) == std::vector<float>{1, 7, 7, 4});
  CHECK(to_vector(by_view) == std::vector<float>{1, 2, 3, 4});
  oktopk::detail::fill_array("test::fill", exec, by_view, 3, 7.0F);
  exec.fence();
  CHECK(to_vector(by_view) == std::vector<float>{7, 7, 7, 4});
}

TEST_CASE("an array is copied into another type, and from another layout") {
  execution const exec;
  auto const numbers = to_view(std::vector<double>{1.5, 2.5, 3.5, 4.5});
  auto const copy = to_view(std::vector<float>{0, 0, 0, 9});
  oktopk::detail::copy_array("test::copy", exec, static_cast<double const*>(numbers.data()), 3, copy);
  exec.fence();
  CHECK(to_vector(copy) == std::vector<float>{1.5F, 2.5F, 3.5F, 9});
  using memory_space = typename execution::memory_space;
  Kokkos::View<double**, Kokkos::LayoutRight, memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>> const square(
      numbers.data(), 2, 2);
  auto const column = Kokkos::subview(square, Kokkos::ALL(), 1);
  oktopk::detail::copy_array("test::copy", exec, column, 2, copy);
  exec.fence();
  CHECK(to_vector(copy) == std::vector<float>{2.5F, 4.5F, 3.5F, 9});
}
