// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/algorithm_participant.hpp"
#include "fuzz/case.hpp"
#include "support/policies.hpp"

#include <oktopk/allreduce.hpp>
#include <oktopk/sgd.hpp>

#include <algorithm>
#include <limits>
#include <sstream>
#include <string>
#include <typeinfo>
#include <vector>

namespace oktopk_fuzz {

inline constexpr std::int64_t most_int64 = std::numeric_limits<std::int64_t>::max();

template <class Value>
Value draw_magnitude(draws& draw, Value now) {
  using limit = std::numeric_limits<Value>;
  switch (draw.between(0, 9)) {
  case 0: return limit::quiet_NaN();
  case 1: return limit::infinity();
  case 2: return Value(-1);
  case 3: return -limit::infinity();
  case 4: return Value(0);
  case 5: return limit::denorm_min();
  case 6: return limit::max();
  case 7: return now * Value(2);
  case 8: return now / Value(2);
  default: return static_cast<Value>(draw.real(0, 10));
  }
}

// As far as it goes.
inline std::int64_t later(std::int64_t iteration, std::int64_t by) {
  return iteration > most_int64 - by ? most_int64 : iteration + by;
}

template <class Value>
void alter_selector(draws& draw, selector_numbers<Value>& numbers, std::int64_t iteration) {
  switch (draw.between(0, 4)) {
  case 0:
    numbers.threshold = numbers.has_threshold ? draw_magnitude(draw, numbers.threshold) : numbers.threshold;
    break;
  case 1:
    numbers.evaluated =
        !numbers.has_threshold
            ? numbers.evaluated
            : draw.one_of<std::int64_t>({-1, -2, -most_int64, 0, std::max<std::int64_t>(iteration, 1) - 1, iteration,
                                         later(iteration, 1), 1'000'000'000, most_int64});
    break;
  case 2: numbers.magnitude = numbers.has_guess ? draw_magnitude(draw, numbers.magnitude) : numbers.magnitude; break;
  case 3: numbers.prefilter = numbers.has_guess ? draw_magnitude(draw, numbers.prefilter) : numbers.prefilter; break;
  default:
    numbers.bits = !numbers.has_guess ? numbers.bits
                                      : draw.one_of<std::int64_t>({-1, 0, 1, 7, 24, 25, 30, 31, 32, 56, 57, 62, 63, 64,
                                                                   1000, std::numeric_limits<std::int32_t>::max(),
                                                                   std::numeric_limits<std::int32_t>::min()});
  }
}

inline void alter_boundaries(draws& draw, fuzz_case const& what, std::vector<std::int64_t>& boundaries) {
  std::int64_t const n = what.how.length;
  auto const ranks = static_cast<std::size_t>(what.ranks);
  std::vector<std::int64_t> made(ranks + 1, 0);
  made.back() = n;
  switch (draw.between(0, 7)) {
  case 0: break; // all in the last region
  case 1: std::fill(made.begin() + 1, made.end(), n); break;
  case 2:
    for (std::size_t r = 1; r < ranks; ++r) {
      made[r] = draw.between(0, n);
    }
    std::sort(made.begin(), made.end());
    break;
  case 3: made[draw.chance(0.5) ? 0 : ranks] += draw.chance(0.5) ? 1 : -1; break;
  case 4: made.push_back(n); break;
  case 5: made.clear(); break;
  case 6: made[ranks / 2] = n + 5; break;
  default: made[ranks / 2] = -1; break;
  }
  boundaries = made;
}

/// Alters some numbers of a state. The same draws alter the states of all ranks alike.
template <class Value>
void alter(draws& draw, fuzz_case const& what, state_numbers<Value>& state) {
  std::int64_t const changes = draw.between(1, 2);
  for (std::int64_t i = 0; i < changes; ++i) {
    switch (draw.between(0, state.of_sgd ? 6 : 4)) {
    case 0:
      state.iteration = draw.one_of<std::int64_t>(
          {-1, -most_int64, 0, 1, later(state.iteration, 63), later(state.iteration, 31), most_int64 - 1, most_int64});
      break;
    case 1: alter_selector(draw, state.local, state.iteration); break;
    case 2:
    case 3: alter_selector(draw, state.global, state.iteration); break;
    case 4:
      if (state.has_boundaries) {
        alter_boundaries(draw, what, state.boundaries);
      }
      break;
    case 5:
      state.learning_rate =
          draw.one_of({std::numeric_limits<double>::quiet_NaN(), 0.5, std::numeric_limits<double>::infinity()});
      break;
    default:
      if (draw.chance(0.5)) {
        state.residual.resize(static_cast<std::size_t>(what.how.length + draw.one_of<std::int64_t>({0, 1, 100})));
      } else {
        std::fill(state.residual.begin(), state.residual.end(),
                  draw.one_of({Value(0), Value(1), std::numeric_limits<Value>::quiet_NaN()}));
      }
    }
  }
}

/// How a checkpoint is damaged.
enum class file_damage { truncated, trailing, other_type, flipped };

/// Files of states of several types, by the type and whether it is inside of `sgd`'s.
struct typed_file {
  std::string state_type;
  bool of_sgd = false;
  std::string bytes;
};

template <class... Algorithm>
std::vector<typed_file> files_of() {
  std::vector<typed_file> files;
  auto const add = [&]<class State>(State const& state, bool of_sgd, char const* type) {
    std::ostringstream file;
    oktopk::save(file, state);
    files.push_back({type, of_sgd, file.str()});
  };
  auto const add_one = [&]<class Each>(std::type_identity<Each>, bool of_sgd) {
    typename oktopk::sgd<Each>::state_type whole;
    whole.learning_rate = 0.5;
    whole.residual.assign(10, 1);
    whole.allreduce.iteration = 3;
    if constexpr (requires { whole.allreduce.boundaries; }) {
      whole.allreduce.boundaries = {0, 5, 10};
    }
    char const* const type = typeid(whole.allreduce).name();
    of_sgd ? add(whole, true, type) : add(whole.allreduce, false, type);
  };
  for (bool const of_sgd : {false, true}) {
    (add_one(std::type_identity<Algorithm>(), of_sgd), ...);
  }
  return files;
}

inline std::vector<typed_file> const& other_files() {
  using namespace oktopk;
  using E = execution;
  using C = communicator;
  static auto const all = files_of<ok_topk<E, C>, ok_topk<E, C, oktopk::with_format<coo<double>>>,
                                   ok_topk<E, C, oktopk_tests::policies_of<coo<>, reused_threshold, reused_threshold>>,
                                   topk_a<E, C>, topk_a<E, C, oktopk::with_format<coo<double>>>,
                                   topk_a<E, C, oktopk_tests::policies_of<coo<>, reused_threshold>>, dense<E, C>>();
  return all;
}

/// Damages the bytes of a checkpoint. The same draws do the same to all.
inline std::string damaged(file_damage how, draws& draw, facts const& about, bool of_sgd, std::string bytes) {
  auto const size = static_cast<std::int64_t>(bytes.size());
  switch (how) {
  case file_damage::truncated: bytes.resize(static_cast<std::size_t>(draw.between(0, size - 1))); break;
  case file_damage::trailing:
    bytes.append(static_cast<std::size_t>(draw.one_of<std::int64_t>({1, 4, 8, 100})), '\1');
    break;
  case file_damage::other_type: {
    auto const& file = draw.one_of(other_files());
    if (file.state_type != about.state_type || file.of_sgd != of_sgd) {
      bytes = file.bytes;
    } else {
      bytes = "oktopk";
    }
    break;
  }
  case file_damage::flipped:
    for (std::int64_t i = draw.between(1, 3); i > 0; --i) {
      char& byte = bytes[static_cast<std::size_t>(draw.between(0, size - 1))];
      byte = static_cast<char>(byte ^ (1 << draw.between(0, 7)));
    }
    break;
  }
  return bytes;
}

} // namespace oktopk_fuzz
