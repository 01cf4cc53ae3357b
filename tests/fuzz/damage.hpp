// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/record.hpp"

#include <algorithm>

namespace oktopk_fuzz {

/// Regions that may be possible or not.
inline std::vector<std::int64_t> draw_boundaries(draws& draw, fuzz_case const& what) {
  std::int64_t const n = what.how.length;
  auto const ranks = static_cast<std::size_t>(what.ranks);
  std::vector<std::int64_t> made(ranks + 1, 0);
  made.back() = n;
  switch (draw.between(0, 7)) {
  case 0: break; // all in the last region
  case 1: std::fill(made.begin() + 1, made.end(), n); break;
  case 2:
    std::generate(made.begin() + 1, made.end() - 1, [&] { return draw.between(0, n); });
    std::sort(made.begin(), made.end());
    break;
  case 3: made[draw.chance(0.5) ? 0 : ranks] += draw.chance(0.5) ? 1 : -1; break;
  case 4: made.push_back(n); break;
  case 5: made.clear(); break;
  case 6: made[ranks / 2] = n + 5; break;
  default: made[ranks / 2] = -1; break;
  }
  return made;
}

/// Alters some numbers of a state. The same draws alter the states of all ranks alike.
inline void alter(draws& draw, fuzz_case const& what, state_numbers& state) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  auto const alter_time = [&](bool there, std::int64_t& time) {
    auto const later = [&](std::int64_t by) { return state.iteration > most - by ? most : state.iteration + by; };
    std::int64_t const last = std::max<std::int64_t>(state.iteration, 1) - 1;
    std::int64_t const drawn =
        draw.one_of({std::int64_t(-1), std::int64_t(-2), -most, std::int64_t(0), std::int64_t(1), last, state.iteration,
                     later(1), later(31), later(63), std::int64_t(1'000'000'000), most - 1, most});
    time = there ? drawn : time;
  };
  auto const alter_magnitude = [&](bool there, double& x) {
    double const drawn = draw.one_of(
        {nan, infinity, -1.0, -infinity, 0.0, what.values.denormal, what.values.most, x * 2, x / 2, draw.real(0, 10)});
    x = there ? what.values.rounded(drawn) : x;
  };
  for (std::int64_t changes = draw.between(1, 2); changes > 0; --changes) {
    selector_numbers& selector = draw.chance(0.3) ? state.local : state.global;
    switch (draw.between(0, state.of_sgd ? 8 : 6)) {
    case 0: alter_time(true, state.iteration); break;
    case 1: alter_magnitude(selector.has_threshold, selector.threshold); break;
    case 2: alter_time(selector.has_threshold, selector.evaluated); break;
    case 3: alter_magnitude(selector.has_guess, selector.magnitude); break;
    case 4: alter_magnitude(selector.has_guess, selector.prefilter); break;
    case 5:
      selector.bits = selector.has_guess
                          ? draw.one_of<std::int64_t>({-1, 0, 1, 7, 24, 25, 30, 31, 32, 56, 57, 62, 63, 64, 1000,
                                                       std::numeric_limits<std::int32_t>::max(),
                                                       std::numeric_limits<std::int32_t>::min()})
                          : selector.bits;
      break;
    case 6: state.boundaries = state.has_boundaries ? draw_boundaries(draw, what) : state.boundaries; break;
    case 7: state.learning_rate = draw.one_of({nan, 0.5, infinity}); break;
    default:
      if (draw.chance(0.5)) {
        state.residual.resize(static_cast<std::size_t>(what.how.length + draw.one_of({0, 1, 100})));
      } else {
        std::fill(state.residual.begin(), state.residual.end(), draw.one_of({0.0, 1.0, nan}));
      }
    }
  }
}

} // namespace oktopk_fuzz
