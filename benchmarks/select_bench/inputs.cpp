// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "inputs.hpp"

#include "oktopk_bench/input.hpp"
#include "programs/options.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>

namespace select_bench {
namespace {

using generator = std::mt19937_64;

template <class Draw>
std::vector<float> drawn(std::int64_t length, std::uint64_t seed, Draw draw) {
  generator random(seed);
  std::vector<float> values(static_cast<std::size_t>(length));
  for (float& value : values) {
    value = static_cast<float>(draw(random));
  }
  return values;
}

template <class Draw>
input drawn_input(std::string_view name, std::int64_t length, Draw draw) {
  return {std::string(name), drawn(length, 1, draw), {drawn(length, 2, draw), drawn(length, 3, draw)}};
}

} // namespace

bool is_distribution(std::string_view name) {
  return std::find(std::begin(distributions), std::end(distributions), name) != std::end(distributions);
}

input make_input(std::string_view distribution, std::int64_t length) {
  if (distribution == "normal") {
    return drawn_input(distribution, length, std::normal_distribution<double>());
  }
  if (distribution == "heavy_tailed") {
    return drawn_input(distribution, length, std::student_t_distribution<double>(3));
  }
  if (distribution == "constant") {
    return drawn_input(distribution, length, [](generator&) { return 1.0; });
  }
  if (distribution == "one_bin") {
    return drawn_input(distribution, length, std::uniform_real_distribution<double>(1, 1 + 1.0 / 4096));
  }
  if (distribution == "denormal") {
    double const largest = std::numeric_limits<float>::min();
    return drawn_input(distribution, length, std::uniform_real_distribution<double>(-largest / 2, largest / 2));
  }
  input jumping = drawn_input("jumping", length, std::normal_distribution<double>());
  for (std::size_t i = 0; i < jumping.residual.size(); ++i) {
    jumping.residual[i] *= 0.01F;
    jumping.gradients[1][i] *= 10;
  }
  return jumping;
}

input read_input(std::string const& path) {
  oktopk_bench::file_input file{std::filesystem::path(path)};
  oktopk_programs::check_length(path, file.length());
  input made{path, std::vector<float>(static_cast<std::size_t>(file.length())), {}};
  std::vector<float>& values = made.gradients[0];
  values.resize(made.residual.size());
  file.read(0, values);
  // Half and half, and in every other call a little more of it: the threshold moves as it does from one iteration of a
  // training to the next.
  std::transform(values.begin(), values.end(), made.residual.begin(), [](float x) { return x / 2; });
  made.gradients[1] = values;
  for (float& x : made.gradients[1]) {
    x *= 1.03125F;
  }
  return made;
}

} // namespace select_bench
