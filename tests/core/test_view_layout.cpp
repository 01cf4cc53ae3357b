// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"

#include <oktopk/core/kokkos_ext/concepts.hpp>

using oktopk::detail::views_lie_alike;

// What was measured of these pairs, or is known of them, stands in docs/backends.md.
TEST_CASE("Kokkos and nvcc that lay out what follows a View in two ways are told by their versions") {
  CHECK_FALSE(views_lie_alike(40699, 1300, false, true));
  CHECK_FALSE(views_lie_alike(40699, 1209, false, true));
  CHECK_FALSE(views_lie_alike(40701, 1300, false, true));
  CHECK_FALSE(views_lie_alike(50000, 1400, false, true));
}

TEST_CASE("other pairs of Kokkos and nvcc are left alone") {
  CHECK(views_lie_alike(30401, 1300, false, false));
  CHECK(views_lie_alike(40601, 1300, false, true)); // its View is not made of mdspan
  CHECK(views_lie_alike(40602, 1300, false, true));
  CHECK(views_lie_alike(40699, 1208, false, true));  // an nvcc before
  CHECK(views_lie_alike(40699, 1300, true, true));   // the old View
  CHECK(views_lie_alike(40702, 1300, false, false)); // without the mark
  CHECK(views_lie_alike(50000, 1300, false, false));
  CHECK(views_lie_alike(40699, 0, false, true)); // other compilers
}
