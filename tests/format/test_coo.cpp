// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "format/suite.hpp"

#include <oktopk/format/coo.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <vector>

using namespace oktopk_tests;
using oktopk::coo;

namespace {

using formats = std::tuple<coo<float, std::int32_t>, coo<float, std::int64_t>, coo<double, std::int32_t>,
                           coo<double, std::int64_t>>;

static_assert(oktopk::sparse_format<coo<>> && oktopk::sparse_format<coo<double, std::int64_t>>);
static_assert(std::is_same_v<coo<>, coo<float, std::int32_t>>, "two words an entry unless asked otherwise");
static_assert(oktopk::encodes_on<coo<>, Kokkos::DefaultExecutionSpace>);

} // namespace

TEMPLATE_LIST_TEST_CASE("coo gives back what it got, for any count", "", formats) {
  for (std::int64_t const count : {0, 1, 2, 3, 7, 8, 9, 100, 101}) {
    round_trip<TestType>(count, {0, 1000});
    round_trip<TestType>(count, {123457, 123457 + 101});
  }
}

TEMPLATE_LIST_TEST_CASE("coo keeps indices exact up to the end of their type", "", formats) {
  std::int64_t const last = std::numeric_limits<typename TestType::index_type>::max();
  round_trip<TestType>(9, {last - 20, last});
  round_trip<TestType>(9, {last - (std::int64_t(1) << 30), last});
  round_trip<TestType>(9, {0, last});
  round_trip<TestType>(3, {std::int64_t(1) << 24, (std::int64_t(1) << 24) + 4}); // where a float would round
}

TEMPLATE_TEST_CASE("coo serves regions beyond what 32 bits count", "", float, double) {
  using wide = coo<TestType, std::int64_t>;
  std::int64_t const far = (std::int64_t(1) << 31) + 12345;
  round_trip<wide>(5, {far, far + 10});
  round_trip<wide>(5, {far, far + (std::int64_t(1) << 40)});
}

TEMPLATE_LIST_TEST_CASE("coo takes an index and a value an entry, no more", "", formats) {
  auto const entry =
      static_cast<std::int64_t>(sizeof(typename TestType::index_type) + sizeof(typename TestType::value_type));
  CHECK(TestType::max_encoded_bytes(0, {0, 10}) == 0);
  CHECK(TestType::max_encoded_bytes(7, {0, 10}) == 7 * entry);
  std::int64_t const many = std::int64_t(1) << 40;
  CHECK(TestType::max_encoded_bytes(many, {0, many}) == many * entry);
}

TEST_CASE("coo's indices are relative to the region on the wire, and the wider array is first") {
  std::int32_t const index = 1003;
  double const value = 2.5;
  std::vector<std::uint64_t> room(2);
  auto* const wire = reinterpret_cast<std::byte*>(room.data());
  host_execution const exec;
  coo<double, std::int32_t>::encode(exec, {&index, &value, 1}, region{1000, 2000}, wire);
  exec.fence();
  double first = 0;
  std::int32_t second = 0;
  std::memcpy(&first, wire, sizeof(first));
  std::memcpy(&second, wire + sizeof(first), sizeof(second));
  CHECK(first == 2.5);
  CHECK(second == 3);
}

TEST_CASE("formats that do not understand each other have different names") {
  std::set<std::string> const names = {coo<float, std::int32_t>::name(), coo<float, std::int64_t>::name(),
                                       coo<double, std::int32_t>::name(), coo<double, std::int64_t>::name()};
  CHECK(names.size() == 4);
}
