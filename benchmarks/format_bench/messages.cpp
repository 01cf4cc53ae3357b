// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "messages.hpp"

#include "oktopk_bench/input.hpp"
#include "programs/options.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>

namespace format_bench {
namespace {

using generator = std::mt19937_64;

double share(generator& random) {
  return std::uniform_real_distribution<double>()(random);
}

/// Above a threshold, with a tail as gradients have it.
float selected_value(generator& random) {
  double const magnitude = 1e-3 * (1 + 0.4 * std::exponential_distribution<double>()(random));
  return static_cast<float>(share(random) < 0.5 ? -magnitude : magnitude);
}

/// Any finite number, each of them as likely as any other.
float random_bits(generator& random) {
  for (;;) {
    auto const value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isfinite(value)) {
      return value;
    }
  }
}

std::int64_t wanted(std::int64_t length, double density) {
  return std::clamp<std::int64_t>(std::llround(density * static_cast<double>(length)), 1, length);
}

/// So many of [0, length), each set of them as likely as any other.
std::vector<std::int32_t> uniform(std::int64_t length, std::int64_t count, generator& random) {
  std::vector<std::int32_t> indices;
  for (std::int64_t i = 0; i < length; ++i) {
    auto const left = static_cast<double>(count) - static_cast<double>(indices.size());
    if (share(random) * static_cast<double>(length - i) < left) {
      indices.push_back(static_cast<std::int32_t>(i));
    }
  }
  return indices;
}

std::vector<std::int32_t> clustered(std::int64_t length, double density, generator& random) {
  constexpr std::int64_t stretch = 4096;
  std::vector<std::int32_t> indices;
  double here = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    if (i % stretch == 0) {
      here = share(random) < 0.1 ? std::min(1.0, 9 * density) : density / 9;
    }
    if (share(random) < here) {
      indices.push_back(static_cast<std::int32_t>(i));
    }
  }
  return indices;
}

/// Gaps of 1 and of what makes the mean right.
std::vector<std::int32_t> alternating(std::int64_t length, std::int64_t count) {
  std::int64_t const pair = std::max<std::int64_t>(2, 2 * length / count);
  std::vector<std::int32_t> indices;
  for (std::int64_t i = 0; i + 1 < length; i += pair) {
    indices.push_back(static_cast<std::int32_t>(i));
    indices.push_back(static_cast<std::int32_t>(i + 1));
  }
  return indices;
}

/// Adds the entries of one selection to the messages; a region ends where the next one's first entry is.
void add_messages(input& to, std::vector<std::int32_t> const& indices, std::vector<float> const& values,
                  std::int64_t parts) {
  std::size_t const count = indices.size();
  auto const many = static_cast<std::size_t>(std::clamp<std::int64_t>(parts, 1, static_cast<std::int64_t>(count)));
  for (std::size_t part = 0; part < many; ++part) {
    std::size_t const first = count * part / many;
    std::size_t const last = count * (part + 1) / many;
    message own;
    own.indices.assign(indices.data() + first, indices.data() + last);
    own.values.assign(values.data() + first, values.data() + last);
    own.where = {part == 0 ? 0 : indices[first], part + 1 == many ? to.length : indices[last]};
    to.messages.push_back(std::move(own));
  }
}

/// The places of the largest magnitudes, ascending, ties to the lower place.
std::vector<std::int32_t> largest(std::vector<float> const& values, std::int64_t count) {
  std::vector<std::int32_t> places(values.size());
  std::iota(places.begin(), places.end(), 0);
  auto const at = [&](std::int32_t place) { return std::abs(values[static_cast<std::size_t>(place)]); };
  std::nth_element(places.begin(), places.begin() + (count - 1), places.end(),
                   [&](std::int32_t a, std::int32_t b) { return at(a) > at(b) || (at(a) == at(b) && a < b); });
  places.resize(static_cast<std::size_t>(count));
  std::sort(places.begin(), places.end());
  return places;
}

double gap_entropy(input const& from) {
  std::map<std::int64_t, std::int64_t> counts;
  for (message const& each : from.messages) {
    std::int64_t before = each.where.begin - 1;
    for (std::int32_t const i : each.indices) {
      counts[i - before] += 1;
      before = i;
    }
  }
  auto const all = static_cast<double>(from.entries());
  double bits = 0;
  for (auto const& [gap, count] : counts) {
    bits -= static_cast<double>(count) / all * std::log2(static_cast<double>(count) / all);
  }
  return bits;
}

double choice_bits(input const& from) {
  double nats = 0;
  for (message const& each : from.messages) {
    auto const width = static_cast<double>(each.where.width());
    auto const count = static_cast<double>(each.size());
    nats += std::lgamma(width + 1) - std::lgamma(count + 1) - std::lgamma(width - count + 1);
  }
  return nats / std::log(2.0) / static_cast<double>(from.entries());
}

void add_bounds(input& to) {
  to.gap_entropy = gap_entropy(to);
  to.choice_bits = choice_bits(to);
}

} // namespace

std::int64_t input::entries() const {
  return std::accumulate(messages.begin(), messages.end(), std::int64_t(0),
                         [](std::int64_t sum, message const& each) { return sum + each.size(); });
}

bool is_kind(std::string_view name) {
  return std::find(std::begin(kinds), std::end(kinds), name) != std::end(kinds);
}

input make_input(std::string_view kind, std::int64_t length, double density, std::int64_t parts) {
  generator random(1);
  std::int64_t const count = wanted(length, density);
  std::vector<std::int32_t> indices = kind == "clustered"     ? clustered(length, density, random)
                                      : kind == "alternating" ? alternating(length, count)
                                                              : uniform(length, count, random);
  if (indices.empty()) {
    indices.push_back(0);
  }
  std::vector<float> values(indices.size());
  for (float& value : values) {
    value = kind == "random_bits" ? random_bits(random) : selected_value(random);
  }
  input made{std::string(kind), length, {}, 0, 0};
  add_messages(made, indices, values, parts);
  add_bounds(made);
  return made;
}

input read_input(std::vector<std::string> const& files, std::string const& name, double density, std::int64_t parts) {
  input made{name, 0, {}, 0, 0};
  for (std::string const& each : files) {
    oktopk_bench::file_input file{std::filesystem::path(each)};
    if (made.length != 0 && file.length() != made.length) {
      throw std::runtime_error(each + " has " + std::to_string(file.length()) + " values, and the first file " +
                               std::to_string(made.length));
    }
    made.length = file.length();
    oktopk_programs::check_length(each, made.length);
    std::vector<float> accumulator(static_cast<std::size_t>(made.length));
    file.read(0, accumulator);
    auto const indices = largest(accumulator, wanted(made.length, density));
    std::vector<float> values;
    for (std::int32_t const i : indices) {
      values.push_back(accumulator[static_cast<std::size_t>(i)]);
    }
    add_messages(made, indices, values, parts);
  }
  add_bounds(made);
  return made;
}

} // namespace format_bench
