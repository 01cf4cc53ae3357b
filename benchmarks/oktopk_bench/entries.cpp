// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "entries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace oktopk_bench {
namespace {

constexpr std::int64_t block = 1024;

// splitmix64 (Sebastiano Vigna).
class draws {
public:
  explicit draws(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U + 1) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }

  /// In (0, 1].
  double uniform() { return static_cast<double>((next() >> 11) + 1) * 0x1p-53; }

  /// Places that are left out before the next one, of which each is taken with this probability.
  std::int64_t gap(double probability) {
    return probability >= 1
               ? 0
               : static_cast<std::int64_t>(std::min(std::log(uniform()) / std::log1p(-probability), 0x1p60));
  }

private:
  std::uint64_t state_;
};

// c, where the sum of min(1, c / (i + 1)) over all places is the number wanted: c + c log(n / c), for n over c.
double zipf_scale(double length, double wanted) {
  double low = 0;
  double high = wanted;
  for (int i = 0; i < 200; ++i) {
    double const middle = (low + high) / 2;
    (middle > 0 && middle + middle * std::log(length / middle) < wanted ? low : high) = middle;
  }
  return high;
}

} // namespace

std::string entries_source::fault_of_skew(std::string const& name) {
  return name == "zipf" || name == "uniform" || name == "blocks" ? std::string()
                                                                 : "is zipf, uniform or blocks, not \"" + name + "\"";
}

std::string entries_source::description() const {
  return fmt::format("entries in {} % of the places, {}", 100 * density, skew) +
         (width == 1 ? std::string() : fmt::format(", rows of {}", width));
}

host_entries entries_source::draw(int rank, std::int64_t step) const {
  host_entries made;
  draws from(seed + 1000003 * static_cast<std::uint64_t>(rank) + 7919 * static_cast<std::uint64_t>(step + 1));
  auto const most = static_cast<std::size_t>(1.1 * density * static_cast<double>(length)) + 16;
  made.indices.reserve(most);
  auto const take = [&](std::int64_t index) { made.indices.push_back(static_cast<std::int32_t>(index)); };
  if (density >= 1) {
    for (std::int64_t i = 0; i < length; ++i) {
      take(i);
    }
  } else if (skew == "uniform") {
    for (std::int64_t i = from.gap(density); i < length; i += 1 + from.gap(density)) {
      take(i);
    }
  } else if (skew == "blocks") {
    for (std::int64_t b = from.gap(density); b * block < length; b += 1 + from.gap(density)) {
      for (std::int64_t i = b * block; i < std::min((b + 1) * block, length); ++i) {
        take(i);
      }
    }
  } else {
    double const head = zipf_scale(static_cast<double>(length), density * static_cast<double>(length));
    std::int64_t i = 0;
    for (; i < std::min(static_cast<std::int64_t>(head), length); ++i) {
      take(i);
    }
    while (i < length) { // places with about the probability of this one, each thinned to its own
      double const here = std::min(1.0, head / static_cast<double>(i + 1));
      std::int64_t const stretch = std::min(length, i + std::max<std::int64_t>(64, i / 64));
      for (i += from.gap(here); i < stretch; i += 1 + from.gap(here)) {
        if (from.uniform() * here <= head / static_cast<double>(i + 1)) {
          take(i);
        }
      }
      i = stretch; // what lies between is independent of all before
    }
  }
  made.values.resize(made.indices.size() * static_cast<std::size_t>(width));
  for (float& value : made.values) {
    value = static_cast<float>(from.next() % 17) - 8;
  }
  return made;
}

host_entries sum_of(entries_source const& source, int ranks, std::int64_t step) {
  host_entries all = source.draw(0, step);
  auto const width = static_cast<std::size_t>(source.width);
  for (int rank = 1; rank < ranks; ++rank) {
    host_entries const more = source.draw(rank, step);
    host_entries both;
    std::size_t a = 0;
    std::size_t b = 0;
    while (a < all.indices.size() || b < more.indices.size()) {
      bool const has_a = a < all.indices.size() && (b == more.indices.size() || all.indices[a] <= more.indices[b]);
      bool const has_b = b < more.indices.size() && (a == all.indices.size() || more.indices[b] <= all.indices[a]);
      both.indices.push_back(has_a ? all.indices[a] : more.indices[b]);
      for (std::size_t j = 0; j < width; ++j) {
        both.values.push_back((has_a ? all.values[a * width + j] : 0) + (has_b ? more.values[b * width + j] : 0));
      }
      a += has_a ? 1U : 0U;
      b += has_b ? 1U : 0U;
    }
    all = std::move(both);
  }
  return all;
}

} // namespace oktopk_bench
