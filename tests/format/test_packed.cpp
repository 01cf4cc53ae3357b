// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "format/suite.hpp"

#include <oktopk/format/packed.hpp>
#include <oktopk/format/values/fixed.hpp>
#include <oktopk/format/values/floats.hpp>

#include <numeric>
#include <tuple>

using namespace oktopk_tests;
using oktopk::packed;

namespace {

template <class Value, class Index>
using exact = packed<Value, Index, oktopk::exact_values>;

using exact_formats = std::tuple<exact<float, std::int32_t>, exact<float, std::int64_t>, exact<double, std::int32_t>,
                                 exact<double, std::int64_t>>;
using lossy_formats = std::tuple<
    packed<float, std::int32_t, oktopk::bfloat16_values>, packed<double, std::int64_t, oktopk::bfloat16_values>,
    packed<float, std::int32_t, oktopk::fixed_values<8>>, packed<double, std::int32_t, oktopk::fixed_values<8>>,
    packed<float, std::int64_t, oktopk::fixed_values<4>>, packed<double, std::int32_t, oktopk::fixed_values<4>>,
    packed<float, std::int32_t, oktopk::fixed_values<2>>, packed<double, std::int32_t, oktopk::fixed_values<2>>,
    packed<float, std::int32_t, oktopk::sign_values>, packed<double, std::int64_t, oktopk::sign_values>>;

static_assert(oktopk::sparse_format<packed<>> && packed<>::lossless && !packed<>::exact_size);
static_assert(oktopk::detail::encodes_on<packed<>, Kokkos::DefaultExecutionSpace>);

/// Values like those of a selection: of either sign, above a threshold, most of them within a few times of it.
template <class Format>
arrays<Format> selected_entries(std::int64_t count, std::int64_t density_inverse, region where, std::uint64_t seed) {
  using value = typename Format::value_type;
  arrays<Format> made(static_cast<std::size_t>(count));
  seeded draw(seed);
  std::int64_t index = where.begin - 1;
  for (std::size_t i = 0; i < made.indices.size(); ++i) {
    double const share = (static_cast<double>(draw.next() % 1000000) + 0.5) / 1000000;
    index += 1 + static_cast<std::int64_t>(std::log(share) / std::log1p(-1 / static_cast<double>(density_inverse)));
    made.indices[i] = static_cast<typename Format::index_type>(index);
    double const magnitude = 0.013 * (1 - 0.4 * std::log((static_cast<double>(draw.next() % 1000000) + 0.5) / 1000000));
    made.values[i] = static_cast<value>(draw.next() % 2 == 0 ? magnitude : -magnitude);
  }
  return made;
}

} // namespace

// With float and std::int32_t, and with double and std::int64_t, test_value_codecs.cpp checks every code of the values.
TEMPLATE_TEST_CASE("packed keeps the contract of a format", "", (exact<float, std::int64_t>),
                   (exact<double, std::int32_t>)) {
  check_format<TestType>();
}

TEST_CASE("packed takes gaps beyond 2^31, and regions beyond 2^32") {
  using format = exact<double, std::int64_t>;
  arrays<format> sent(1000);
  seeded draw(5);
  std::int64_t index = std::int64_t(1) << 40;
  for (std::size_t i = 0; i < sent.indices.size(); ++i) {
    index += 1 + static_cast<std::int64_t>(i % 97 == 0 ? draw.next() >> 20 : draw.next() % 50);
    sent.indices[i] = index;
    sent.values[i] = static_cast<double>(draw.next());
  }
  round_trip<format>(sent, {std::int64_t(1) << 40, index + 1});
  round_trip<format>(sent, {0, std::int64_t(1) << 62});
  arrays<format> ends(2);
  ends.indices = {0, (std::int64_t(1) << 62) - 1};
  ends.values = {1, -2};
  round_trip<format>(ends, {0, std::int64_t(1) << 62});
  arrays<exact<float, std::int32_t>> last(2);
  last.indices = {0, 2147483646};
  round_trip<exact<float, std::int32_t>>(last, {0, 2147483647});
}

TEST_CASE("evenly spread indices take little less than the bound, and no order of gaps takes more") {
  using format = exact<float, std::int32_t>;
  seeded draw(3);
  for (std::int64_t const gap : {1, 2, 3, 5, 64, 100, 127, 128, 1000, 100000}) {
    std::int64_t const count = 10000;
    region const where{0, gap * count};
    auto even = some_entries<format>(count, where);
    auto const most = static_cast<std::size_t>(format().max_encoded_bytes(count, where));
    auto const size = encoded(even, where).size();
    CAPTURE(gap, most, size);
    CHECK(size <= most);
    CHECK(static_cast<double>(size) > 0.94 * static_cast<double>(most));
    for (int repeat = 0; repeat < 5; ++repeat) { // some indices move, within their gaps
      for (std::size_t i = 0; i < even.indices.size(); ++i) {
        even.indices[i] =
            static_cast<std::int32_t>(static_cast<std::int64_t>(i) * gap +
                                      static_cast<std::int64_t>(draw.next() % static_cast<std::uint64_t>(gap)));
      }
      CHECK(encoded(even, where).size() <= most);
    }
  }
}

TEST_CASE("indices at random take no more than 0.6 bits above log2 C(n, k) / k") {
  using format = packed<float, std::int32_t, oktopk::sign_values>;
  for (std::int64_t const inverse : {5, 20, 64, 100, 1000}) {
    std::int64_t const count = 20000;
    auto sent = selected_entries<format>(count, inverse, {0, 1}, 11);
    region const where{0, sent.indices.back() + 1};
    auto const n = static_cast<double>(where.end);
    auto const k = static_cast<double>(count);
    double const entropy = (std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1)) / std::log(2.0) / k;
    auto const bits = 8 * static_cast<double>(encoded(sent, where).size()) / k;
    double const sign_bits = 1 + 16.0 / 256; // of the values, which the size has as well
    CAPTURE(inverse, entropy, bits);
    CHECK(bits - sign_bits <= entropy + 0.6);
    CHECK(bits - sign_bits >= entropy);
  }
}

TEST_CASE("lossless values of a selection take 25.6 bits, bfloat16 9.6") {
  auto const bits_of = [](auto format) {
    using type = decltype(format);
    auto const sent = selected_entries<type>(20000, 100, {0, 1}, 12);
    return 8 * static_cast<double>(encoded(sent, {0, sent.indices.back() + 1}).size()) / 20000;
  };
  double const indices = bits_of(packed<float, std::int32_t, oktopk::sign_values>()) - 1 - 16.0 / 256;
  CHECK(bits_of(packed<>()) - indices < 25.6);
  CHECK(bits_of(packed<float, std::int32_t, oktopk::bfloat16_values>()) - indices < 9.6);
}

TEMPLATE_LIST_TEST_CASE("a rounding error is at most what the codec promises", "", lossy_formats) {
  using value = typename TestType::value_type;
  auto const sent = selected_entries<TestType>(3000, 50, {0, 1}, 13);
  region const where{0, sent.indices.back() + 1};
  auto const received = decoded<TestType>(encoded(sent, where), 3000, where);
  std::string const name = TestType().name();
  for (std::size_t first = 0; first < sent.values.size(); first += 256) {
    std::size_t const last = std::min(first + 256, sent.values.size());
    value largest = 0;
    double mean = 0;
    for (std::size_t i = first; i < last; ++i) {
      largest = std::max(largest, std::fabs(sent.values[i]));
      mean += static_cast<double>(std::fabs(sent.values[i])) / static_cast<double>(last - first);
    }
    for (std::size_t i = first; i < last; ++i) {
      double const error = std::fabs(static_cast<double>(received.values[i]) - static_cast<double>(sent.values[i]));
      double const magnitude = std::fabs(static_cast<double>(sent.values[i]));
      CHECK(std::signbit(received.values[i]) == std::signbit(sent.values[i]));
      if (name.find("bfloat16") != std::string::npos) {
        CHECK(error <= magnitude * 0x1.01p-8);
      } else if (name.find("fixed8") != std::string::npos) {
        CHECK(error <= static_cast<double>(largest) / 254 * 1.01);
      } else if (name.find("fixed4") != std::string::npos) {
        CHECK(error <= static_cast<double>(largest) / 14 * 1.01);
      } else if (name.find("sign") != std::string::npos) {
        CHECK(std::fabs(std::fabs(static_cast<double>(received.values[i])) - mean) <= mean * 0x1p-7);
      } else {
        CHECK(error <= static_cast<double>(largest)); // two levels: nearer ones are tested below
      }
    }
  }
}

TEST_CASE("fixed2 fits its two magnitudes to a block") {
  using format = packed<float, std::int32_t, oktopk::fixed_values<2>>;
  arrays<format> sent(256);
  for (std::size_t i = 0; i < 256; ++i) {
    sent.indices[i] = static_cast<std::int32_t>(i);
    sent.values[i] = (i % 3 == 0 ? 8.0F : 1.0F) * (i % 2 == 0 ? 1.0F : -1.0F);
  }
  auto const received = decoded<format>(encoded(sent, {0, 256}), 256, {0, 256});
  CHECK(received.values == sent.values);
}

TEST_CASE("zeros, subnormal numbers and the largest stay finite in every code") {
  auto const check = [](auto format) {
    using type = decltype(format);
    using value = typename type::value_type;
    value const largest = std::numeric_limits<value>::max();
    value const tiny = std::numeric_limits<value>::denorm_min();
    for (std::vector<value> const& values :
         {std::vector<value>{0, -value(0)}, {tiny, -tiny, 0}, {largest, -largest}, {largest, tiny, 1}, {1, 0}}) {
      arrays<type> sent(values.size());
      std::iota(sent.indices.begin(), sent.indices.end(), 0);
      sent.values = values;
      round_trip<type>(sent, {0, 5});
    }
  };
  std::apply([&](auto... formats) { (check(formats), ...); }, lossy_formats());
  std::apply([&](auto... formats) { (check(formats), ...); }, exact_formats());
}

TEST_CASE("a packed message of three entries is these bytes") {
  using format = packed<>;
  arrays<format> sent(3);
  sent.indices = {102, 103, 110};
  sent.values = {1.0F, -1.5F, 2.0F};
  // Table: first index 102 - 100, size of the block 20, both of 2 bytes.
  // Values: base 0x3f80 (the upper half of 1.0 without its sign, of 31 bits the upper 16: 0x7f00), width 24, no
  // patches; three codes of 25 bits, difference and sign: 0, 0x400000 and sign, 0x800000. Indices: width 1, no patches;
  // gaps less one 0 and 6: low bits 0 and 0; quotients 0 and 3: a one, three zeros, a one.
  std::vector<int> const expected = {2,    0,    20,   0,    0x00, 0x7f, 24, 0, 0x00, 0x00, 0x00, 0x02,
                                     0x00, 0x00, 0x01, 0x00, 0x00, 0x04, 2,  0, 8,    5,    0,    0};
  std::vector<int> bytes;
  for (std::byte const each : encoded(sent, {100, 200})) {
    bytes.push_back(static_cast<int>(each));
  }
  CHECK(bytes == expected);
}

TEMPLATE_LIST_TEST_CASE("a block has the same bytes and the same entries with AVX2 and without", "", lossy_formats) {
  using value = typename TestType::value_type;
  using index = typename TestType::index_type;
  if (!oktopk::detail::processor_has_avx2()) {
    return;
  }
  TestType const format;
  for (int count = 1; count <= 256; ++count) {
    auto const sent = selected_entries<TestType>(count, 1 + count % 9 * 30, {7, 8}, static_cast<std::uint64_t>(count));
    std::vector<std::byte> plain(16384, std::byte{0xab});
    std::vector<std::byte> wide(16384, std::byte{0xab});
    auto const size = format.encode_block(sent.indices.data(), sent.values.data(), count, plain.data());
    REQUIRE(format.encode_with_avx2(sent.indices.data(), sent.values.data(), count, wide.data()) == size);
    REQUIRE(std::equal(plain.begin(), plain.begin() + size, wide.begin()));
    std::vector<index> indices(256);
    std::vector<index> wide_indices(256);
    std::vector<value> values(256);
    std::vector<value> wide_values(256);
    region const where{0, sent.indices.back() + 1};
    auto const first = static_cast<std::uint64_t>(sent.indices.front());
    std::byte const* const in = plain.data();
    REQUIRE(format.decode_block(in, size, where, first, count, indices.data(), values.data()));
    REQUIRE(format.decode_with_avx2(in, size, where, first, count, wide_indices.data(), wide_values.data()));
    REQUIRE(indices == wide_indices);
    REQUIRE(same_bits(values, wide_values));
  }
}

TEMPLATE_LIST_TEST_CASE("damaged packed messages are refused, or give indices inside the region", "", exact_formats) {
  seeded draw(21);
  region const where{500, 500 + 60000};
  auto const sent = some_entries<TestType>(600, where);
  auto const message = encoded(sent, where);
  for (int repeat = 0; repeat < 3000; ++repeat) {
    auto damaged = message;
    for (std::uint64_t flips = draw.next() % 8 + 1; flips > 0; --flips) {
      damaged[draw.next() % damaged.size()] = static_cast<std::byte>(draw.next());
    }
    if (repeat % 5 == 0) {
      damaged.resize(draw.next() % damaged.size());
    }
    try {
      auto const received = decoded<TestType>(damaged, 600, where);
      for (auto const index : received.indices) {
        REQUIRE((index >= where.begin && index < where.end));
      }
      for (std::size_t i = 1; i < 256; ++i) { // a block ascends, or is spoiled as a whole
        REQUIRE((received.indices[i] > received.indices[i - 1] || std::isnan(received.values[i])));
      }
    } catch (oktopk::error const& refused) {
      CHECK(refused.code() == oktopk::fault::damaged_message);
    }
  }
}

TEST_CASE("a block that begins behind its region, or whose indices do not ascend, is none") {
  packed<> const format;
  arrays<packed<>> one(1);
  one.indices = {109};
  std::vector<std::byte> block(64);
  auto const size = format.encode_block(one.indices.data(), one.values.data(), 1, block.data());
  auto const is_block = [&](std::uint64_t first) {
    return format.decode_block(block.data(), size, {100, 110}, first, 1, one.indices.data(), one.values.data());
  };
  CHECK(is_block(9));
  CHECK(!is_block(10));

  arrays<packed<>> far(200);
  std::iota(far.indices.begin(), far.indices.end(), 0);
  far.indices.back() = 1000000; // a patch: its gap has the width 0, and this quotient
  std::uint32_t const quotient = 1000000 - 198 - 1;
  auto message = encoded(far, {0, 1 << 20});
  auto const* const bytes = reinterpret_cast<std::byte const*>(&quotient);
  auto const place = std::search(message.begin(), message.end(), bytes, bytes + sizeof quotient);
  REQUIRE(place != message.end());
  CHECK(decoded<packed<>>(message, 200, {0, 1 << 20}).indices == far.indices);
  std::fill_n(place, sizeof quotient, std::byte(0xff)); // less 1, which is the index before
  CHECK(std::isnan(decoded<packed<>>(message, 200, {0, 1 << 20}).values.back()));
}
