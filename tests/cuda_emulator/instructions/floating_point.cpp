// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "arithmetic.hpp"
#include "lanewise.hpp"

namespace cuda_emulator {

namespace {

constexpr auto minus = []<typename T>(T a, T b) -> T { return a - b; };
constexpr auto times = []<typename T>(T a, T b) -> T { return a * b; };
constexpr auto fused = []<typename T>(T a, T b, T c) -> T { return std::fma(a, b, c); };
constexpr auto quotient = []<typename T>(T a, T b) -> T { return a / b; };
constexpr auto negative = []<typename T>(T a) -> T { return -a; };
constexpr auto magnitude = []<typename T>(T a) -> T { return std::fabs(a); };
constexpr auto with_sign_of = []<typename T>(T sign, T number) -> T { return std::copysign(number, sign); };

// The hardware's approximations are exact here.
constexpr auto root = []<typename T>(T a) -> T { return std::sqrt(a); };
constexpr auto inverse = []<typename T>(T a) -> T { return T(1) / a; };

enum tested_property : u8 { finite, infinite, number, not_a_number, normal, subnormal };

template <typename T>
void has_property(warp&, frame& f, instruction const& i, u32 lanes) {
  u64 const* const a = f.values(i.sources[0]);
  u32 where = 0;
  for_each_lane(lanes, [&](int lane) {
    int const kind = std::fpclassify(from_register<T>(a[lane]));
    bool const is_finite = kind != FP_NAN && kind != FP_INFINITE;
    bool const is_normal = kind == FP_NORMAL || kind == FP_ZERO; // as the manual has it
    bool const has[] = {is_finite,      kind == FP_INFINITE, kind != FP_NAN,
                        kind == FP_NAN, is_normal,           kind == FP_SUBNORMAL};
    where |= u32(has[i.variant]) << lane;
  });
  f.set_predicate(i.destinations[0], where, lanes);
}

constexpr named_operation operations[] = {
    {"add", floats<plus, 2>, 2},
    {"sub", floats<minus, 2>, 2},
    {"mul", floats<times, 2>, 2},
    {"mad", floats<fused, 3>, 3},
    {"fma", floats<fused, 3>, 3},
    {"div", floats<quotient, 2>, 2},
    {"min", floats<least, 2>, 2},
    {"max", floats<greatest, 2>, 2},
    {"neg", floats<negative, 1>, 1},
    {"abs", floats<magnitude, 1>, 1},
    {"copysign", floats<with_sign_of, 2>, 2},
    {"sqrt", floats<root, 1>, 1},
    {"rcp", floats<inverse, 1>, 1},
};

} // namespace

bool decode_floating_point(statement const& s, decoder& d, instruction& i) {
  if (s.name == "testp") {
    i.variant = s.has("finite")       ? finite
                : s.has("infinite")   ? infinite
                : s.has("number")     ? number
                : s.has("notanumber") ? not_a_number
                : s.has("normal")     ? normal
                                      : subnormal;
    return d.usual(s, i, s.type == ptx_type::f32 ? has_property<f32> : has_property<f64>, 1);
  }
  for (std::string_view const other : {"rz", "rm", "rp", "sat", "NaN", "xorsign"}) {
    if (s.has(other)) {
      return false;
    }
  }
  return decode_from(operations, s, d, i);
}

} // namespace cuda_emulator
