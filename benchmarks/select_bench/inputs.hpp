// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace select_bench {

/// What is measured on: an accumulator is residual + rate x gradient, with the two gradients by turns, so that a
/// selection never sees twice in a row what it saw before.
struct input {
  std::string name;
  float rate = 0.5F;
  std::vector<float> residual;
  std::array<std::vector<float>, 2> gradients;
};

/// `normal` and `heavy_tailed` (Student's t with 3 degrees of freedom) are what gradients look like; the others are the
/// worst cases of selection: one magnitude for all, all in one bin of a histogram, none a normal number, all ten times
/// as large in every other call.
inline constexpr std::string_view distributions[] = {"normal",  "heavy_tailed", "constant",
                                                     "one_bin", "denormal",     "jumping"};

bool is_distribution(std::string_view name);

/// Values of a distribution; the same for the same name and length.
input make_input(std::string_view distribution, std::int64_t length);

/// The values of a file (.npy or raw) as accumulator; throws `std::runtime_error` where it cannot be read.
input read_input(std::string const& path);

} // namespace select_bench
