// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "arithmetic.hpp"
#include "lanewise.hpp"

#include <limits>

namespace cuda_emulator {

namespace {

template <typename T>
constexpr u32 bits_of = 8 * sizeof(T);
template <typename T>
using unsigned_of = std::make_unsigned_t<T>;
template <typename T>
constexpr bool is_signed = std::is_signed_v<T>;

constexpr auto minus = []<typename T>(T a, T b) -> T {
  return static_cast<T>(static_cast<u64>(a) - static_cast<u64>(b));
};
constexpr auto times = []<typename T>(T a, T b) -> T {
  return static_cast<T>(static_cast<u64>(a) * static_cast<u64>(b));
};
constexpr auto times_plus = []<typename T>(T a, T b, T c) -> T { return plus(times(a, b), c); };
constexpr auto high_product = []<typename T>(T a, T b) -> T {
  if constexpr (is_signed<T>) {
    return static_cast<T>((i128(a) * i128(b)) >> bits_of<T>);
  } else {
    return static_cast<T>((u128(a) * u128(b)) >> bits_of<T>);
  }
};
constexpr auto high_product_plus = []<typename T>(T a, T b, T c) -> T { return plus(high_product(a, b), c); };

// A GPU does not trap: x / 0 has all bits set, x % 0 is x.
constexpr auto quotient = []<typename T>(T a, T b) -> T {
  if (b == 0) {
    return static_cast<T>(-1);
  }
  return is_signed<T> && b == static_cast<T>(-1) ? minus(T(0), a) : static_cast<T>(a / b);
};
constexpr auto remainder_of = []<typename T>(T a, T b) -> T {
  if (b == 0) {
    return a;
  }
  return is_signed<T> && b == static_cast<T>(-1) ? T(0) : static_cast<T>(a % b);
};

constexpr auto negative = []<typename T>(T a) -> T { return minus(T(0), a); };
constexpr auto magnitude = []<typename T>(T a) -> T { return a < T(0) ? minus(T(0), a) : a; };
constexpr auto bit_and = []<typename T>(T a, T b) -> T { return a & b; };
constexpr auto bit_or = []<typename T>(T a, T b) -> T { return a | b; };
constexpr auto bit_xor = []<typename T>(T a, T b) -> T { return a ^ b; };
constexpr auto bit_not = []<typename T>(T a) -> T { return static_cast<T>(~a); };

constexpr auto shifted_left = []<typename T>(T a, u32 by) -> T {
  return by < bits_of<T> ? static_cast<T>(static_cast<u64>(a) << by) : T(0);
};
constexpr auto shifted_right = []<typename T>(T a, u32 by) -> T {
  if (by >= bits_of<T>) {
    return is_signed<T> && a < T(0) ? static_cast<T>(-1) : T(0);
  }
  return static_cast<T>(a >> by);
};

constexpr auto ones = []<typename T>(T a) -> u32 { return static_cast<u32>(std::popcount(a)); };
constexpr auto leading_zeros = []<typename T>(T a) -> u32 { return static_cast<u32>(std::countl_zero(a)); };
constexpr auto reversed = []<typename T>(T a) -> T {
  T result = 0;
  for (u32 k = 0; k < bits_of<T>; ++k) {
    result |= ((a >> k) & T(1)) << (bits_of<T> - 1 - k);
  }
  return result;
};

// The place of the highest bit that tells the number from 0 or -1, or how far it is from the top.
template <bool FromTop>
constexpr auto highest_bit = []<typename T>(T a) -> u32 {
  auto const bits = static_cast<unsigned_of<T>>(is_signed<T> && a < T(0) ? ~a : a);
  u32 const from_top = static_cast<u32>(std::countl_zero(bits));
  return bits == 0 ? ~u32(0) : FromTop ? from_top : bits_of<T> - 1 - from_top;
};

constexpr auto extracted = []<typename T>(T a, u32 place, u32 length) -> T {
  place &= 0xFF;
  length &= 0xFF;
  constexpr u32 top = bits_of<T> - 1;
  T const bits = place <= top ? static_cast<T>(a >> place) : is_signed<T> && a < T(0) ? static_cast<T>(-1) : T(0);
  if (length == 0) {
    return 0;
  }
  if (length > top) {
    return bits;
  }
  u32 const unused = bits_of<T> - length;
  return static_cast<T>(static_cast<T>(static_cast<unsigned_of<T>>(bits) << unused) >> unused);
};

constexpr auto inserted = []<typename T>(T from, T into, u32 place, u32 length) -> T {
  place &= 0xFF;
  length &= 0xFF;
  T const low = length < bits_of<T> ? static_cast<T>((T(1) << length) - 1) : static_cast<T>(~T(0));
  T const field = place < bits_of<T> ? static_cast<T>(low << place) : T(0);
  return (into & ~field) | (place < bits_of<T> ? (static_cast<T>(from << place) & field) : T(0));
};

// `selector` names for each byte one of eight, and with its highest bit that byte's sign.
constexpr auto permuted = [](u32 a, u32 b, u32 selector) -> u32 {
  u64 const bytes = u64(b) << 32 | a;
  u32 result = 0;
  for (u32 k = 0; k < 4; ++k) {
    u32 const choice = selector >> (4 * k);
    u32 const byte = static_cast<u32>(bytes >> (8 * (choice & 7))) & 0xFF;
    result |= ((choice & 8) == 0 ? byte : (byte & 0x80) != 0 ? 0xFFU : 0U) << (8 * k);
  }
  return result;
};

template <bool Right, bool Wraps>
constexpr auto funnel_shifted = [](u32 low, u32 high, u32 by) -> u32 {
  by = Wraps ? by & 31 : std::min<u32>(by, 32);
  u64 const both = u64(high) << 32 | low;
  return static_cast<u32>(Right ? both >> by : (both << by) >> 32);
};

// `i.offset` is the table of the function of three bits: its value for a, b and c is bit 4a + 2b + c.
void three_bits(warp&, frame& f, instruction const& i, u32 lanes) {
  u64 const* const a = f.values(i.sources[0]);
  u64 const* const b = f.values(i.sources[1]);
  u64 const* const c = f.values(i.sources[2]);
  for_each_lane(lanes, [&](int lane) {
    u32 result = 0;
    for (u32 k = 0; k < 8; ++k) {
      if ((i.offset >> k & 1) != 0) {
        result |= static_cast<u32>(((k & 4) != 0 ? a[lane] : ~a[lane]) & ((k & 2) != 0 ? b[lane] : ~b[lane]) &
                                   ((k & 1) != 0 ? c[lane] : ~c[lane]));
      }
    }
    f.registers[i.destinations[0]][lane] = result;
  });
}

// Addition with carries in and out; variant 1: subtraction, which adds the complement.
template <typename T>
void with_carry(warp&, frame& f, instruction const& i, u32 lanes) {
  u64 const* const a = f.values(i.sources[0]);
  u64 const* const b = f.values(i.sources[1]);
  u32 carries = f.carries;
  for_each_lane(lanes, [&](int lane) {
    bool const subtracts = i.variant == 1;
    bool const carry_in = i.combine != 0 ? (carries >> lane & 1) != 0 : subtracts;
    auto const second = static_cast<T>(subtracts ? ~b[lane] : b[lane]);
    u128 const sum = u128(static_cast<T>(a[lane])) + second + (carry_in ? 1 : 0);
    f.registers[i.destinations[0]][lane] = to_register(static_cast<T>(sum));
    if (i.flag) {
      u32 const carry_out = static_cast<u32>(sum >> bits_of<T>) & 1;
      carries = (carries & ~(u32(1) << lane)) | carry_out << lane;
    }
  });
  f.carries = carries;
}

template <typename T>
using twice_as_wide = std::conditional_t<sizeof(T) == 2, std::conditional_t<is_signed<T>, i32, u32>,
                                         std::conditional_t<is_signed<T>, i64, u64>>;

constexpr auto wide_product = []<typename T>(T a, T b) -> twice_as_wide<T> {
  return static_cast<twice_as_wide<T>>(a) * static_cast<twice_as_wide<T>>(b);
};
constexpr auto wide_product_plus = []<typename T>(T a, T b, twice_as_wide<T> c) -> twice_as_wide<T> {
  return plus(wide_product(a, b), c);
};

// mul and mad
bool decode_product(statement const& s, decoder& d, instruction& i) {
  bool const adds = s.name == "mad";
  if (s.has("cc") || s.has("sat")) {
    return false;
  }
  if (s.has("wide")) {
    handler const run = for_type<u16, i16, u32, i32>(s.type, [adds]<typename T>() -> handler {
      return adds ? lanewise<wide_product_plus, T, T, twice_as_wide<T>> : lanewise<wide_product, T, T>;
    });
    return d.usual(s, i, run, adds ? 3 : 2);
  }
  if (s.has("hi")) {
    return d.usual(s, i, adds ? integers<high_product_plus, 3>(s.type) : integers<high_product, 2>(s.type),
                   adds ? 3 : 2);
  }
  return d.usual(s, i, adds ? integers<times_plus, 3>(s.type) : integers<times, 2>(s.type), adds ? 3 : 2);
}

handler left_shift(ptx_type type) {
  return for_type<u16, u32, u64>(type, []<typename T>() -> handler { return lanewise<shifted_left, T, u32>; });
}
handler right_shift(ptx_type type) {
  return for_type<u16, i16, u32, i32, u64, i64>(
      type, []<typename T>() -> handler { return lanewise<shifted_right, T, u32>; });
}
handler bit_field(ptx_type type) {
  return for_type<u32, i32, u64, i64>(type, []<typename T>() -> handler { return lanewise<extracted, T, u32, u32>; });
}
handler insertion(ptx_type type) {
  return for_type<u32, u64>(type, []<typename T>() -> handler { return lanewise<inserted, T, T, u32, u32>; });
}
handler permutation(ptx_type type) {
  return type == ptx_type::u32 ? lanewise<permuted, u32, u32, u32> : handler(nullptr);
}

constexpr named_operation plain[] = {
    {"add", integers<plus, 2>, 2},
    {"sub", integers<minus, 2>, 2},
    {"div", integers<quotient, 2>, 2},
    {"rem", integers<remainder_of, 2>, 2},
    {"min", integers<least, 2>, 2},
    {"max", integers<greatest, 2>, 2},
    {"neg", integers<negative, 1>, 1},
    {"abs", integers<magnitude, 1>, 1},
    {"and", integers<bit_and, 2>, 2},
    {"or", integers<bit_or, 2>, 2},
    {"xor", integers<bit_xor, 2>, 2},
    {"not", integers<bit_not, 1>, 1},
    {"shl", left_shift, 2},
    {"shr", right_shift, 2},
    {"bfe", bit_field, 3},
    {"bfi", insertion, 4},
    {"popc", alike<ones, 1, u32, u64>, 1},
    {"clz", alike<leading_zeros, 1, u32, u64>, 1},
    {"brev", alike<reversed, 1, u32, u64>, 1},
};

} // namespace

bool decode_integer(statement const& s, decoder& d, instruction& i) {
  if (s.name == "addc" || s.name == "subc" || (s.has("cc") && (s.name == "add" || s.name == "sub"))) {
    i.flag = s.has("cc");
    i.combine = s.name.size() == 4 ? 1 : 0;
    i.variant = s.name.front() == 's' ? 1 : 0;
    return d.usual(s, i, size_of(s.type) == 8 ? with_carry<u64> : with_carry<u32>, 2);
  }
  if (s.name == "mul" || s.name == "mad") {
    return decode_product(s, d, i);
  }
  if (s.name == "lop3") {
    u64 table = 0;
    bool const known = s.operands.size() == 5 && read_number(s.operands[4], ptx_type::u32, table);
    i.offset = static_cast<i64>(table);
    return known && d.usual(s, i, three_bits, 3);
  }
  if (s.name == "prmt") { // its other modes have names
    return s.modifiers.size() == 1 && d.usual(s, i, permutation(s.type), 3);
  }
  if (s.name == "shf") {
    bool const wraps = s.has("wrap");
    return d.usual(s, i,
                   s.has("r") ? (wraps ? lanewise<funnel_shifted<true, true>, u32, u32, u32>
                                       : lanewise<funnel_shifted<true, false>, u32, u32, u32>)
                              : (wraps ? lanewise<funnel_shifted<false, true>, u32, u32, u32>
                                       : lanewise<funnel_shifted<false, false>, u32, u32, u32>),
                   3);
  }
  if (s.name == "bfind") {
    return d.usual(s, i,
                   s.has("shiftamt") ? alike<highest_bit<true>, 1, u32, i32, u64, i64>(s.type)
                                     : alike<highest_bit<false>, 1, u32, i32, u64, i64>(s.type),
                   1);
  }
  return !s.has("sat") && decode_from(plain, s, d, i);
}

} // namespace cuda_emulator
