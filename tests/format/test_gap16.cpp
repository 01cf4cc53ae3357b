// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "format/suite.hpp"

#include <oktopk/format/gap16.hpp>

#include <tuple>

using namespace oktopk_tests;
using oktopk::gap16;

namespace {

// Entries of 12 bytes; those of 8 and 16 go through the suites of algorithms.
using gap16_formats = std::tuple<gap16<float, std::int64_t>, gap16<double, std::int32_t>>;

static_assert(oktopk::sparse_format<gap16<>> && gap16<>::lossless);
static_assert(oktopk::detail::encodes_on<gap16<>, Kokkos::DefaultExecutionSpace>);

} // namespace

TEMPLATE_LIST_TEST_CASE("gap16 keeps the contract of a format", "", gap16_formats) {
  check_format<TestType>();
  round_trip<TestType>(101, {0, std::numeric_limits<typename TestType::index_type>::max()}); // all gaps are long
}

TEMPLATE_LIST_TEST_CASE("gap16 writes a gap of 65534 short and one of 65535 long", "", gap16_formats) {
  using index = typename TestType::index_type;
  constexpr std::int64_t each = sizeof(typename TestType::value_type) + 2;
  for (index const gap : {65534, 65535, 65536}) {
    arrays<TestType> entries(3);
    entries.indices = {gap, static_cast<index>(gap + 1), static_cast<index>(2 * gap + 2)};
    entries.values = {1, 2, 3};
    region const where{0, 200000};
    round_trip(entries, where);
    auto const long_gaps = static_cast<std::int64_t>(gap > 65534 ? 2 * sizeof(index) : 0);
    CHECK(static_cast<std::int64_t>(encoded(entries, where).size()) == 3 * each + long_gaps);
  }
}

TEST_CASE("gap16 takes 48 bits an entry where coo takes 64") {
  CHECK(encoded(some_entries<gap16<>>(1000, {0, 100000}), {0, 100000}).size() == 6000);
}

TEMPLATE_LIST_TEST_CASE("gap16 takes any bytes: indices stay in the region, and what cannot be is not finite", "",
                        gap16_formats) {
  using index = typename TestType::index_type;
  using value = typename TestType::value_type;
  seeded draw(5);
  std::int64_t const last = std::numeric_limits<index>::max();
  for (region const where : {region{1000, 1100}, region{0, 1 << 20}, region{last - 70000, last}}) {
    for (int repeat = 0; repeat < 300; ++repeat) {
      auto const entries = some_entries<TestType>(20, where);
      auto wire = encoded(entries, where);
      auto const values_end = 20 * sizeof(value);
      for (std::size_t damage = 0; damage <= draw.next() % 4; ++damage) {
        auto const at = values_end + draw.next() % (wire.size() - values_end);
        wire[at] = static_cast<std::byte>(repeat % 2 == 0 ? 0xff : draw.next() & 0xff);
      }
      auto const got = decoded<TestType>(wire, 20, where);
      for (std::size_t i = 0; i < 20; ++i) {
        REQUIRE(got.indices[i] >= where.begin);
        REQUIRE(got.indices[i] < where.end);
        REQUIRE((std::isnan(got.values[i]) || std::memcmp(&got.values[i], &entries.values[i], sizeof(value)) == 0));
      }
    }
  }
}

TEST_CASE("gap16 spoils the entries behind a gap that leads out of the region, or whose long form is missing") {
  region const where{0, 1 << 20};
  auto const entries = some_entries<gap16<>>(3, where); // the second and third gap are long
  auto wire = encoded(entries, where);
  REQUIRE(wire.size() == 3 * 6 + 2 * 4);
  wire.resize(wire.size() - 4);
  auto const got = decoded<gap16<>>(wire, 3, where);
  CHECK(got.indices[1] == entries.indices[1]);
  CHECK(std::isnan(got.values[2]));
  std::int32_t const before_zero = -1;
  std::memcpy(wire.data() + 3 * 6, &before_zero, sizeof before_zero);
  CHECK(std::isnan(decoded<gap16<>>(wire, 3, where).values[1]));
}

TEST_CASE("gap16 refuses a message that is too short for its entries") {
  CHECK(fault_of_zeros<gap16<>>(18, 3, {0, 100}) == oktopk::fault::none);
  CHECK(fault_of_zeros<gap16<>>(17, 3, {0, 100}) == oktopk::fault::damaged_message);
  CHECK(fault_of_zeros<gap16<>>(18, 3, {0, 2}) == oktopk::fault::damaged_message); // more entries than places
}
