// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/call.hpp"
#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"

#include <oktopk/sparse/given_entries.hpp>

#include <map>

using namespace oktopk_tests;
using oktopk::fault;

namespace {

struct plain_sum : oktopk::detail::no_fault {
  KOKKOS_INLINE_FUNCTION static constexpr double identity() { return 0; }
  KOKKOS_INLINE_FUNCTION static constexpr double combine(double a, double b) { return a + b; }
};

template <class Index>
class subject {
public:
  explicit subject(std::int64_t width) : width_(width), given_(width) {}

  /// The entries that come out, and the fault; the values of an entry follow one another.
  std::pair<sparse_vector<double>, oktopk::detail::fault_report>
  run(std::vector<std::int64_t> const& indices, std::int64_t length, oktopk::detail::entry_promises promised = {}) {
    std::vector<double> values;
    for (std::size_t i = 0; i < indices.size() * static_cast<std::size_t>(width_); ++i) {
      values.push_back(fraction(noise(3, i)));
    }
    index_view_ = to_view(std::vector<Index>(indices.begin(), indices.end()));
    value_view_ = to_view(values);
    auto const [entries, broken] = given_.run(
        shared_execution(), {index_view_.data(), value_view_.data(), std::ssize(indices), width_}, length, promised);
    is_as_given_ = entries.indices.data() == index_view_.data();
    return {entries_of(entries), broken};
  }

  bool is_as_given() const { return is_as_given_; }

private:
  std::int64_t width_;
  oktopk::detail::given_entries<execution, Index, double, plain_sum, std::int64_t> given_;
  Kokkos::View<Index*, memory> index_view_;
  Kokkos::View<double*, memory> value_view_;
  bool is_as_given_ = false;
};

} // namespace

TEMPLATE_TEST_CASE("given_entries sorts, and combines values of equal indices in the order in which they are given", "",
                   std::int32_t, std::int64_t) {
  for (std::int64_t const width : {1, 3}) {
    subject<TestType> entries(width);
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      std::int64_t const most = sizeof(TestType) == 4 ? (std::int64_t(1) << 31) - 1 : std::int64_t(1) << 37;
      std::int64_t const length = std::min<std::int64_t>(std::int64_t(1) << (seed % 38), most);
      std::vector<std::int64_t> indices;
      for (std::uint64_t i = 0; i < seed * seed; ++i) {
        indices.push_back(number_in(0, length - 1, noise(seed, i)) % (seed % 3 == 0 ? 50 : length));
      }
      std::map<std::int64_t, std::vector<double>> expected;
      for (std::size_t i = 0; i < indices.size(); ++i) {
        for (std::size_t j = 0; j < static_cast<std::size_t>(width); ++j) {
          double const value = fraction(noise(3, i * static_cast<std::size_t>(width) + j));
          auto& row = expected[indices[i]];
          if (row.size() <= j) {
            row.push_back(value);
          } else {
            row[j] += value;
          }
        }
      }
      sparse_vector<double> list;
      for (auto const& [index, row] : expected) {
        list.indices.push_back(index);
        list.values.insert(list.values.end(), row.begin(), row.end());
      }
      auto const [found, broken] = entries.run(indices, length);
      CAPTURE(width, seed);
      CHECK(!broken);
      CHECK(same(found, list));
    }
  }
}

TEST_CASE("given_entries leaves what ascends where it is") {
  subject<std::int32_t> entries(2);
  for (auto const& indices : {std::vector<std::int64_t>{}, {7}, {0, 3, 9}}) {
    CHECK(entries.run(indices, 10).first.indices == indices);
    CHECK(entries.is_as_given());
    CHECK(!entries.run(indices, 10, {.unique = true, .ascending = true}).second);
  }
  CHECK(!entries.run({0, 0}, 1).second);
  CHECK(!entries.is_as_given());
}

TEST_CASE("given_entries names the first position, or the least index, that breaks a promise") {
  subject<std::int64_t> entries(1);
  auto const said = [&](std::vector<std::int64_t> const& indices, oktopk::detail::entry_promises promised = {}) {
    auto const broken = entries.run(indices, 10, promised).second;
    return std::pair(broken.code, broken.detail);
  };
  CHECK((said({3, 1, 10, -1}) == std::pair(fault::index_out_of_range, std::int64_t(2))));
  CHECK((said({3, 1, -1, 10}) == std::pair(fault::index_out_of_range, std::int64_t(2))));
  CHECK((said({3, 4, 4, 2}, {.ascending = true}) == std::pair(fault::not_ascending, std::int64_t(2))));
  CHECK((said({9, 4, 5, 9, 4}, {.unique = true}) == std::pair(fault::repeated_index, std::int64_t(4))));
  CHECK((said({9, 4, 5}, {.unique = true}) == std::pair(fault::none, std::int64_t(0))));
}
