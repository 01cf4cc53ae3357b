// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/seeded.hpp"

#include <oktopk/select/kernel/source.hpp>

#include <bit>
#include <limits>
#include <vector>

namespace oktopk_tests {

inline constexpr std::uint64_t untouched = 0x5a5a5a5a5a5a5a5aU;

/// How many masks are not what one comparison a value says, out of some thousand: values of all kinds at any alignment,
/// thresholds among them and at both ends; with the best instructions that this processor has, and with plain code.
template <class Value>
int wrong_masks() {
  using namespace oktopk::detail;
  using bits = bits_of<Value>;
  using limits = std::numeric_limits<Value>;
  seeded draw(9);
  std::vector<Value> const special = {Value(0),
                                      -Value(0),
                                      limits::denorm_min(),
                                      -limits::denorm_min(),
                                      limits::min(),
                                      limits::max(),
                                      -limits::max(),
                                      limits::infinity(),
                                      -limits::infinity(),
                                      limits::quiet_NaN(),
                                      -limits::quiet_NaN(),
                                      Value(1),
                                      Value(-1)};
  constexpr int most_blocks = 3;
  int wrong = 0;
  for (int round = 0; round < 3000; ++round) {
    int const blocks = round % most_blocks + 1;
    std::vector<Value> values(static_cast<std::size_t>(blocks * mask_width + 8));
    for (Value& value : values) {
      bool const any = draw.next() % 4 != 0;
      value = any ? std::bit_cast<Value>(static_cast<bits>(draw.next())) : special[draw.next() % special.size()];
    }
    Value const* const from = values.data() + draw.next() % 8;
    for (bits const reach : {magnitude_bits(from[round % mask_width]), static_cast<bits>(draw.next() >> 1), bits(0),
                             bits(1), infinity_bits<Value>, static_cast<bits>(~bits(0) >> 1)}) {
      bits const least = reach & static_cast<bits>(~bits(0) >> 1);
      std::vector<std::uint64_t> expected(most_blocks, untouched);
      for (int block = 0; block < blocks; ++block) {
        expected[static_cast<std::size_t>(block)] = 0;
        for (int i = 0; i < mask_width; ++i) {
          bool const reaches = magnitude_bits(from[block * mask_width + i]) >= least;
          expected[static_cast<std::size_t>(block)] |= std::uint64_t(reaches ? 1 : 0) << i;
        }
      }
      auto const check = [&](auto const& masks_of) {
        std::vector<std::uint64_t> masks(most_blocks, untouched);
        masks_of(from, blocks, least, masks.data());
        wrong += masks != expected ? 1 : 0;
      };
      check(magnitude_masks<Value>);
      check(plain_masks<Value>);
    }
  }
  return wrong;
}

/// How many accumulators or masks are not what one sum and one comparison a value give, with the best instructions that
/// this processor has, and with plain code.
template <class Value>
int wrong_accumulators() {
  using namespace oktopk::detail;
  seeded draw(11);
  auto const any = [&] { return std::bit_cast<Value>(static_cast<bits_of<Value>>(draw.next())); };
  int wrong = 0;
  for (int round = 0; round < 1000; ++round) {
    constexpr std::size_t length = 3 * mask_width;
    std::size_t const shift = draw.next() % 8;
    std::vector<Value> residual(length + shift);
    std::vector<Value> gradient(length + shift);
    for (std::size_t i = 0; i < residual.size(); ++i) {
      residual[i] = any();
      gradient[i] = any();
    }
    Value const rate = round % 3 == 0 ? Value(1) : any();
    std::vector<Value> expected(length);
    for (std::size_t i = 0; i < length; ++i) {
      expected[i] = residual[shift + i] + rate * gradient[shift + i];
    }
    bits_of<Value> const reach = round % 5 == 0 ? 0 : magnitude_bits(expected[draw.next() % length]);
    std::vector<std::uint64_t> expected_masks(3);
    plain_masks<Value>(expected.data(), 3, reach, expected_masks.data());
    auto const check = [&](auto const& accumulates) {
      std::vector<Value> formed(length);
      std::vector<std::uint64_t> masks(3, untouched);
      accumulates(residual.data() + shift, gradient.data() + shift, rate, formed.data(), 3, reach, masks.data());
      // Which of two NaN a sum carries on is the compiler's choice.
      bool same = masks == expected_masks;
      for (std::size_t i = 0; i < length; ++i) {
        same = same && (std::bit_cast<bits_of<Value>>(formed[i]) == std::bit_cast<bits_of<Value>>(expected[i]) ||
                        (formed[i] != formed[i] && expected[i] != expected[i]));
      }
      wrong += same ? 0 : 1;
    };
    check(accumulate_masks<Value>);
    check(plain_accumulate_masks<Value>);
  }
  return wrong;
}

} // namespace oktopk_tests
