// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "format/suite.hpp"

#include <oktopk/algorithm/policies.hpp>
#include <oktopk/format/coo.hpp>

#include <set>
#include <tuple>

using namespace oktopk_tests;
using oktopk::coo;

namespace {

// Entries of 12 bytes; those of 8 and 16 go through the suites of algorithms.
using coo_formats = std::tuple<coo<float, std::int64_t>, coo<double, std::int32_t>>;

static_assert(oktopk::sparse_format<coo<>> && oktopk::sparse_format<coo<double, std::int64_t>>);
static_assert(std::is_same_v<coo<>, coo<float, std::int32_t>>, "two words an entry unless asked otherwise");
static_assert(oktopk::detail::encodes_on<coo<>, Kokkos::DefaultExecutionSpace>);

// Rows of a matrix: entries of as many values as the object says.
struct rows : oktopk::format_base {
  using index_type = std::int64_t;
  using value_type = float;

  static constexpr bool lossless = true;
  static constexpr bool exact_size = true;
  static constexpr std::int64_t bytes_per_cut = 0;

  std::int64_t values_of_each = 1;

  static std::string name() { return "rows"; }
  std::int64_t width() const { return values_of_each; }

  std::int64_t max_encoded_bytes(std::int64_t count, region) const {
    return count * oktopk::detail::coo_entry_bytes<index_type, value_type>(width());
  }

  template <class E, class Entries>
  std::int64_t encode(E const& exec, Entries const& entries, region where, std::byte* out) const {
    return oktopk::detail::encode_coo(exec, entries, where, out, width());
  }

  template <class E>
  void decode(E const& exec, std::byte const* in, std::int64_t bytes, std::int64_t count, region where,
              index_type* indices, float* values) const {
    oktopk::detail::decode_coo(exec, in, bytes, count, where, indices, values, width());
  }
};

static_assert(oktopk::sparse_format<rows>);
static_assert(oktopk::detail::has_format<oktopk::default_policies, host_execution> &&
                  !oktopk::detail::has_format<oktopk::with_format<rows>, host_execution>,
              "a gradient has one value an index");

} // namespace

TEMPLATE_LIST_TEST_CASE("coo keeps the contract of a format", "", coo_formats) {
  check_format<TestType>();
  round_trip<TestType>(9, {0, std::numeric_limits<typename TestType::index_type>::max()});
}

TEST_CASE("coo carries entries of any width") {
  std::int64_t const width = GENERATE(1, 2, 3, 64);
  rows format;
  format.values_of_each = width;
  check_format(format);
  region const where{1000, 1100};
  auto const sent = some_entries<rows>(7, where, format);
  auto const slice = sent.entries().slice(2, 5);
  CHECK((slice.size() == 3 && slice.width == width && slice.values.data() == sent.values.data() + 2 * width));
  CHECK((slice.values.extent(0) == static_cast<std::size_t>(3 * width)));

  auto wire = encoded(sent, where, format);
  std::int64_t const damaged = 100;
  std::memcpy(wire.data() + 3 * sizeof damaged, &damaged, sizeof damaged);
  auto const got = decoded<rows>(wire, 7, where, std::ssize(wire), format);
  for (std::int64_t i = 0; i < std::ssize(got.values); ++i) {
    REQUIRE(std::isnan(got.values[static_cast<std::size_t>(i)]) == (i / width == 3));
  }
  CHECK(outcome_of([&] { decoded<rows>(wire, 7, where, std::ssize(wire) - 1, format); }).code ==
        oktopk::fault::damaged_message);
}

TEMPLATE_LIST_TEST_CASE("coo takes an index and a value an entry, no more", "", coo_formats) {
  auto const entry =
      static_cast<std::int64_t>(sizeof(typename TestType::index_type) + sizeof(typename TestType::value_type));
  CHECK(TestType::max_encoded_bytes(0, {0, 10}) == 0);
  CHECK(TestType::max_encoded_bytes(7, {0, 10}) == 7 * entry);
  std::int64_t const many = std::int64_t(1) << 40;
  CHECK(TestType::max_encoded_bytes(many, {0, many}) == many * entry);
}

TEST_CASE("coo's indices are relative to the region on the wire, and the wider array is first") {
  arrays<coo<double, std::int32_t>> sent(1);
  sent.indices = {1003};
  sent.values = {2.5};
  auto const wire = encoded(sent, {1000, 2000});
  double first = 0;
  std::int32_t second = 0;
  std::memcpy(&first, wire.data(), sizeof first);
  std::memcpy(&second, wire.data() + sizeof first, sizeof second);
  CHECK((first == 2.5 && second == 3));
}

TEST_CASE("formats that do not understand each other have different names") {
  std::set<std::string> const names = {coo<float, std::int32_t>::name(), coo<float, std::int64_t>::name(),
                                       coo<double, std::int32_t>::name(), coo<double, std::int64_t>::name()};
  CHECK(names.size() == 4);
}

TEMPLATE_LIST_TEST_CASE("coo takes no index of a message that lies outside the region", "", coo_formats) {
  using index = typename TestType::index_type;
  using value = typename TestType::value_type;
  region const where{1000, 1100};
  for (index const damaged :
       {index(-1), index(100), std::numeric_limits<index>::min(), std::numeric_limits<index>::max(), index(-1000)}) {
    arrays<TestType> sent(3);
    sent.indices = {1000, 1050, 1099};
    sent.values = {1, 2, 3};
    auto wire = encoded(sent, where);
    std::size_t const first = sizeof(index) >= sizeof(value) ? 0 : 3 * sizeof(value);
    std::memcpy(wire.data() + first + sizeof(index), &damaged, sizeof damaged);
    auto const got = decoded<TestType>(wire, 3, where);
    CHECK((got.indices == std::vector<index>{1000, 1000, 1099}));
    CHECK((got.values[0] == 1 && std::isnan(got.values[1]) && got.values[2] == 3));
  }
}

TEMPLATE_LIST_TEST_CASE("coo refuses a message that is too short for its entries", "", coo_formats) {
  CHECK(fault_of_zeros<TestType>(3 * TestType::entry_bytes, 3, {0, 100}) == oktopk::fault::none);
  CHECK(fault_of_zeros<TestType>(3 * TestType::entry_bytes - 1, 3, {0, 100}) == oktopk::fault::damaged_message);
  CHECK(fault_of_zeros<TestType>(-8, 3, {0, 100}) == oktopk::fault::damaged_message);
  CHECK(fault_of_zeros<TestType>(0, -1, {0, 100}) == oktopk::fault::damaged_message);
}
