// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/record.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace oktopk_fuzz {

namespace {

struct moment {
  std::uint64_t seed;
  int rank;
  int ranks;
  int call;
};

double normal(draws& draw) {
  double const u = draw.real(0x1p-53, 1);
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * draw.real(0, 1));
}

template <class Value>
int top_exponent() {
  return std::numeric_limits<Value>::max_exponent - 1;
}

template <class Value>
Value any_payload(draws& draw, bool nan) {
  constexpr auto infinity = std::bit_cast<pattern_of<Value>>(std::numeric_limits<Value>::infinity());
  constexpr pattern_of<Value> sign = pattern_of<Value>(1) << (8 * sizeof(Value) - 1);
  auto pattern = infinity;
  if (nan) {
    auto const payload =
        static_cast<pattern_of<Value>>(static_cast<pattern_of<Value>>(draw.bits()) & ~infinity & ~sign);
    pattern |= draw.chance(0.2)   ? pattern_of<Value>(1)
               : draw.chance(0.2) ? static_cast<pattern_of<Value>>(~infinity & ~sign)
                                  : payload;
    pattern |= pattern == infinity ? pattern_of<Value>(1) : pattern_of<Value>(0);
  }
  return std::bit_cast<Value>(
      static_cast<pattern_of<Value>>(pattern | (draw.chance(0.5) ? sign : pattern_of<Value>(0))));
}

// The stretch of a rank among as many as there are ranks.
bool in_stretch(std::size_t i, std::size_t size, int which, int ranks) {
  auto const r = static_cast<std::size_t>(which % ranks);
  auto const p = static_cast<std::size_t>(ranks);
  return i * p / size == r;
}

template <class Value>
void fill(shape what, moment at, draws& own, draws& common, std::vector<Value>& g) {
  using limit = std::numeric_limits<Value>;
  std::size_t const n = g.size();
  auto const each = [&](auto const& value) {
    for (std::size_t i = 0; i < n; ++i) {
      g[i] = static_cast<Value>(value(i));
    }
  };
  double const sign = own.chance(0.5) ? 1 : -1;
  switch (what) {
  case shape::normal: each([&](std::size_t) { return normal(own); }); break;
  case shape::lasting: {
    draws base(mixed({at.seed, 17}));
    each([&](std::size_t) { return 3 * std::pow(base.real(0.001, 1), -0.5) + 0.3 * normal(own); });
    break;
  }
  case shape::heavy_tailed:
    each([&](std::size_t) { return std::pow(own.real(0x1p-40, 1), -0.8) * (own.chance(0.5) ? 1 : -1); });
    break;
  case shape::zeros: each([&](std::size_t) { return 0; }); break;
  case shape::signed_zeros: {
    double const positive = own.one_of({0.0, 0.5, 1.0});
    each([&](std::size_t) { return own.chance(0.05) ? normal(own) : own.chance(positive) ? 0.0 : -0.0; });
    break;
  }
  case shape::equal: {
    double const value = common.one_of({1.0, -3.0, 0.1, 1e-30, 1e30});
    each([&](std::size_t) { return value; });
    break;
  }
  case shape::nearly_equal:
    each([&](std::size_t) {
      return 1 + static_cast<double>(own.between(0, 3)) * static_cast<double>(limit::epsilon());
    });
    break;
  case shape::few_values: each([&](std::size_t) { return own.between(-2, 2); }); break;
  case shape::whole_numbers: each([&](std::size_t) { return own.between(-1000, 1000); }); break;
  case shape::few_nonzero: each([&](std::size_t) { return own.chance(0.01) ? normal(own) : 0; }); break;
  case shape::denormal:
    each([&](std::size_t) {
      return static_cast<double>(own.between(-40, 40)) * static_cast<double>(limit::denorm_min());
    });
    break;
  case shape::near_overflow:
    each([&](std::size_t) { return sign * own.real(0.6, 1) * static_cast<double>(limit::max()); });
    break;
  case shape::large:
    each([&](std::size_t) { return own.real(-0.9, 0.9) / at.ranks * static_cast<double>(limit::max()); });
    break;
  case shape::half_way_up:
    each([&](std::size_t) { return normal(own) * std::sqrt(static_cast<double>(limit::max())) * 1e3; });
    break;
  case shape::one_rank_all: {
    bool const mine = at.rank == static_cast<int>(common.between(0, at.ranks - 1));
    each([&](std::size_t) { return mine ? normal(own) : 0; });
    break;
  }
  case shape::disjoint:
  case shape::next_region: {
    int const which = at.rank + (what == shape::next_region ? 1 : 0);
    double const rest = common.one_of({0.0, 0.01});
    each([&](std::size_t i) { return normal(own) * (in_stretch(i, n, which, at.ranks) ? 1 : rest); });
    break;
  }
  case shape::moving_peaks:
    each([&](std::size_t i) {
      auto const peak = static_cast<double>(at.rank * 37 + at.call * 11) / 100;
      double const place = static_cast<double>(i) / static_cast<double>(n);
      return 1 / (0.01 + std::abs(place - (peak - std::floor(peak)))) + 0.01 * normal(own);
    });
    break;
  case shape::crowded: {
    double const low = common.one_of({0.0, 0.5, 0.97});
    each([&](std::size_t i) {
      double const place = static_cast<double>(i) / static_cast<double>(n);
      return place >= low && place < low + 0.03 ? 5 * normal(own) : common.one_of({0.0, 1e-6}) * normal(own);
    });
    break;
  }
  case shape::jumping:
    each([&](std::size_t) { return normal(own) * (at.call % 3 == 0 ? 1 : at.call % 3 == 1 ? 1e20 : 1e-20); });
    break;
  case shape::cancelling: {
    draws pair(mixed({at.seed, 23, static_cast<std::uint64_t>(at.rank / 2), static_cast<std::uint64_t>(at.call)}));
    each([&](std::size_t) { return normal(pair) * (at.rank % 2 == 0 ? 1 : -1); });
    break;
  }
  case shape::powers_of_two:
    each([&](std::size_t) {
      auto const exponent = own.between(limit::min_exponent - limit::digits, top_exponent<Value>() - 6);
      return std::ldexp(own.chance(0.5) ? 1.0 : -1.0, static_cast<int>(exponent));
    });
    break;
  case shape::top_powers:
    each([&](std::size_t) {
      auto const exponent = own.between(top_exponent<Value>() - 7, top_exponent<Value>());
      return std::ldexp(own.chance(0.5) ? 1.0 : -1.0, static_cast<int>(exponent));
    });
    break;
  case shape::one_power: {
    int const doublings = static_cast<int>(std::ceil(std::log2(at.ranks)));
    int const exponent = top_exponent<Value>() - doublings - static_cast<int>(common.between(0, 7));
    bool const alone = common.chance(0.3);
    each([&](std::size_t) { return alone && at.rank > 0 ? 0.0 : std::ldexp(1.0, exponent); });
    break;
  }
  case shape::all_exponents:
    each([&](std::size_t) {
      auto const exponent = own.between(limit::min_exponent - limit::digits, top_exponent<Value>() - 6);
      return std::ldexp(own.real(-1, 1), static_cast<int>(exponent));
    });
    break;
  }
}

template <class Value>
void spoil(poison how, std::int64_t length, draws& own, handed_over<Value>& made) {
  auto& g = made.gradient;
  auto const place = [&] { return own.between(0, static_cast<std::int64_t>(g.size()) - 1); };
  switch (how) {
  case poison::none: break;
  case poison::nan:
  case poison::infinity: {
    std::int64_t const count = own.one_of<std::int64_t>({1, 1, 2, 10, length});
    for (std::int64_t i = 0; i < count && !g.empty(); ++i) {
      g[static_cast<std::size_t>(count == length ? i : place())] = any_payload<Value>(own, how == poison::nan);
    }
    break;
  }
  case poison::all_ones:
    if (!g.empty()) {
      auto const begin = static_cast<std::size_t>(place());
      std::size_t const end = begin + static_cast<std::size_t>(own.between(1, length));
      for (std::size_t i = begin; i < std::min(end, g.size()); ++i) {
        g[i] = std::bit_cast<Value>(static_cast<pattern_of<Value>>(~pattern_of<Value>(0)));
      }
    }
    break;
  case poison::wrong_length:
    g.resize(
        static_cast<std::size_t>(own.one_of<std::int64_t>({0, length / 2, length + 1, length + 7, 2 * length + 1})),
        Value(1));
    break;
  case poison::wrong_weights: made.weights = own.one_of<std::int64_t>({0, length + 1, length + 3}); break;
  }
}

} // namespace

template <class Value>
handed_over<Value> gradient_of(fuzz_case const& what, int rank, int call) {
  planned_call const& planned = what.calls[static_cast<std::size_t>(call)];
  auto const c = static_cast<std::uint64_t>(call);
  draws own(mixed({what.seed, 1, static_cast<std::uint64_t>(rank), c}));
  draws common(mixed({what.seed, 2, c}));
  handed_over<Value> made;
  made.weights = what.how.length;
  made.gradient.resize(static_cast<std::size_t>(what.how.length));
  fill<Value>(planned.gradient, {what.seed, rank, what.ranks, call}, own, common, made.gradient);
  if (planned.scale != 1) {
    for (Value& x : made.gradient) {
      x *= static_cast<Value>(planned.scale);
    }
  }
  // One rank is spoilt, or each as likely as not.
  draws who(mixed({what.seed, 3, c}));
  bool const some = who.chance(0.3);
  bool const chosen = some ? own.chance(0.5) : rank == static_cast<int>(who.between(0, what.ranks - 1));
  if (chosen) {
    poison const mine = some && own.chance(0.3) ? poison::wrong_length : planned.spoilt;
    spoil<Value>(planned.spoilt == poison::none ? poison::none : mine, what.how.length, own, made);
  }
  return made;
}

template handed_over<float> gradient_of<float>(fuzz_case const& what, int rank, int call);
template handed_over<double> gradient_of<double>(fuzz_case const& what, int rank, int call);

} // namespace oktopk_fuzz
