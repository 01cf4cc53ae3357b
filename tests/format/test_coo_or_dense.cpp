// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "format/suite.hpp"

#include <oktopk/format/coo_or_dense.hpp>

#include <bit>
#include <tuple>

using namespace oktopk_tests;
using oktopk::coo;
using oktopk::coo_or_dense;

namespace {

// Entries of 12 bytes; those of 8 and 16 go through the suites of algorithms.
using coo_or_dense_formats = std::tuple<coo_or_dense<float, std::int64_t>, coo_or_dense<double, std::int32_t>>;

static_assert(oktopk::sparse_format<coo_or_dense<>> && coo_or_dense<>::lossless);
static_assert(oktopk::detail::encodes_on<coo_or_dense<>, Kokkos::DefaultExecutionSpace>);

} // namespace

TEMPLATE_LIST_TEST_CASE("coo_or_dense keeps the contract of a format", "", coo_or_dense_formats) {
  check_format<TestType>();
}

TEMPLATE_LIST_TEST_CASE("coo_or_dense keeps the sign of every zero where it is dense", "", coo_or_dense_formats) {
  using value = typename TestType::value_type;
  region const where{10, 15};
  REQUIRE(TestType::is_dense(4, where));
  arrays<TestType> sent(4);
  sent.indices = {10, 11, 12, 14};
  sent.values = {value(0), -value(0), value(1), value(0)};
  auto const back = decoded<TestType>(encoded(sent, where), 4, where);
  CHECK(back.indices == sent.indices);
  CHECK(same_bits(back.values, sent.values));
}

TEMPLATE_LIST_TEST_CASE("coo_or_dense takes the smaller of the two, and more for more entries", "",
                        coo_or_dense_formats) {
  using value = typename TestType::value_type;
  using sparse = coo<value, typename TestType::index_type>;
  region const where{1000, 1100};
  for (std::int64_t count = 0; count <= 100; ++count) {
    auto const dense_bytes = 100 * static_cast<std::int64_t>(sizeof(value));
    CHECK(TestType::max_encoded_bytes(count, where) == std::min(sparse::max_encoded_bytes(count, where), dense_bytes));
  }
  check_bound_grows<TestType>(where, 100);
}

TEMPLATE_LIST_TEST_CASE("coo_or_dense writes as many entries as it is told, whatever places are filled", "",
                        coo_or_dense_formats) {
  using value = typename TestType::value_type;
  using index = typename TestType::index_type;
  region const where{10, 15};
  REQUIRE(TestType::is_dense(4, where));
  auto const nothing = std::bit_cast<value>(TestType::empty);
  auto const got = [&](std::vector<value> const& places) {
    auto const bytes = std::as_bytes(std::span(places));
    auto const entries = decoded<TestType>({bytes.begin(), bytes.end()}, 4, where);
    for (index const each : entries.indices) {
      CHECK((each >= 10 && each < 15));
    }
    return entries.values;
  };
  CHECK((got({1, 2, 3, 4, 5}) == std::vector<value>{1, 2, 3, 4}));
  auto const fewer = got({1, nothing, 3, nothing, nothing});
  CHECK((fewer[0] == 1 && fewer[1] == 3 && std::isnan(fewer[2]) && std::isnan(fewer[3])));
  CHECK(std::isnan(got({nothing, nothing, nothing, nothing, nothing})[0]));
}

TEST_CASE("coo_or_dense refuses a dense message that is too short") {
  CHECK(fault_of_zeros<coo_or_dense<>>(20, 4, {10, 15}) == oktopk::fault::none);
  CHECK(fault_of_zeros<coo_or_dense<>>(19, 4, {10, 15}) == oktopk::fault::damaged_message);
  CHECK(fault_of_zeros<coo_or_dense<>>(20, 4, {10, 13}) == oktopk::fault::damaged_message); // more entries than places
  CHECK(fault_of_zeros<coo_or_dense<>>(20, 4, {10, 10}) == oktopk::fault::damaged_message);
}
