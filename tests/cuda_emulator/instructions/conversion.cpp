// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lanewise.hpp"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <limits>

namespace cuda_emulator {

namespace {

// To the nearest, toward 0, down and up: of a result (rn, ...) or to a whole number (rni, ...).
enum rounding : u8 { nearest = 1, toward_zero, down, up };
constexpr u8 to_integer = 4; // added to a rounding

int mode_of(u8 how) {
  return how == toward_zero ? FE_TOWARDZERO : how == down ? FE_DOWNWARD : how == up ? FE_UPWARD : FE_TONEAREST;
}

template <typename To, typename From>
To rounded(From number, u8 how) {
  if (how <= nearest) {
    return static_cast<To>(number);
  }
  int const before = std::fegetround();
  std::fesetround(mode_of(how));
  From const volatile operand = number; // or the conversion may be done before
  To const volatile result = static_cast<To>(operand);
  std::fesetround(before);
  return result;
}

f64 whole(f64 number, u8 how) {
  switch (how) {
  case nearest: return std::nearbyint(number);
  case down: return std::floor(number);
  case up: return std::ceil(number);
  default: return std::trunc(number);
  }
}

template <typename To, typename From>
To converted(From from, u8 how, bool saturates) {
  constexpr bool to_whole = std::is_integral_v<To>;
  if constexpr (to_whole && std::is_integral_v<From>) {
    if (saturates) {
      using limits = std::numeric_limits<To>;
      return static_cast<To>(std::clamp<i128>(from, i128(limits::min()), i128(limits::max())));
    }
    return static_cast<To>(from);
  } else if constexpr (to_whole) { // what does not fit becomes the nearest that does
    f64 const number = whole(static_cast<f64>(from), how > to_integer ? how - to_integer : how);
    if (number != number) {
      constexpr bool is_wide = sizeof(To) == 8 || sizeof(From) == 8;
      return is_wide ? static_cast<To>(u64(1) << (8 * sizeof(To) - 1)) : To(0);
    }
    f64 const end = std::ldexp(1.0, std::numeric_limits<To>::digits);
    return number >= end                                 ? std::numeric_limits<To>::max()
           : number <= (std::is_signed_v<To> ? -end : 0) ? std::numeric_limits<To>::min()
                                                         : static_cast<To>(number);
  } else {
    To result = 0;
    if (how > to_integer) {
      result = static_cast<To>(whole(static_cast<f64>(from), how - to_integer));
    } else {
      result = rounded<To>(from, how);
    }
    return !saturates ? result : !(result > To(0)) ? To(0) : std::min<To>(result, To(1));
  }
}

template <typename To, typename From>
void convert(warp&, frame& f, instruction const& i, u32 lanes) {
  u64 const* const from = f.values(i.sources[0]);
  u64* const to = f.registers[i.destinations[0]];
  for_each_lane(lanes, [&](int lane) {
    to[lane] = to_register(converted<To>(from_register<From>(from[lane]), i.variant, i.flag));
  });
}

template <typename To>
constexpr auto cast_to = []<typename From>(From from) -> To { return static_cast<To>(from); };

// The frequent ones, without choices at run time: between integers, and to floats by the usual rounding.
template <typename To, typename From>
handler conversion(bool plain) {
  constexpr bool direct = std::is_integral_v<From> || !std::is_integral_v<To>;
  return plain && direct ? lanewise<cast_to<To>, From> : convert<To, From>;
}

template <typename To>
handler conversion_to(ptx_type from, bool plain) {
  return for_type<u8, i8, u16, i16, u32, i32, u64, i64, f16, f32, f64>(
      from, [plain]<typename From>() -> handler { return conversion<To, From>(plain); });
}

} // namespace

bool decode_conversion(statement const& s, decoder& d, instruction& i) {
  if (s.name != "cvt" || s.modifiers.size() < 2 || s.has("relu")) {
    return false;
  }
  constexpr std::string_view roundings[] = {"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"};
  for (u8 k = 0; k < std::size(roundings); ++k) {
    i.variant = s.has(roundings[k]) ? static_cast<u8>(k + 1) : i.variant;
  }
  i.flag = s.has("sat");
  bool const plain = i.variant <= nearest && !i.flag;
  handler const run = for_type<u8, i8, u16, i16, u32, i32, u64, i64, f16, f32, f64>(
      type_named(s.modifiers[s.modifiers.size() - 2]),
      [&s, plain]<typename To>() -> handler { return conversion_to<To>(s.type, plain); });
  return d.usual(s, i, run, 1);
}

} // namespace cuda_emulator
