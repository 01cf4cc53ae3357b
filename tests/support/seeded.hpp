// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

namespace oktopk_tests {

using host_execution = Kokkos::DefaultHostExecutionSpace;
using host_memory = host_execution::memory_space;

template <class Value>
using vector_of = Kokkos::View<Value*, host_memory>;

/// The same numbers on every machine, in every run (splitmix64, by Sebastiano Vigna's published recurrence).
class seeded {
public:
  explicit seeded(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }

  /// In [0, bound).
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(bound));
  }

  /// In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

private:
  std::uint64_t state_;
};

/// One rank's accumulator in one iteration: heavy-tailed, large in one stretch, partly the same on all ranks.
template <class Value>
vector_of<Value> seeded_accumulator(std::int64_t length, int rank, int iteration) {
  vector_of<Value> const made("accumulator", static_cast<std::size_t>(length));
  seeded common(77);
  seeded own(1000 + static_cast<std::uint64_t>(rank) * 131 + static_cast<std::uint64_t>(iteration) * 7);
  for (std::size_t i = 0; i < made.extent(0); ++i) {
    double const place = static_cast<double>(i) / static_cast<double>(length);
    double const scale = place > 0.6 && place < 0.7 ? 8 : 1;
    double const shared = std::pow(common.uniform(), 6);
    double const noise = std::pow(own.uniform(), 6);
    made(i) = static_cast<Value>((own.next() % 2 == 0 ? 1 : -1) * scale * (0.1 + 3 * shared + noise));
  }
  return made;
}

/// Small whole numbers, whose sums are exact in whatever order they are formed.
template <class Value>
vector_of<Value> seeded_whole_numbers(std::int64_t length, int rank) {
  vector_of<Value> const made("accumulator", static_cast<std::size_t>(length));
  seeded own(5 + static_cast<std::uint64_t>(rank));
  for (std::size_t i = 0; i < made.extent(0); ++i) {
    made(i) = static_cast<Value>(own.below(2001) - 1000);
  }
  return made;
}

} // namespace oktopk_tests
