// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/comm/collectives.hpp>
#include <oktopk/core/options.hpp>
#include <oktopk/core/sparse.hpp>

namespace oktopk {

namespace detail {

template <class P>
concept has_partitioner_options = made_from_options<P> && requires(P const& partitioner, std::int64_t iteration) {
  { partitioner.describe() } -> std::convertible_to<std::string>;
  { partitioner.problem() } -> std::convertible_to<std::string>;
  { partitioner.due(iteration) } -> std::same_as<bool>;
  { partitioner.bound_words(1) } -> std::same_as<double>;
};

template <class P, class E, class Comm>
concept partitions_for = std::constructible_from<typename P::template step<E, Comm>, P const&> &&
                         requires(typename P::template step<E, Comm>& step, call_context<E, Comm>& call,
                                  array_ref<std::int32_t const, typename E::memory_space> selected) {
                           { step.run(call, selected) } -> std::same_as<std::span<std::int64_t const>>;
                         };

} // namespace detail

/// Assigns a region of the gradient to each rank (paper, section 3.1.1; Algorithm 1, lines 5 to 7).
///
/// 1. `options` — a plain struct; `describe()` returns it as a text that the ranks compare, `problem()` says what is
///    wrong with it (empty when nothing is).
/// 2. `due(iteration)` — true if the regions are made anew before that iteration; true for iteration 0.
/// 3. `bound_words(ranks)` — the most words that one rank sends for one partition.
/// 4. `step<E, Comm>` — the partitioner at work, made from the policy; owns its buffers.
/// 5. `step.run(call, selected)` — collective; takes the ascending indices that this rank selected, and returns P+1
///    boundaries: they ascend from 0 to the length, are the same on all ranks, and stay valid until the next run.
///    Region r is [boundaries[r], boundaries[r + 1]); it may be empty.
///
/// A step may have `fits(call, selected, boundaries)`, too: collective, before each call whose regions are not due. False
/// makes them anew in that call. Then `bound_words` counts both. A partitioner may have `bound_words(ranks, k)`, too, if
/// its cost depends on k. With `blocks()` a region is so many blocks, as `uniform` deals them out; boundaries and `fits` are
/// then in an order of indices in which regions are contiguous.
template <class P, class E, class Comm>
concept partitioner = detail::has_partitioner_options<P> && detail::partitions_for<P, E, Comm>;

namespace detail {

template <class P>
concept deals_blocks = requires(P const& how) {
  { how.blocks() } -> std::same_as<int>;
};

/// What `fits` of a partitioner's step says; true without one.
template <class Step, class Call, class Indices>
bool regions_fit(Step& step, Call& call, Indices const& selected, std::span<std::int64_t const> boundaries) {
  if constexpr (requires { step.fits(call, selected, boundaries); }) {
    return step.fits(call, selected, boundaries);
  }
  return true;
}

/// The most words of a partition for this k.
template <class Partitioner>
double partition_words(Partitioner const& how, int ranks, std::int64_t k) {
  if constexpr (requires { how.bound_words(ranks, k); }) {
    return how.bound_words(ranks, k);
  }
  return how.bound_words(ranks);
}

} // namespace detail
} // namespace oktopk
