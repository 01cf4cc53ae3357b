// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/seeded.hpp"

#include <oktopk/select/kernel/magnitude_mask.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace oktopk_tests {

/// How many masks are not what one comparison a value says, out of some thousand: values of all kinds at any alignment,
/// thresholds among them and at both ends.
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
  int wrong = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<Value> values(mask_width + 8);
    for (Value& value : values) {
      bool const any = draw.next() % 4 != 0;
      value = any ? std::bit_cast<Value>(static_cast<bits>(draw.next())) : special[draw.next() % special.size()];
    }
    Value const* const from = values.data() + draw.next() % 8;
    for (bits const reach : {magnitude_bits(from[round % mask_width]), static_cast<bits>(draw.next() >> 1), bits(0),
                             bits(1), infinity_bits<Value>, static_cast<bits>(~bits(0) >> 1)}) {
      bits const least = reach & static_cast<bits>(~bits(0) >> 1);
      std::uint64_t expected = 0;
      for (int i = 0; i < mask_width; ++i) {
        expected |= std::uint64_t(magnitude_bits(from[i]) >= least ? 1 : 0) << i;
      }
      wrong += magnitude_mask(from, least) != expected ? 1 : 0;
      wrong += portable_magnitude_mask(from, least) != expected ? 1 : 0;
    }
  }
  return wrong;
}

} // namespace oktopk_tests
