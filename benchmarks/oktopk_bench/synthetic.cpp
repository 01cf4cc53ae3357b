// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "input.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace oktopk_bench {
namespace {

// Random numbers by position instead of by sequence (SplitMix64's finalizer), so that any entry can be drawn alone.
std::uint64_t hash(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

std::uint64_t stream(std::uint64_t seed, std::uint64_t purpose, std::uint64_t number) {
  return hash(hash(hash(seed) + purpose) + number);
}

// Uniform in [0, 1).
double uniform(std::uint64_t stream_of, std::uint64_t position) {
  return static_cast<double>(hash(stream_of + position) >> 11) * 0x1p-53;
}

// Close to normal with variance 1: four 16-bit uniforms from one hash. Its tails are short; the scales make the long
// ones.
float bell(std::uint64_t stream_of, std::uint64_t position) {
  std::uint64_t const bits = hash(stream_of + position);
  auto const sum =
      static_cast<std::int64_t>((bits & 0xffffU) + ((bits >> 16) & 0xffffU) + ((bits >> 32) & 0xffffU) + (bits >> 48));
  constexpr std::int64_t most = 0xffff;
  return static_cast<float>(2 * sum - 4 * most) * (0.8660254F / static_cast<float>(most));
}

enum purpose : std::uint64_t {
  layer_sizes,
  layer_scales,
  layer_phases,
  row_scales,
  entry_scales,
  shared_noise,
  own_noise
};

constexpr std::int64_t most_layers = 24;
constexpr std::int64_t entries_of_row = 256;
constexpr double smallest_layer = 0.002; // of the largest
constexpr double layer_spread = 0.5;     // standard deviations of the logarithms of the scales
constexpr double row_spread = 0.2;
constexpr double entry_spread = 0.2;
constexpr double drift = 0.1; // of the scale of a layer, to and fro within drift_steps
constexpr double drift_steps = 3000;
constexpr float common_share = 0.3F;
constexpr float own_share = 0.9F;
constexpr float flat = 0.4F;  // a rank's noise x becomes flat x + steep x^3:
constexpr float steep = 0.2F; // rarely large, but then far larger than normal noise

} // namespace

synthetic_input::synthetic_input(std::int64_t length, std::uint64_t seed, int rank)
    : length_(length), seed_(seed), rank_(static_cast<std::uint64_t>(rank)) {
  draw_layers();
}

void synthetic_input::draw_all_scales() {
  scales_.resize(static_cast<std::size_t>(length_));
  for (std::size_t number = 0; number < layers_.size(); ++number) {
    draw_scales(layers_[number], number);
  }
}

void synthetic_input::draw_layers() {
  std::int64_t const count = std::min(most_layers, length_);
  std::vector<double> weights;
  double total = 0;
  for (std::int64_t number = 0; number < count; ++number) {
    double const u = uniform(stream(seed_, layer_sizes, 0), static_cast<std::uint64_t>(number));
    weights.push_back(std::pow(smallest_layer, u));
    total += weights.back();
  }
  double reached = 0;
  for (std::int64_t number = 0; number < count; ++number) {
    layer one;
    one.begin = layers_.empty() ? 0 : layers_.back().end;
    reached += weights[static_cast<std::size_t>(number)];
    auto const end = static_cast<std::int64_t>(static_cast<double>(length_) * (reached / total));
    one.end = number + 1 == count ? length_ : std::clamp(end, one.begin, length_);
    one.drift_phase =
        2 * std::numbers::pi * uniform(stream(seed_, layer_phases, 0), static_cast<std::uint64_t>(number));
    layers_.push_back(one);
  }
}

void synthetic_input::draw_scales(layer const& one, std::uint64_t number) {
  double const share = static_cast<double>(one.end - one.begin + 1) / static_cast<double>(length_);
  // Small layers see larger gradients: a step on one of their weights moves more of the output.
  double const scale =
      std::exp(layer_spread * double(bell(stream(seed_, layer_scales, 0), number))) * std::pow(share, -0.2);
  std::uint64_t const rows = stream(seed_, row_scales, number);
  std::uint64_t const entries = stream(seed_, entry_scales, number);
  for (std::int64_t begin = one.begin; begin < one.end; begin += entries_of_row) {
    double const row = row_spread * double(bell(rows, static_cast<std::uint64_t>(begin)));
    for (std::int64_t i = begin; i < std::min(begin + entries_of_row, one.end); ++i) {
      double const entry = entry_spread * double(bell(entries, static_cast<std::uint64_t>(i)));
      scales_[static_cast<std::size_t>(i)] = static_cast<float>(scale * std::exp(row + entry));
    }
  }
}

std::string synthetic_input::description() const {
  return "synthetic input, seed " + std::to_string(seed_);
}

void synthetic_input::read(std::int64_t step, std::span<float> values) {
  if (scales_.empty()) {
    draw_all_scales();
  }
  // Steps before zero belong to the warm-up; the bias keeps the division one of positive numbers.
  constexpr std::int64_t bias = std::int64_t(1) << 40;
  std::int64_t const draw = (step + bias) / glide_steps;
  double const angle =
      std::numbers::pi / 2 * static_cast<double>((step + bias) % glide_steps) / static_cast<double>(glide_steps);
  // Two independent draws under weights whose squares add up to 1: the variance stays as it is while one fades over.
  auto const fading = static_cast<float>(std::cos(angle));
  auto const rising = static_cast<float>(std::sin(angle));
  auto const number = static_cast<std::uint64_t>(draw);
  std::uint64_t const shared_now = stream(seed_, shared_noise, number);
  std::uint64_t const shared_next = stream(seed_, shared_noise, number + 1);
  std::uint64_t const own_now = stream(stream(seed_, own_noise, rank_), 0, number);
  std::uint64_t const own_next = stream(stream(seed_, own_noise, rank_), 0, number + 1);
  for (layer const& one : layers_) {
    double const turn = 2 * std::numbers::pi * static_cast<double>(step) / drift_steps + one.drift_phase;
    auto const now = static_cast<float>(1 + drift * std::sin(turn));
    for (std::int64_t i = one.begin; i < one.end; ++i) {
      auto const at = static_cast<std::uint64_t>(i);
      float const shared = fading * bell(shared_now, at) + rising * bell(shared_next, at);
      float const own = fading * bell(own_now, at) + rising * bell(own_next, at);
      values[at] = now * scales_[at] * (common_share * shared + own_share * own * (flat + steep * own * own));
    }
  }
}

} // namespace oktopk_bench
