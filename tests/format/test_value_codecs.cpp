// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "format/values_suite.hpp"

#include "extending/plain_values.hpp"

#include <oktopk/catalogue/one_of.hpp>
#include <oktopk/format/values/fixed.hpp>
#include <oktopk/format/values/floats.hpp>

using namespace oktopk_tests;

namespace {

using chosen_at_run_time =
    oktopk::detail::one_of_values<oktopk::exact_values, oktopk::fixed_values<2>, oktopk::sign_values>;

} // namespace

TEMPLATE_TEST_CASE("every value codec keeps its contract, also that of docs/extending.md", "", oktopk::exact_values,
                   oktopk::bfloat16_values, oktopk::fixed_values<8>, oktopk::fixed_values<5>, oktopk::fixed_values<4>,
                   oktopk::fixed_values<3>, oktopk::fixed_values<2>, oktopk::sign_values, oktopk::float16_values,
                   plain_values) {
  static_assert(oktopk::value_codec<TestType>);
  check_value_codec<TestType>();
}

TEST_CASE("float16 values are the nearest, and 65504 where they are larger") {
  constexpr float largest = std::numeric_limits<float>::max();
  std::vector<float> const values{65504,    65520,     -7e4F,      largest,      -largest,
                                  0x1p-24F, -0x1p-25F, 0x1.8p-24F, 1 + 0x1p-11F, 0.1F};
  std::vector<float> const nearest{65504, 65504, -65504, 65504, -65504, 0x1p-24F, -0.0F, 0x1p-23F, 1, 0x1.998p-4F};
  std::vector<std::byte> wire(100);
  std::vector<float> back(values.size());
  std::byte const* const in = wire.data();
  std::byte const* const end = oktopk::float16_values::encode(values.data(), 10, wire.data());
  CHECK(oktopk::float16_values::decode(in, end, 10, back.data()) == end);
  CHECK(same_bits(back, nearest));
}

TEST_CASE("a value codec that is chosen at run time codes as the chosen one") {
  static_assert(oktopk::value_codec<chosen_at_run_time> && !chosen_at_run_time::lossless);
  std::vector<float> const values{1, -2, 3, 4, -5};
  std::vector<std::byte> wire(100);
  std::vector<std::byte> expected(100);
  auto const same = [&](auto const& one, chosen_at_run_time const& any) {
    auto const count = static_cast<int>(values.size());
    CHECK(any.name() == one.name());
    CHECK(any.most_bytes<float>(count) == one.template most_bytes<float>(count));
    auto const bytes = any.encode(values.data(), count, wire.data()) - wire.data();
    CHECK(one.encode(values.data(), count, expected.data()) - expected.data() == bytes);
    CHECK(std::equal(wire.begin(), wire.begin() + bytes, expected.begin()));
    std::vector<float> back(values.size());
    std::byte const* const in = wire.data();
    CHECK(any.decode(in, in + bytes, count, back.data()) == in + bytes);
    CHECK((any.is_lossy() || back == values));
  };
  same(oktopk::exact_values(), {{}, 0});
  same(oktopk::fixed_values<2>(), {{}, 1});
  same(oktopk::sign_values(), {{}, 2});
  CHECK(!chosen_at_run_time{{}, 0}.is_lossy());
  CHECK(chosen_at_run_time{{}, 2}.is_lossy());
}
