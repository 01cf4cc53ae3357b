// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "quality.hpp"
#include "result.hpp"

#include <oktopk/comm/concept.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace oktopk_bench {

/// The dense sum of the ranks' accumulators, on rank 0: what every scheme's update is compared with.
class dense_sum {
public:
  /// What `add_up` needs on this rank; may throw std::bad_alloc.
  void reserve(std::int64_t length, int rank) {
    block_.resize(static_cast<std::size_t>(std::min(length, block_length)));
    sum_.resize(static_cast<std::size_t>(rank == 0 ? length : 0));
  }

  /// Collective, after `reserve` on all ranks. Sums in double precision.
  template <oktopk::communicator Comm>
  void add_up(Comm& comm, std::span<float const> accumulator) {
    auto const length = static_cast<std::int64_t>(accumulator.size());
    for (std::int64_t begin = 0; begin < length; begin += block_length) {
      auto const mine = accumulator.subspan(static_cast<std::size_t>(begin),
                                            static_cast<std::size_t>(std::min(block_length, length - begin)));
      auto const block = std::span<double>(block_).first(mine.size());
      std::copy(mine.begin(), mine.end(), block.begin());
      comm.allreduce(block, oktopk::reduction::sum, oktopk::phase::control);
      if (comm.rank() == 0) {
        std::copy(block.begin(), block.end(), sum_.begin() + static_cast<std::ptrdiff_t>(begin));
      }
    }
  }

  /// Of the update that came of these accumulators; to be called on rank 0.
  update_quality compare(host_result const& update, std::int64_t k) const {
    return quality_of(sum_, update.indices, update.values, k);
  }

private:
  static constexpr std::int64_t block_length = std::int64_t(1) << 18; // bounds the memory, whatever the length

  std::vector<double> block_;
  std::vector<double> sum_;
};

} // namespace oktopk_bench
