// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Executes PTX instructions and compares what they give with what the host computes, for all combinations of operands
// among which are those at the edges. Prints what differs; the exit status is 0 where nothing does.

#include "checked.cuh"

#include <algorithm>
#include <cmath>
#include <limits>

template <typename Result, typename Check>
__global__ void compute(Check check, int count, typename Check::operand const* operands, Result* results) {
  int const i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count * count * count) {
    results[i] = check(operands[i / count / count], operands[i / count % count], operands[i % count]);
  }
}

template <typename T>
std::vector<T> edges() {
  std::vector<T> values;
  if constexpr (std::is_integral_v<T>) {
    constexpr int bits = 8 * sizeof(T);
    for (long long const value : {0LL, 1LL, 2LL, 3LL, 5LL, 7LL, 8LL, 15LL, 31LL, 32LL, 33LL, 63LL, 255LL, 0x3210LL,
                                  0x7531LL, 1LL << (bits / 2), 0x123456789ABCDEFLL}) {
      values.push_back(static_cast<T>(value));
      values.push_back(static_cast<T>(-value));
    }
    values.push_back(static_cast<T>(1ULL << (bits - 1)));
    values.push_back(static_cast<T>((1ULL << (bits - 1)) - 1));
  } else {
    using limits = std::numeric_limits<T>;
    for (double const value : {0.0, 0.3, 0.5, 1.0, 1.5, 2.5, 3.75, 1e-3, 100.0, 65504.0, 2147483648.0, 4294967295.0,
                               1e10, 9223372036854775808.0, 1e30, double(limits::min()), double(limits::denorm_min()),
                               double(limits::max()), double(limits::infinity())}) {
      values.push_back(static_cast<T>(value));
      values.push_back(static_cast<T>(-value));
    }
    values.push_back(limits::quiet_NaN());
  }
  return values;
}

template <typename T>
bool same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return (a != a && b != b) || std::memcmp(&a, &b, sizeof a) == 0;
  }
  return a == b;
}

template <typename Check>
void run(char const* text) {
  using operand = typename Check::operand;
  using result = typename Check::result;
  auto const operands = edges<operand>();
  int const count = static_cast<int>(operands.size());
  device_array<operand> const given(operands);
  device_array<result> results(static_cast<std::size_t>(count * count * count));
  compute<<<count * count * count / 256 + 1, 256>>>(Check(), count, given.data, results.data);
  auto const got = results.on_host();
  for (int i = 0; i < count * count * count; ++i) {
    operand const a = operands[i / count / count];
    operand const b = operands[i / count % count];
    operand const c = operands[i % count];
    result const expected = Check()(a, b, c);
    if (!same(got[i], expected)) {
      std::printf("%s of %.17g, %.17g, %.17g: %.17g and not %.17g\n", text, double(a), double(b), double(c),
                  double(got[i]), double(expected));
      ++faults;
      return;
    }
  }
}

struct listed {
  void (*run)(char const*);
  char const* text;
};

std::vector<listed>& all_checks() {
  static std::vector<listed> checks;
  return checks;
}

bool add(void (*run)(char const*), char const* text) {
  all_checks().push_back({run, text});
  return true;
}

// clang-format off
// CHECK(result, its constraint, operand, its constraint, PTX with %0 for the result and %1, %2, %3 for a, b, c, reference)
#define CHECK(R, RC, T, TC, PTX, ...) CHECK_NAMED(__COUNTER__, R, RC, T, TC, PTX, __VA_ARGS__)
#define CHECK_NAMED(N, ...) CHECK_WITH(N, __VA_ARGS__)
#define CHECK_WITH(N, R, RC, T, TC, PTX, ...) \
  struct check_##N { using operand = T; using result = R; \
    __host__ __device__ R operator()(T a, T b, T c) const { \
      (void)a; (void)b; (void)c; R r; EITHER(asm(PTX : "=" RC(r) : TC(a), TC(b), TC(c)), r = (__VA_ARGS__)); return r; } }; \
  bool const checked_##N = add(run<check_##N>, PTX);
#define U16(PTX, ...) CHECK(u16, "h", u16, "h", PTX, __VA_ARGS__)
#define S16(PTX, ...) CHECK(i16, "h", i16, "h", PTX, __VA_ARGS__)
#define U32(PTX, ...) CHECK(u32, "r", u32, "r", PTX, __VA_ARGS__)
#define S32(PTX, ...) CHECK(i32, "r", i32, "r", PTX, __VA_ARGS__)
#define U64(PTX, ...) CHECK(u64, "l", u64, "l", PTX, __VA_ARGS__)
#define S64(PTX, ...) CHECK(i64, "l", i64, "l", PTX, __VA_ARGS__)
#define F32(PTX, ...) CHECK(float, "f", float, "f", PTX, __VA_ARGS__)
#define F64(PTX, ...) CHECK(double, "d", double, "d", PTX, __VA_ARGS__)
// Both widths, with the letters of the type in PTX.
#define UNSIGNED(NAME, ...) U32(NAME "u32 %0, %1, %2;", __VA_ARGS__) U64(NAME "u64 %0, %1, %2;", __VA_ARGS__)
#define SIGNED(NAME, ...) S32(NAME "s32 %0, %1, %2;", __VA_ARGS__) S64(NAME "s64 %0, %1, %2;", __VA_ARGS__)
#define BITS(NAME, ...) U32(NAME "b32 %0, %1, %2;", __VA_ARGS__) U64(NAME "b64 %0, %1, %2;", __VA_ARGS__)
#define FLOATS(NAME, ...) F32(NAME "f32 %0, %1, %2;", __VA_ARGS__) F64(NAME "f64 %0, %1, %2;", __VA_ARGS__)
#define PREDICATE(T, TC, SETP, ...) \
  CHECK(u32, "r", T, TC, "{ .reg .pred p; " SETP " p, %1, %2; selp.u32 %0, 1, 0, p; }", (__VA_ARGS__) ? 1 : 0)

// Integer
  UNSIGNED("add.", a + b) UNSIGNED("sub.", a - b) UNSIGNED("mul.lo.", a * b)
  U16("add.u16 %0, %1, %2;", u16(a + b)) S16("sub.s16 %0, %1, %2;", i16(a - b)) U16("mul.lo.u16 %0, %1, %2;", u16(u32(a) * b))
  U32("mul.hi.u32 %0, %1, %2;", u32(u64(a) * b >> 32)) S32("mul.hi.s32 %0, %1, %2;", i32(i64(a) * b >> 32))
  U64("mul.hi.u64 %0, %1, %2;", u64(u128(a) * b >> 64)) S64("mul.hi.s64 %0, %1, %2;", i64(i128(a) * b >> 64))
  CHECK(u64, "l", u32, "r", "mul.wide.u32 %0, %1, %2;", u64(a) * b) CHECK(i64, "l", i32, "r", "mul.wide.s32 %0, %1, %2;", i64(a) * b)
  CHECK(u32, "r", u16, "h", "mul.wide.u16 %0, %1, %2;", u32(a) * b) CHECK(i32, "r", i16, "h", "mul.wide.s16 %0, %1, %2;", i32(a) * b)
  U32("mad.lo.u32 %0, %1, %2, %3;", a * b + c) U64("mad.lo.u64 %0, %1, %2, %3;", a * b + c)
  U32("mad.hi.u32 %0, %1, %2, %3;", u32(u64(a) * b >> 32) + c)
  CHECK(u64, "l", u32, "r", "{ .reg .u64 t; cvt.u64.u32 t, %3; mad.wide.u32 %0, %1, %2, t; }", u64(a) * b + c)
  UNSIGNED("div.", b == 0 ? ~operand(0) : a / b) UNSIGNED("rem.", b == 0 ? a : a % b)
  SIGNED("div.", b == 0 ? -1 : b == -1 ? operand(0 - u64(a)) : a / b) SIGNED("rem.", b == 0 ? a : b == -1 ? 0 : a % b)
  UNSIGNED("min.", a < b ? a : b) SIGNED("min.", a < b ? a : b) UNSIGNED("max.", a < b ? b : a) SIGNED("max.", a < b ? b : a)
  S32("neg.s32 %0, %1;", i32(0U - u32(a))) S64("abs.s64 %0, %1;", a < 0 ? i64(0ULL - u64(a)) : a)
  BITS("and.", a & b) BITS("or.", a | b) BITS("xor.", a ^ b) U32("not.b32 %0, %1;", ~a)
  U32("shl.b32 %0, %1, %2;", b > 31 ? 0 : a << b) U32("shr.u32 %0, %1, %2;", b > 31 ? 0 : a >> b)
  S32("shr.s32 %0, %1, %2;", a >> (u32(b) > 31 ? 31 : b))
  U64("{ .reg .u32 t; cvt.u32.u64 t, %2; shl.b64 %0, %1, t; }", u32(b) > 63 ? 0 : a << u32(b))
  S64("{ .reg .u32 t; cvt.u32.s64 t, %2; shr.s64 %0, %1, t; }", a >> (u32(b) > 63 ? 63 : u32(b)))
  U32("shf.l.wrap.b32 %0, %1, %2, %3;", u32((u64(b) << 32 | a) << (c & 31) >> 32))
  U32("shf.r.wrap.b32 %0, %1, %2, %3;", u32((u64(b) << 32 | a) >> (c & 31)))
  U32("shf.l.clamp.b32 %0, %1, %2, %3;", u32(c > 31 ? a : (u64(b) << 32 | a) << c >> 32))
  U32("shf.r.clamp.b32 %0, %1, %2, %3;", u32((u64(b) << 32 | a) >> (c > 32 ? 32 : c)))
  U32("lop3.b32 %0, %1, %2, %3, 0xCA;", (a & b) | (~a & c)) U32("lop3.b32 %0, %1, %2, %3, 0x1E;", a ^ (b | c))
  U32("prmt.b32 %0, %1, %2, %3;", permuted(a, b, c))
  U32("bfe.u32 %0, %1, %2, %3;", u32(field(a, b, c, false))) S32("bfe.s32 %0, %1, %2, %3;", i32(field(a, b, c, true)))
  U32("bfi.b32 %0, %1, 0x5A5A5A5A, %2, %3;", inserted(a, 0x5A5A5A5A, b & 255, c & 255))
  U32("popc.b32 %0, %1;", ones(a)) CHECK(u32, "r", u64, "l", "popc.b64 %0, %1;", ones(a))
  U32("clz.b32 %0, %1;", 32 - length(a)) CHECK(u32, "r", u64, "l", "clz.b64 %0, %1;", 64 - length(a))
  U32("bfind.u32 %0, %1;", length(a) - 1) U32("bfind.shiftamt.u32 %0, %1;", a == 0 ? ~0U : 32 - length(a))
  CHECK(u32, "r", i32, "r", "bfind.s32 %0, %1;", length(u32(a < 0 ? ~a : a)) - 1)
  U32("brev.b32 %0, %1;", u32(mirrored(a) >> 32)) U64("brev.b64 %0, %1;", mirrored(a))
  U64("{ .reg .u32 x<8>; mov.b64 {x0, x1}, %1; mov.b64 {x2, x3}, %2; add.cc.u32 x4, x0, x2; addc.u32 x5, x1, x3; mov.b64 %0, {x4, x5}; }", a + b)
  U64("{ .reg .u32 x<8>; mov.b64 {x0, x1}, %1; mov.b64 {x2, x3}, %2; sub.cc.u32 x4, x0, x2; subc.u32 x5, x1, x3; mov.b64 %0, {x4, x5}; }", a - b)

// Floating point
  FLOATS("add.rn.", a + b) FLOATS("sub.rn.", a - b) FLOATS("mul.rn.", a * b) FLOATS("div.rn.", a / b)
  F32("fma.rn.f32 %0, %1, %2, %3;", fmaf(a, b, c)) F64("fma.rn.f64 %0, %1, %2, %3;", fma(a, b, c))
  FLOATS("min.", smaller(a, b)) FLOATS("max.", -smaller(-a, -b))
  F32("neg.f32 %0, %1;", -a) F64("abs.f64 %0, %1;", fabs(a)) F32("copysign.f32 %0, %1, %2;", copysignf(b, a))
  F32("sqrt.rn.f32 %0, %1;", sqrtf(a)) F64("sqrt.rn.f64 %0, %1;", sqrt(a)) F64("rcp.rn.f64 %0, %1;", 1.0 / a)
  CHECK(u32, "r", float, "f", "{ .reg .pred p; testp.finite.f32 p, %1; selp.u32 %0, 1, 0, p; }", fabsf(a) <= 3.402823466e38F ? 1 : 0)
  CHECK(u32, "r", float, "f", "{ .reg .pred p; testp.normal.f32 p, %1; selp.u32 %0, 1, 0, p; }",
        a == 0 || (fabsf(a) >= 1.175494351e-38F && fabsf(a) <= 3.402823466e38F) ? 1 : 0)
  CHECK(u32, "r", float, "f", "{ .reg .pred p; testp.subnormal.f32 p, %1; selp.u32 %0, 1, 0, p; }", a != 0 && fabsf(a) < 1.175494351e-38F ? 1 : 0)

// Comparisons
  PREDICATE(u32, "r", "setp.lt.u32", a < b) PREDICATE(i32, "r", "setp.lt.s32", a < b) PREDICATE(u32, "r", "setp.hs.u32", a >= b)
  PREDICATE(u64, "l", "setp.ne.u64", a != b) PREDICATE(i64, "l", "setp.ge.s64", a >= b) PREDICATE(i16, "h", "setp.le.s16", a <= b)
  PREDICATE(float, "f", "setp.eq.f32", a == b) PREDICATE(float, "f", "setp.ne.f32", a < b || a > b) PREDICATE(double, "d", "setp.lt.f64", a < b)
  PREDICATE(float, "f", "setp.equ.f32", !(a < b || a > b)) PREDICATE(float, "f", "setp.neu.f32", a != b) PREDICATE(double, "d", "setp.ltu.f64", !(a >= b))
  PREDICATE(double, "d", "setp.leu.f64", !(a > b)) PREDICATE(float, "f", "setp.gtu.f32", !(a <= b)) PREDICATE(float, "f", "setp.geu.f32", !(a < b))
  PREDICATE(float, "f", "setp.num.f32", a == a && b == b) PREDICATE(float, "f", "setp.nan.f32", a != a || b != b)
  U32("{ .reg .pred p, q; setp.lt.u32 p|q, %1, %2; selp.u32 %0, %1, %3, q; }", a < b ? c : a)
  U32("{ .reg .pred p, q; setp.lt.u32 p, %1, %2; setp.lt.and.u32 q, %2, %3, p; selp.u32 %0, 1, 0, q; }", a < b && b < c ? 1 : 0)
  U32("{ .reg .pred p, q; setp.lt.u32 p, %1, %2; setp.lt.or.u32 q, %2, %3, !p; selp.u32 %0, 1, 0, q; }", a >= b || b < c ? 1 : 0)
  U32("{ .reg .pred p, q; setp.lt.u32 p, %1, %2; setp.eq.u32 q, %2, %3; xor.pred p, p, q; not.pred p, p; selp.u32 %0, 1, 0, p; }", (a < b) == (b == c) ? 1 : 0)

// Conversions
  CHECK(i32, "r", i64, "l", "cvt.s32.s64 %0, %1;", i32(a)) CHECK(u64, "l", i32, "r", "cvt.s64.s32 %0, %1;", u64(i64(a)))
  U32("cvt.u32.u16 %0, %1;", a & 0xFFFF) S32("cvt.s32.s8 %0, %1;", i32(i8(a))) U32("cvt.u32.u8 %0, %1;", a & 0xFF)
  S32("cvt.sat.s16.s32 %0, %1;", std::min(32767, std::max(-32768, a)))
  CHECK(float, "f", i32, "r", "cvt.rn.f32.s32 %0, %1;", float(a)) CHECK(float, "f", u64, "l", "cvt.rn.f32.u64 %0, %1;", float(a))
  CHECK(double, "d", i64, "l", "cvt.rn.f64.s64 %0, %1;", double(a)) CHECK(double, "d", u32, "r", "cvt.rn.f64.u32 %0, %1;", double(a))
  CHECK(i32, "r", float, "f", "cvt.rzi.s32.f32 %0, %1;", i32(clamped(truncf(a), -2147483648.0, 2147483647.0)))
  CHECK(u32, "r", float, "f", "cvt.rzi.u32.f32 %0, %1;", u32(clamped(truncf(a), 0, 4294967295.0)))
  CHECK(i32, "r", double, "d", "cvt.rni.s32.f64 %0, %1;", a != a ? i32(1U << 31) : i32(clamped(nearbyint(a), -2147483648.0, 2147483647.0)))
  CHECK(u32, "r", double, "d", "cvt.rzi.u32.f64 %0, %1;", a != a ? 1U << 31 : u32(clamped(trunc(a), 0, 4294967295.0)))
  CHECK(i64, "l", float, "f", "cvt.rzi.s64.f32 %0, %1;",
        a != a || a < -9.2e18F ? i64(1ULL << 63) : a >= 9223372036854775808.0F ? i64(~0ULL >> 1) : i64(a))
  CHECK(i32, "r", float, "f", "cvt.rmi.s32.f32 %0, %1;", i32(clamped(floorf(a), -2147483648.0, 2147483647.0)))
  CHECK(i32, "r", float, "f", "cvt.rpi.s32.f32 %0, %1;", i32(clamped(ceilf(a), -2147483648.0, 2147483647.0)))
  CHECK(i64, "l", double, "d", "cvt.rzi.s64.f64 %0, %1;",
        a != a || a < -9.2e18 ? i64(1ULL << 63) : a >= 9223372036854775808.0 ? i64(~0ULL >> 1) : i64(a))
  F32("cvt.rni.f32.f32 %0, %1;", nearbyintf(a)) F64("cvt.rmi.f64.f64 %0, %1;", floor(a)) F32("cvt.sat.f32.f32 %0, %1;", !(a > 0) ? 0.0F : a > 1 ? 1.0F : a)
  CHECK(double, "d", float, "f", "cvt.f64.f32 %0, %1;", double(a)) CHECK(float, "f", double, "d", "cvt.rn.f32.f64 %0, %1;", float(a))
  CHECK(float, "f", double, "d", "cvt.rz.f32.f64 %0, %1;", toward_zero(a))
  F32("{ .reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h; }", by_half(a))
    // clang-format on

    int main() {
  for (listed const& each : all_checks()) {
    each.run(each.text);
  }
  std::printf("%zu instructions, %d faults\n", all_checks().size(), faults);
  return faults == 0 ? 0 : 1;
}
