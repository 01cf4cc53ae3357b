// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "format/suite.hpp"
#include "support/caught.hpp"

#include <oktopk/format/coo.hpp>

#include <cstring>
#include <set>
#include <tuple>

using namespace oktopk_tests;
using oktopk::coo;

namespace {

using formats = std::tuple<coo<float, std::int32_t>, coo<float, std::int64_t>, coo<double, std::int32_t>,
                           coo<double, std::int64_t>>;

static_assert(oktopk::sparse_format<coo<>> && oktopk::sparse_format<coo<double, std::int64_t>>);
static_assert(std::is_same_v<coo<>, coo<float, std::int32_t>>, "two words an entry unless asked otherwise");
static_assert(oktopk::detail::encodes_on<coo<>, Kokkos::DefaultExecutionSpace>);

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
  std::vector<std::uint64_t> storage(2);
  auto* const wire = reinterpret_cast<std::byte*>(storage.data());
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

TEMPLATE_LIST_TEST_CASE("coo takes no index of a message that lies outside the region", "", formats) {
  using index = typename TestType::index_type;
  using value = typename TestType::value_type;
  oktopk::region const where{1000, 1100};
  host_execution const exec;
  for (index const damaged :
       {index(-1), index(100), std::numeric_limits<index>::min(), std::numeric_limits<index>::max(), index(-1000)}) {
    std::vector<index> indices = {1000, 1050, 1099};
    std::vector<value> values = {value(1), value(2), value(3)};
    std::vector<std::uint64_t> wire(6);
    auto* const bytes = reinterpret_cast<std::byte*>(wire.data());
    auto const size = TestType::encode(exec, {indices.data(), values.data(), 3}, where, bytes);
    exec.fence();
    std::size_t const first = sizeof(index) >= sizeof(value) ? 0 : 3 * sizeof(value);
    std::memcpy(bytes + first + sizeof(index), &damaged, sizeof damaged);
    TestType::decode(exec, static_cast<std::byte const*>(bytes), size, 3, where, indices.data(), values.data());
    exec.fence();
    CHECK((indices == std::vector<index>{1000, 1000, 1099}));
    CHECK((values[0] == value(1) && std::isnan(values[1]) && values[2] == value(3)));
  }
}

TEMPLATE_LIST_TEST_CASE("coo refuses a message that is too short for its entries", "", formats) {
  using index = typename TestType::index_type;
  using value = typename TestType::value_type;
  std::vector<std::uint64_t> const wire(6);
  auto const* const bytes = reinterpret_cast<std::byte const*>(wire.data());
  std::vector<index> indices(3);
  std::vector<value> values(3);
  auto const of = [&](std::int64_t size, std::int64_t count) {
    return outcome_of([&] {
             TestType::decode(host_execution(), bytes, size, count, {0, 100}, indices.data(), values.data());
           })
        .code;
  };
  CHECK(of(3 * TestType::entry_bytes, 3) == oktopk::fault::none);
  CHECK(of(3 * TestType::entry_bytes - 1, 3) == oktopk::fault::damaged_message);
  CHECK(of(-8, 3) == oktopk::fault::damaged_message);
  CHECK(of(0, -1) == oktopk::fault::damaged_message);
}
