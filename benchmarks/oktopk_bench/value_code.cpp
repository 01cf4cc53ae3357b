// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "value_code.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace oktopk_bench {
namespace {

constexpr std::size_t values_of_a_scale = 256;

// A scale travels as the upper half of a float; it is below infinity.
constexpr std::uint32_t lower_half = 0xffff;
constexpr std::uint32_t largest_upper_half = 0x7f7f0000;

float scale_from(std::uint32_t bits) {
  return std::bit_cast<float>(std::min(bits & ~lower_half, largest_upper_half));
}

float scale_at_least(float value) {
  return scale_from(std::bit_cast<std::uint32_t>(value) + lower_half);
}

float scale_next_to(double value) {
  auto const most = static_cast<double>(std::numeric_limits<float>::max());
  return scale_from(std::bit_cast<std::uint32_t>(static_cast<float>(std::min(value, most))) + 0x8000U);
}

bool is_scale(float value) {
  return (std::bit_cast<std::uint32_t>(value) & lower_half) == 0;
}

// To nearest, ties to even.
float as_bfloat16(float magnitude) {
  auto const bits = std::bit_cast<std::uint32_t>(magnitude);
  return scale_from(bits + 0x7fffU + ((bits >> 16) & 1U));
}

double magnitude_of(float value) {
  return std::abs(static_cast<double>(value));
}

double total_magnitude(std::span<float const> values) {
  double total = 0;
  for (float const value : values) {
    total += magnitude_of(value);
  }
  return total;
}

// A mean of floats whose code errs by a share of `of`. Of the smallest floats it loses more: each is divided before
// they are added.
double mean_of(double total, double of, double count, double error) {
  double const underflow = error == 0 ? 0 : std::copysign(0x1p-141, error);
  return std::max(0.0, (total + error * of) / count + underflow);
}

// Two magnitudes that stand for all (Lloyd 1982), and what is above the lower one.
struct two_magnitudes {
  double low;
  double high;
  double threshold;
};

// `error`: of the sums, as a share of them.
two_magnitudes fit(std::span<float const> values, double error) {
  auto const all = static_cast<double>(values.size());
  double const total = total_magnitude(values);
  double const mean = mean_of(total, total, all, error);
  two_magnitudes found{mean, mean, mean};
  for (int round = 0; round < 4; ++round) {
    double below = 0;
    double above = 0;
    double many = 0;
    for (float const value : values) {
      bool const is_above = magnitude_of(value) > found.threshold;
      (is_above ? above : below) += magnitude_of(value);
      many += is_above ? 1 : 0;
    }
    // The code takes what is above off the total.
    found.low = many < all ? mean_of(below, total, all - many, error) : found.low;
    found.high = many > 0 ? mean_of(above, above, many, error) : found.high;
    found.threshold = (found.low + found.high) / 2;
  }
  return found;
}

// The multiples of a scale that reach the largest magnitude; a scale is rounded up to its upper half, which takes the
// largest down by a level at most.
bool are_levels(std::span<float const> values, float largest, float outermost) {
  for (float const level : {outermost, outermost - 1}) {
    float const scale = largest / level;
    bool const fits = is_scale(scale) && std::all_of(values.begin(), values.end(), [scale](float value) {
                        double const many = magnitude_of(value) / static_cast<double>(scale);
                        return many == std::nearbyint(many);
                      });
    if (fits) {
      return true;
    }
  }
  return largest == 0 || largest == std::numeric_limits<float>::max();
}

} // namespace

value_code::value_code(std::string const& name) {
  if (name == "bfloat16") {
    kind_ = kind::bfloat16;
  } else if (name == "fixed8" || name == "fixed4") {
    kind_ = kind::fixed;
    outermost_ = name == "fixed8" ? 127 : 7;
  } else if (name == "fixed2") {
    kind_ = kind::two_magnitudes;
  } else if (name == "sign") {
    kind_ = kind::sign;
  }
}

void value_code::code(std::span<float const> message, std::vector<coded_value>& coded) const {
  // Sums of 256 floats in any order, and the few operations that make a level.
  double const error = kind_ == kind::fixed ? 0x1p-21 : 0x1p-16;
  std::array<double, values_of_a_scale> is{};
  std::array<double, values_of_a_scale> less{};
  std::array<double, values_of_a_scale> more{};
  for (std::size_t first = 0; first < message.size(); first += values_of_a_scale) {
    auto const block = message.subspan(first, std::min(values_of_a_scale, message.size() - first));
    code_block(block, 0, is);
    code_block(block, -error, less);
    code_block(block, error, more);
    for (std::size_t i = 0; i < block.size(); ++i) {
      coded.push_back({is[i], std::max(std::abs(less[i] - is[i]), std::abs(more[i] - is[i]))});
    }
  }
}

// What becomes of a block where the code's arithmetic errs by a share of its results.
void value_code::code_block(std::span<float const> block, double error, std::span<double> coded) const {
  float largest = 0;
  for (float const value : block) {
    largest = std::max(largest, std::abs(value));
  }
  auto const most = static_cast<double>(std::numeric_limits<float>::max());
  auto const scale = static_cast<double>(kind_ == kind::fixed ? scale_at_least(largest / outermost_) : 0.0F);
  bool const divides = scale >= static_cast<double>(std::numeric_limits<float>::min()); // else all is next to nothing
  double const total = kind_ == kind::sign ? total_magnitude(block) : 0;
  double const mean = mean_of(total, total, static_cast<double>(block.size()), error);
  two_magnitudes const two = kind_ == kind::two_magnitudes ? fit(block, error) : two_magnitudes{};
  for (std::size_t i = 0; i < block.size(); ++i) {
    double const magnitude = magnitude_of(block[i]);
    double result = 0;
    switch (kind_) {
    case kind::bfloat16: result = static_cast<double>(as_bfloat16(std::abs(block[i]))); break;
    case kind::fixed: {
      double const level = divides ? std::floor(magnitude / scale * (1 + error) + 0.5) : 0;
      result = std::min(scale * std::min(level, static_cast<double>(outermost_)), most);
      break;
    }
    case kind::two_magnitudes:
      result = static_cast<double>(scale_next_to(magnitude > two.threshold ? two.high : two.low));
      break;
    case kind::sign: result = static_cast<double>(scale_next_to(mean)); break;
    case kind::unknown: break;
    }
    coded[i] = std::copysign(result, static_cast<double>(block[i]));
  }
}

bool value_code::may_give(std::span<float const> message) const {
  for (std::size_t first = 0; first < message.size(); first += values_of_a_scale) {
    if (!block_may_be(message.subspan(first, std::min(values_of_a_scale, message.size() - first)))) {
      return false;
    }
  }
  return true;
}

bool value_code::block_may_be(std::span<float const> block) const {
  std::vector<float> magnitudes;
  for (float const value : block) {
    magnitudes.push_back(std::abs(value));
  }
  std::sort(magnitudes.begin(), magnitudes.end());
  if (kind_ == kind::fixed) {
    return are_levels(block, magnitudes.back(), outermost_);
  }
  bool const are_scales = std::all_of(magnitudes.begin(), magnitudes.end(), is_scale);
  auto const different = std::unique(magnitudes.begin(), magnitudes.end()) - magnitudes.begin();
  return are_scales && (kind_ == kind::bfloat16 || different <= (kind_ == kind::sign ? 1 : 2));
}

} // namespace oktopk_bench
