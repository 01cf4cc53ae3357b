// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "reference.hpp"
#include "result.hpp"

#include <oktopk/comm/concept.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

// How near an update is to what no selection would have left out. As the reference, the comparison does not use the
// library.
namespace oktopk_bench {

/// An update against the dense sum of the accumulators.
struct update_quality {
  /// The paper's xi (Assumption 1) of this step: |Topk(S) - Topk(U)| / |S|, S being the dense sum and U the update. The
  /// paper divides by the norm of the gradients' sum, which is that of S where there is no residual.
  double xi = 0;
  /// 1 - |S - U|^2 / |S|^2: the share of the dense sum's squared norm that arrived; below nought where U is worse than
  /// no update.
  double captured = 0;
  /// The same of Topk(S): the most that any k entries can have.
  double captured_by_top_k = 0;
};

/// Compares the update (ascending indices and their values) with the dense sum; ties of Topk go to the lower index.
///
/// A sum of zeros has nothing to capture: then xi is nought and the shares are 1 for an update of zeros.
inline update_quality quality_of(std::span<double const> sum, std::span<std::int64_t const> indices,
                                 std::span<float const> values, std::int64_t k) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  auto const square = [](double x) { return x * x; };
  top_entries<double> of_sum(sum, k);
  top_entries<float> of_update(values, k);
  double whole = 0;
  double missing = 0;       // of S in U
  double missing_top_k = 0; // of S in Topk(S)
  double apart = 0;         // Topk(S) and Topk(U)
  std::size_t next = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    bool const updated = next < indices.size() && indices[next] == static_cast<std::int64_t>(i);
    double const value = updated ? static_cast<double>(values[next]) : 0;
    double const should_be = of_sum.takes(sum[i]) ? sum[i] : 0;
    double const is = updated && of_update.takes(values[next]) ? value : 0;
    next += updated ? 1 : 0;
    whole += square(sum[i]);
    missing += square(sum[i] - value);
    missing_top_k += square(sum[i] - should_be);
    apart += square(should_be - is);
  }
  if (whole == 0) {
    return missing == 0 ? update_quality{0, 1, 1} : update_quality{infinity, -infinity, 1};
  }
  return {std::sqrt(apart / whole), 1 - missing / whole, 1 - missing_top_k / whole};
}

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
