// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/generators.hpp"
#include "support/warps.hpp"

#include <oktopk/core/write_in_order.hpp>

using namespace oktopk_tests;

namespace {

/// Each item gives as many copies of its number as the list says; notes the largest item that gives anything.
template <bool Single>
struct repeated {
  static constexpr bool single = Single;

  std::int64_t const* counts;
  std::int64_t* out;
  std::int64_t* noted;

  KOKKOS_INLINE_FUNCTION std::int64_t count(std::int64_t i) const { return counts[i]; }
  KOKKOS_INLINE_FUNCTION std::int64_t write(std::int64_t i, std::int64_t place) const {
    for (std::int64_t copy = 0; copy < counts[i]; ++copy) {
      out[place + copy] = i;
      Kokkos::atomic_fetch_max(noted, i + 1);
    }
    return counts[i];
  }
};

template <class Warp, bool Single>
void check(std::vector<std::int64_t> const& counts, oktopk::detail::order_workspace<execution>& workspace) {
  std::vector<std::int64_t> expected;
  std::int64_t noted = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    expected.insert(expected.end(), static_cast<std::size_t>(counts[i]), static_cast<std::int64_t>(i));
    noted = counts[i] > 0 ? static_cast<std::int64_t>(i) + 1 : noted;
  }
  auto const view = to_view(counts);
  auto const out = to_view(std::vector<std::int64_t>(expected.size() + 1, -1));
  execution const exec;
  auto const size = static_cast<std::int64_t>(counts.size());
  workspace.template reserve<Warp>(exec, size);
  auto const result = oktopk::detail::write_in_order<Warp>(
      "oktopk::tests::repeated", exec, size, repeated<Single>{view.data(), out.data(), workspace.noted()}, workspace);
  CHECK(result.total == static_cast<std::int64_t>(expected.size()));
  CHECK(result.noted == noted);
  expected.push_back(-1);
  CHECK(to_vector(out) == expected);
}

} // namespace

TEMPLATE_LIST_TEST_CASE("entries are written in the order of their items, of some, of none and of all", "", warps) {
  oktopk::detail::order_workspace<execution> workspace; // of all calls: each leaves it as it was
  for (int const length : {0, 1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 5000}) {
    auto const size = static_cast<std::size_t>(length);
    for (std::int64_t const least : {0, 1}) { // of entries that an item gives
      for (std::int64_t const most : {std::int64_t(0), std::int64_t(1), std::int64_t(5)}) {
        std::vector<std::int64_t> counts;
        for (std::uint64_t i = 0; i < size; ++i) {
          counts.push_back(number_in(std::min(least, most), most, noise(size, i)));
        }
        check<TestType, false>(counts, workspace);
        if (most <= 1) {
          check<TestType, true>(counts, workspace);
        }
      }
    }
  }
}
