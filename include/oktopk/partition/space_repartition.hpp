// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/partition/concept.hpp>

#include <vector>

namespace oktopk::detail {

/// Lines 5 to 7 of Algorithm 1: the regions of a call.
template <execution_space E, communicator Comm, partitioner<E, Comm> Partitioner>
class space_repartition {
public:
  explicit space_repartition(Partitioner const& how) : partitioner_(how), step_(how) {}

  /// For the call of this iteration, and for the one before. With `boundaries` as in `run`.
  double bound_words(int ranks, std::int64_t k, std::int64_t iteration,
                     std::vector<std::int64_t> const& boundaries) const {
    return partitioner_.bound_words(ranks, k, has_made_ || boundaries.empty() || partitioner_.due(iteration));
  }

  /// Collective. `boundaries` are those of the last call, the same on all ranks; none if it had none, or if they are not
  /// to be used again. Gives the regions of this call, valid until the next one.
  template <gradient_index Index>
  regions<E> const& run(call_context<E, Comm>& call, array_ref<Index const, typename E::memory_space> const& selected,
                        std::vector<std::int64_t>& boundaries) {
    bool const were_uneven = boundaries.empty() && call.iteration > 0;
    bool const is_due = partitioner_.due(call.iteration) || boundaries.empty();
    bool const are_new = is_due || !step_.fits(call, selected, boundaries);
    if (are_new) {
      profiling_region const profiled("oktopk::space_repartition");
      auto const found = step_.run(call, selected, were_uneven);
      boundaries.assign(found.begin(), found.end());
      call.statistics.repartitioned = true;
    }
    has_made_ = are_new;
    regions_.assign(call.exec, boundaries, partitioner_.blocks(), partitioner_.most_load(), are_new);
    return regions_;
  }

  /// At the end of a call, when all ranks have heard that a region had too many entries: these regions are not used again.
  void learn(call_context<E, Comm> const& call, std::vector<std::int64_t>& boundaries) const {
    if (call.is_uneven) {
      boundaries.clear();
    }
  }

private:
  Partitioner partitioner_;
  typename Partitioner::template step<E, Comm> step_;
  regions<E> regions_;
  bool has_made_ = false; // in the last call
};

} // namespace oktopk::detail
