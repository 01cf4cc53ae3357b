// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "format/suite.hpp"

#include <oktopk/format/packed.hpp>

// What every value codec must pass, by itself and as the values of a packed format.
namespace oktopk_tests {

/// Blocks of any size: the bytes of `encode` are what `decode` reads, no more than promised, and finite again.
template <class Codec, class Value>
void check_blocks_of() {
  Codec const codec;
  seeded draw(31);
  int before = 0;
  for (int count = 1; count <= 256; ++count) {
    CAPTURE(count);
    int const most = codec.template most_bytes<Value>(count);
    CHECK(most >= before);
    CHECK(most <= count * static_cast<int>(sizeof(Value)) + 64);
    before = most;
    std::vector<Value> values(static_cast<std::size_t>(count));
    for (Value& value : values) {
      auto const bits = static_cast<oktopk::detail::bits_of<Value>>(draw.next());
      value = __builtin_bit_cast(Value, bits);
      value = std::isfinite(value) && draw.next() % 4 == 0 ? value : static_cast<Value>(draw.next() % 1000) / 7;
    }
    std::vector<std::byte> wire(static_cast<std::size_t>(most) + 16, std::byte{0xab});
    std::byte* const end = codec.encode(values.data(), count, wire.data());
    auto const bytes = end - wire.data();
    REQUIRE((bytes > 0 && bytes <= most));
    CHECK(std::all_of(wire.begin() + most + 8, wire.end(), [](std::byte each) { return each == std::byte{0xab}; }));
    std::vector<Value> back(static_cast<std::size_t>(count) + 1, Value(77));
    std::byte const* const in = wire.data();
    CHECK(codec.decode(in, in + bytes, count, back.data()) == in + bytes);
    CHECK(back.back() == 77);
    back.pop_back();
    CHECK(std::all_of(back.begin(), back.end(), [](Value value) { return std::isfinite(value); }));
    CHECK((!Codec::lossless || same_bits(back, values)));
    back.emplace_back();
    for (int missing = 1; missing <= std::min<int>(4, static_cast<int>(bytes)); ++missing) {
      CHECK(codec.decode(in, in + bytes - missing, count, back.data()) == nullptr);
    }
  }
}

template <class Codec>
void check_value_codec() {
  check_blocks_of<Codec, float>();
  check_blocks_of<Codec, double>();
  check_format<oktopk::packed<float, std::int32_t, Codec>>();
  check_format<oktopk::packed<double, std::int64_t, Codec>>();
}

} // namespace oktopk_tests
