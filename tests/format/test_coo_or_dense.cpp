// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "format/suite.hpp"
#include "support/caught.hpp"

#include <oktopk/format/coo_or_dense.hpp>

#include <bit>
#include <tuple>

using namespace oktopk_tests;
using oktopk::coo;
using oktopk::coo_or_dense;

namespace {

using formats = std::tuple<coo_or_dense<float, std::int32_t>, coo_or_dense<float, std::int64_t>,
                           coo_or_dense<double, std::int32_t>, coo_or_dense<double, std::int64_t>>;

static_assert(oktopk::sparse_format<coo_or_dense<>> && coo_or_dense<>::lossless);
static_assert(oktopk::detail::encodes_on<coo_or_dense<>, Kokkos::DefaultExecutionSpace>);

} // namespace

TEMPLATE_LIST_TEST_CASE("coo_or_dense gives back what it got, sparse or dense", "", formats) {
  for (std::int64_t const count : {0, 1, 2, 3, 7, 8, 9, 100, 101}) {
    for (std::int64_t const width : {count, count + 1, 3 * count / 2, 2 * count, 3 * count, 1000 * (count + 1)}) {
      CAPTURE(count, width);
      round_trip<TestType>(count, {0, width});
      round_trip<TestType>(count, {123457, 123457 + width});
    }
  }
}

TEMPLATE_LIST_TEST_CASE("coo_or_dense keeps the sign of every zero where it is dense", "", formats) {
  using value = typename TestType::value_type;
  using index = typename TestType::index_type;
  std::vector<index> const indices = {10, 11, 12, 14};
  std::vector<value> const values = {value(0), -value(0), value(1), value(0)};
  oktopk::region const where{10, 15};
  REQUIRE(TestType::is_dense(4, where));
  std::vector<std::uint64_t> wire(20);
  auto* const bytes = reinterpret_cast<std::byte*>(wire.data());
  host_execution const exec;
  auto const size = TestType::encode(exec, {indices.data(), values.data(), 4}, where, bytes);
  std::vector<index> back_indices(4);
  std::vector<value> back(4);
  TestType::decode(exec, static_cast<std::byte const*>(bytes), size, 4, where, back_indices.data(), back.data());
  exec.fence();
  CHECK(back_indices == indices);
  CHECK(back == values);
  CHECK(!std::signbit(back[0]));
  CHECK(std::signbit(back[1]));
  CHECK(!std::signbit(back[3]));
}

TEMPLATE_LIST_TEST_CASE("coo_or_dense takes the smaller of the two, and more for more entries", "", formats) {
  using value = typename TestType::value_type;
  using sparse = coo<value, typename TestType::index_type>;
  oktopk::region const where{1000, 1100};
  for (std::int64_t count = 0; count <= 100; ++count) {
    auto const dense_bytes = 100 * static_cast<std::int64_t>(sizeof(value));
    CHECK(TestType::max_encoded_bytes(count, where) == std::min(sparse::max_encoded_bytes(count, where), dense_bytes));
  }
  check_bound_of_cuts<TestType>();
  check_bound_grows<TestType>(where, 100);
}

TEMPLATE_LIST_TEST_CASE("coo_or_dense writes as many entries as it is told, whatever places are filled", "", formats) {
  using value = typename TestType::value_type;
  using index = typename TestType::index_type;
  oktopk::region const where{10, 15};
  REQUIRE(TestType::is_dense(4, where));
  auto const nothing = std::bit_cast<value>(TestType::empty);
  host_execution const exec;
  auto const decoded = [&](std::vector<value> wire) {
    std::vector<index> indices(4);
    std::vector<value> values(4);
    TestType::decode(exec, reinterpret_cast<std::byte const*>(wire.data()),
                     static_cast<std::int64_t>(5 * sizeof(value)), 4, where, indices.data(), values.data());
    exec.fence();
    for (index const each : indices) {
      CHECK((each >= 10 && each < 15));
    }
    return values;
  };
  CHECK((decoded({1, 2, 3, 4, 5}) == std::vector<value>{1, 2, 3, 4}));
  auto const fewer = decoded({1, nothing, 3, nothing, nothing});
  CHECK((fewer[0] == 1 && fewer[1] == 3 && std::isnan(fewer[2]) && std::isnan(fewer[3])));
  CHECK(std::isnan(decoded({nothing, nothing, nothing, nothing, nothing})[0]));
}

TEST_CASE("coo_or_dense refuses a dense message that is too short") {
  std::vector<float> const wire(5);
  std::vector<std::int32_t> indices(4);
  std::vector<float> values(4);
  auto const of = [&](std::int64_t bytes, oktopk::region where = {10, 15}) {
    return outcome_of([&] {
             coo_or_dense<>::decode(host_execution(), reinterpret_cast<std::byte const*>(wire.data()), bytes, 4, where,
                                    indices.data(), values.data());
           })
        .code;
  };
  CHECK(of(20) == oktopk::fault::none);
  CHECK(of(19) == oktopk::fault::damaged_message);
  CHECK(of(20, {10, 13}) == oktopk::fault::damaged_message); // more entries than places
  CHECK(of(20, {10, 10}) == oktopk::fault::damaged_message);
}
