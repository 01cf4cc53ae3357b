// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lanewise.hpp"

#include <cmath>
#include <limits>

namespace cuda_emulator {

namespace {

// Of a number that becomes a whole one; floats are rounded to the nearest otherwise.
enum rounding : u8 { none, nearest, toward_zero, down, up };

f64 whole(f64 number, u8 how) {
  switch (how) {
  case nearest: return std::nearbyint(number);
  case down: return std::floor(number);
  case up: return std::ceil(number);
  default: return std::trunc(number);
  }
}

template <typename To, typename From>
To converted(From from, u8 how) {
  if constexpr (!std::is_integral_v<To>) {
    return static_cast<To>(whole(static_cast<f64>(from), how));
  } else { // what does not fit becomes the nearest that does
    f64 const number = whole(static_cast<f64>(from), how);
    if (number != number) {
      constexpr bool is_wide = sizeof(To) == 8 || sizeof(From) == 8;
      return is_wide ? static_cast<To>(u64(1) << (8 * sizeof(To) - 1)) : To(0);
    }
    f64 const end = std::ldexp(1.0, std::numeric_limits<To>::digits);
    return number >= end                                 ? std::numeric_limits<To>::max()
           : number <= (std::is_signed_v<To> ? -end : 0) ? std::numeric_limits<To>::min()
                                                         : static_cast<To>(number);
  }
}

template <typename To, typename From>
void convert(warp&, frame& f, instruction const& i, u32 lanes) {
  u64 const* const from = f.values(i.sources[0]);
  u64* const to = f.registers[i.destinations[0]];
  for_each_lane(lanes,
                [&](int lane) { to[lane] = to_register(converted<To>(from_register<From>(from[lane]), i.variant)); });
}

template <typename To>
constexpr auto cast_to = []<typename From>(From from) -> To { return static_cast<To>(from); };

// Without a choice at run time where nothing becomes a whole number.
template <typename To>
handler conversion_to(ptx_type from, bool to_whole) {
  return for_type<u8, i8, u16, i16, u32, i32, u64, i64, f32, f64>(from, [to_whole]<typename From>() -> handler {
    if constexpr (std::is_integral_v<From>) {
      return lanewise<cast_to<To>, From>;
    } else {
      return to_whole || std::is_integral_v<To> ? convert<To, From> : lanewise<cast_to<To>, From>;
    }
  });
}

} // namespace

bool decode_conversion(statement const& s, decoder& d, instruction& i) {
  constexpr std::string_view roundings[] = {"rni", "rzi", "rmi", "rpi"}; // as `rounding` has them
  for (u8 k = 0; k < std::size(roundings); ++k) {
    i.variant = s.has(roundings[k]) ? static_cast<u8>(k + 1) : i.variant;
  }
  for (std::string_view const other : {"rz", "rm", "rp", "sat"}) {
    if (s.has(other)) {
      return false;
    }
  }
  if (s.name != "cvt" || s.modifiers.size() < 2) {
    return false;
  }
  handler const run = for_type<u8, i8, u16, i16, u32, i32, u64, i64, f32, f64>(
      type_named(s.modifiers[s.modifiers.size() - 2]),
      [&]<typename To>() -> handler { return conversion_to<To>(s.type, i.variant != none); });
  return d.usual(s, i, run, 1);
}

} // namespace cuda_emulator
