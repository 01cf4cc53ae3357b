// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/integers.hpp>
#include <oktopk/partition/concept.hpp>

#include <vector>

namespace oktopk {

namespace detail {

/// P+1 boundaries of regions that differ by one at most.
inline void even_regions(std::int64_t length, std::span<std::int64_t> boundaries) {
  auto const regions = static_cast<std::int64_t>(boundaries.size()) - 1;
  for (std::size_t r = 0; r < boundaries.size(); ++r) {
    boundaries[r] = even_boundary(length, regions, static_cast<std::int64_t>(r));
  }
}

} // namespace detail

/// Regions of equal width: no communication, and no balance if the large gradients lie close together (paper, Fig. 1b).
struct uniform {
  struct options {};

  uniform() : uniform(options{}) {}
  explicit uniform(options) {}

  static std::string describe() { return "uniform"; }
  static std::string problem() { return {}; }
  static bool due(std::int64_t iteration) { return iteration == 0; }
  static double bound_words(int) { return 0; }

  template <execution_space E, communicator Comm>
  class step {
  public:
    explicit step(uniform const&) {}

    template <gradient_index Index>
    std::span<std::int64_t const> run(call_context<E, Comm>& call,
                                      array_ref<Index const, typename E::memory_space> const&) {
      boundaries_.resize(static_cast<std::size_t>(call.comm.size()) + 1);
      detail::even_regions(call.length, boundaries_);
      return boundaries_;
    }

  private:
    std::vector<std::int64_t> boundaries_;
  };
};

} // namespace oktopk
