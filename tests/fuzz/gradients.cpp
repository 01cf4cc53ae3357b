// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/case.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <utility>

namespace oktopk_fuzz {

/// Where a gradient is needed: on one rank in one call.
struct moment {
  fuzz_case const& what;
  int rank;
  int call;
  draws own;
  draws common; ///< the same on all ranks
  numbers gradient{};
  value_type const& values = what.values;
  double sign = 1; ///< of all values, for some shapes

  double normal() {
    double const u = own.real(0x1p-53, 1);
    return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * own.real(0, 1));
  }
  double whole(std::int64_t low, std::int64_t high) { return static_cast<double>(own.between(low, high)); }
  double with_sign(double x) { return own.chance(0.5) ? x : -x; }
  // Of any exponent that lets some sums not overflow.
  double draw_power() {
    return std::ldexp(1.0, static_cast<int>(own.between(values.least_exponent, values.most_exponent - 6)));
  }

  // Sets all values to what is drawn for each, if need be by its place from 0 to 1.
  template <class Draw>
  void each(Draw const& draw) {
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      if constexpr (std::is_invocable_v<Draw, double>) {
        gradient[i] = draw(static_cast<double>(i) / static_cast<double>(gradient.size()));
      } else {
        gradient[i] = draw();
      }
    }
  }
  // Large in the stretch of a rank among as many as there are ranks.
  void fill_stretch(int which) {
    double const rest = common.one_of({0.0, 0.01});
    std::size_t i = 0;
    each([&] {
      auto const stretch = static_cast<int>(i++ * static_cast<std::size_t>(what.ranks) / gradient.size());
      return normal() * (stretch == which % what.ranks ? 1 : rest);
    });
  }
};

std::vector<shape> const& shapes() {
  static std::vector<shape> const all = {
      {"normal", [](moment& m) { m.each([&] { return m.normal(); }); }},
      {"lasting", // much the same in every call, large in the same places on all ranks
       [](moment& m) {
         draws base(mixed({m.what.seed, 17}));
         m.each([&] { return 3 * std::pow(base.real(0.001, 1), -0.5) + 0.3 * m.normal(); });
       }},
      {"heavy_tailed", [](moment& m) { m.each([&] { return m.with_sign(std::pow(m.own.real(0x1p-40, 1), -0.8)); }); }},
      {"zeros", [](moment& m) { m.each([] { return 0; }); }},
      {"signed_zeros",
       [](moment& m) {
         double const positive = m.own.one_of({0.0, 0.5, 1.0});
         m.each([&] { return m.own.chance(0.05) ? m.normal() : m.own.chance(positive) ? 0.0 : -0.0; });
       }},
      {"equal", // one value everywhere
       [](moment& m) {
         double const value = m.common.one_of({1.0, -3.0, 0.1, 1e-30, 1e30});
         m.each([&] { return value; });
       }},
      {"nearly_equal", // neighbours in the last bits
       [](moment& m) { m.each([&] { return 1 + m.whole(0, 3) * m.values.epsilon; }); }},
      {"few_values", [](moment& m) { m.each([&] { return m.whole(-2, 2); }); }},          // ties
      {"whole_numbers", [](moment& m) { m.each([&] { return m.whole(-1000, 1000); }); }}, // sums are exact
      {"few_nonzero", [](moment& m) { m.each([&] { return m.own.chance(0.01) ? m.normal() : 0; }); }},
      {"denormal", [](moment& m) { m.each([&] { return m.whole(-40, 40) * m.values.denormal; }); }},
      {"near_overflow", // sums may overflow
       [](moment& m) { m.each([&] { return m.sign * m.own.real(0.6, 1) * m.values.most; }); }},
      {"large", // sums just do not overflow
       [](moment& m) { m.each([&] { return m.own.real(-0.9, 0.9) / m.what.ranks * m.values.most; }); }},
      {"half_way_up", // squares overflow, sums do not
       [](moment& m) { m.each([&] { return m.normal() * std::sqrt(m.values.most) * 1e3; }); }},
      {"one_rank_all", // all others have zeros
       [](moment& m) {
         bool const mine = m.rank == static_cast<int>(m.common.between(0, m.what.ranks - 1));
         m.each([&] { return mine ? m.normal() : 0; });
       }},
      {"disjoint", [](moment& m) { m.fill_stretch(m.rank); }},
      {"next_region", [](moment& m) { m.fill_stretch(m.rank + 1); }},
      {"moving_peaks",
       [](moment& m) {
         auto const peak = static_cast<double>(m.rank * 37 + m.call * 11) / 100;
         m.each([&](double place) {
           return 1 / (0.01 + std::abs(place - (peak - std::floor(peak)))) + 0.01 * m.normal();
         });
       }},
      {"crowded", // all mass in a few neighbours
       [](moment& m) {
         double const low = m.common.one_of({0.0, 0.5, 0.97});
         m.each([&](double place) {
           return (place >= low && place < low + 0.03 ? 5 : m.common.one_of({0.0, 1e-6})) * m.normal();
         });
       }},
      {"jumping", // up and down by 1e20 from call to call
       [](moment& m) { m.each([&] {
                         return m.normal() * (m.call % 3 == 0 ? 1 : m.call % 3 == 1 ? 1e20 : 1e-20);
                       }); }},
      {"cancelling", // ranks in pairs whose sums are zero
       [](moment& m) {
         auto const pair = static_cast<std::uint64_t>(m.rank / 2);
         draws const own =
             std::exchange(m.own, draws(mixed({m.what.seed, 23, pair, static_cast<std::uint64_t>(m.call)})));
         m.each([&] { return m.normal() * (m.rank % 2 == 0 ? 1 : -1); });
         m.own = own;
       }},
      {"powers_of_two", [](moment& m) { m.each([&] { return m.with_sign(m.draw_power()); }); }},
      {"top_powers",
       [](moment& m) {
         m.each(
             [&] { return m.with_sign(std::ldexp(1.0, m.values.most_exponent + static_cast<int>(m.whole(-7, 0)))); });
       }},
      {"one_power", // the same high power everywhere, so that the sums are one
       [](moment& m) {
         int const doublings = static_cast<int>(std::ceil(std::log2(m.what.ranks)));
         int const exponent = m.values.most_exponent - doublings - static_cast<int>(m.common.between(0, 7));
         bool const alone = m.common.chance(0.3);
         m.each([&] { return alone && m.rank > 0 ? 0.0 : std::ldexp(1.0, exponent); });
       }},
      {"all_exponents",
       [](moment& m) {
         m.each([&] {
           double const power = m.draw_power();
           return power * m.own.real(-1, 1);
         });
       }},
  };
  return all;
}

namespace {

double any_payload(draws& draw, bool is_nan) {
  constexpr std::uint64_t infinity = 0x7ff0000000000000U;
  constexpr std::uint64_t fraction = 0x000fffffffffffffU;
  constexpr std::uint64_t sign = std::uint64_t(1) << 63;
  std::uint64_t pattern = infinity;
  if (is_nan) {
    std::uint64_t const payload = draw.bits() & fraction;
    pattern |= draw.chance(0.2) ? 1 : draw.chance(0.2) ? fraction : payload;
    pattern |= pattern == infinity ? 1 : 0;
  }
  return std::bit_cast<double>(pattern | (draw.chance(0.5) ? sign : 0));
}

void spoil(poison how, std::int64_t length, draws& own, handed_over& made) {
  auto& g = made.gradient;
  auto const place = [&] { return own.between(0, static_cast<std::int64_t>(g.size()) - 1); };
  switch (how) {
  case poison::none: break;
  case poison::nan:
  case poison::infinity: {
    std::int64_t const count = own.one_of<std::int64_t>({1, 1, 2, 10, length});
    for (std::int64_t i = 0; i < count && !g.empty(); ++i) {
      g[static_cast<std::size_t>(count == length ? i : place())] = any_payload(own, how == poison::nan);
    }
    break;
  }
  case poison::all_ones:
    if (!g.empty()) {
      auto const begin = static_cast<std::size_t>(place());
      std::size_t const end = begin + static_cast<std::size_t>(own.between(1, length));
      for (std::size_t i = begin; i < std::min(end, g.size()); ++i) {
        g[i] = std::bit_cast<double>(~std::uint64_t(0));
      }
    }
    break;
  case poison::wrong_length:
    g.resize(
        static_cast<std::size_t>(own.one_of<std::int64_t>({0, length / 2, length + 1, length + 7, 2 * length + 1})), 1);
    break;
  case poison::wrong_weights: made.weights = own.one_of<std::int64_t>({0, length + 1, length + 3}); break;
  }
}

} // namespace

handed_over gradient_of(fuzz_case const& what, int rank, int call) {
  planned_call const& planned = what.calls[static_cast<std::size_t>(call)];
  auto const c = static_cast<std::uint64_t>(call);
  moment at{what, rank, call, draws(mixed({what.seed, 1, static_cast<std::uint64_t>(rank), c})),
            draws(mixed({what.seed, 2, c}))};
  at.gradient.resize(static_cast<std::size_t>(what.how.length));
  at.sign = at.with_sign(1);
  planned.gradient->fill(at);
  handed_over made{std::move(at.gradient), what.how.length};
  for (double& x : made.gradient) {
    x = what.values.rounded(what.values.rounded(x) * what.values.rounded(planned.scale));
  }
  // One rank is spoilt, or each as likely as not.
  draws who(mixed({what.seed, 3, c}));
  bool const some = who.chance(0.3);
  bool const chosen = some ? at.own.chance(0.5) : rank == static_cast<int>(who.between(0, what.ranks - 1));
  if (chosen) {
    poison const mine = some && at.own.chance(0.3) ? poison::wrong_length : planned.spoilt;
    spoil(planned.spoilt == poison::none ? poison::none : mine, what.how.length, at.own, made);
  }
  return made;
}

} // namespace oktopk_fuzz
