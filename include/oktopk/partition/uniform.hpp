// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/integers.hpp>
#include <oktopk/partition/concept.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace oktopk {

/// Regions of equal width: no communication, and no balance where the large gradients crowd together (paper, Fig. 1b).
struct uniform {
  struct options {};

  uniform() : uniform(options{}) {}
  explicit uniform(options) {}

  static std::string describe() { return "uniform"; }
  static std::string fault() { return {}; }
  static bool due(std::int64_t iteration) { return iteration == 0; }
  static double bound_words(int) { return 0; }

  template <execution_space E, communicator Comm, gradient_index Index>
  void partition(E const&, Comm& comm, array_ref<Index const, typename E::memory_space>, std::int64_t length,
                 std::span<std::int64_t> boundaries, partition_workspace<E>&) const {
    for (std::size_t r = 0; r < boundaries.size(); ++r) {
      boundaries[r] = detail::even_boundary(length, comm.size(), static_cast<std::int64_t>(r));
    }
  }
};

} // namespace oktopk
