// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/format/values/concept.hpp>
#include <oktopk/format/values/scale.hpp>

#include <cstdint>
#include <string>

namespace oktopk {

/// One bit a value: its sign, and the mean magnitude of the block, which is the scale with the least squared error
/// (Bernstein et al. 2018, signSGD; Karimireddy et al. 2019 with error feedback).
struct sign_values {
  static constexpr bool lossless = false;
  static std::string name() { return "sign"; }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int most_bytes(int count) {
    return detail::scale_half<Value>::bytes + detail::packed_bytes<std::uint32_t>(count, 1);
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static std::byte* encode(Value const* values, int count, std::byte* out) {
    using half = detail::scale_half<Value>;
    Value const share = Value(1) / static_cast<Value>(count); // shares, for a sum of large values overflows
    Value mean = 0;
    std::uint32_t codes[detail::block_values];
    for (int i = 0; i < count; ++i) {
      mean += detail::magnitude_from_bits<Value>(detail::magnitude_bits(values[i])) * share;
      codes[i] = detail::sign_bit(values[i]) ? 1U : 0U;
    }
    if (count < detail::block_values) {
      codes[count] = 0;
    }
    Value const most = detail::largest_finite<Value>;
    detail::store_to(out, half::nearest(mean < most ? mean : most));
    return detail::pack_numbers(out + half::bytes, codes, count, 1);
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static std::byte const* decode(std::byte const* in, std::byte const* end, int count,
                                                             Value* values) {
    using half = detail::scale_half<Value>;
    if (end - in < most_bytes<Value>(count)) {
      return nullptr;
    }
    Value const scale = half::value(detail::load_from<typename half::type>(in));
    std::uint32_t signs[detail::block_values];
    detail::unpack_numbers(in + half::bytes, count, 1, signs);
    for (int i = 0; i < count; ++i) {
      values[i] = detail::with_sign<Value>(scale, signs[i]);
    }
    return in + most_bytes<Value>(count);
  }
};

} // namespace oktopk
