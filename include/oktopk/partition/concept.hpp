// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/comm/collectives.hpp>
#include <oktopk/core/options.hpp>
#include <oktopk/partition/regions.hpp>

#include <limits>

namespace oktopk {

/// What a partitioner need not say: its regions are contiguous, and however uneven they are, they stay until they are due.
struct partitioner_base {
  /// Blocks of the gradient that make a region. With more than one, boundaries are those of an order of indices in which
  /// regions are contiguous; see `regions`.
  static int blocks() { return 1; }

  /// How full a region may be, as a multiple of what it has at most if regions are even. If a rank gets more, regions are
  /// made anew in the next call. That is noticed if a number bounds selections; the ranks hear of it with the sizes that
  /// they exchange anyway.
  static double most_load() { return std::numeric_limits<double>::infinity(); }

  /// Whether regions are the same whatever the entries are, so that a call knows them before it has any.
  static constexpr bool is_known_before = false;

  /// What its step need not do.
  struct step_base {
    /// False makes the regions anew in this call. Collective, before each call whose regions are not due; the same on
    /// all ranks. Counts in `bound_words`.
    template <class Call, class Indices>
    static bool fits(Call&, Indices const&, std::span<std::int64_t const>) {
      return true;
    }
  };
};

namespace detail {

template <class P>
concept has_partitioner_options =
    made_from_options<P> && std::derived_from<P, partitioner_base> && requires(P const& how, std::int64_t number) {
      { how.describe() } -> std::convertible_to<std::string>;
      { how.problem() } -> std::convertible_to<std::string>;
      { how.due(number) } -> std::same_as<bool>;
      { how.bound_words(1, number, true) } -> std::same_as<double>;
      { how.blocks() } -> std::same_as<int>;
      { how.most_load() } -> std::same_as<double>;
      { P::is_known_before } -> std::convertible_to<bool>;
    };

template <class P, class E, class Comm>
concept partitions_for = std::constructible_from<typename P::template step<E, Comm>, P const&> &&
                         std::derived_from<typename P::template step<E, Comm>, partitioner_base::step_base> &&
                         requires(typename P::template step<E, Comm>& step, call_context<E, Comm>& call,
                                  array_ref<std::int32_t const, typename E::memory_space> selected,
                                  std::span<std::int64_t const> boundaries) {
                           { step.run(call, selected, true) } -> std::same_as<std::span<std::int64_t const>>;
                           { step.fits(call, selected, boundaries) } -> std::same_as<bool>;
                         };

} // namespace detail

/// Assigns a region of the gradient to each rank (paper, section 3.1.1; Algorithm 1, lines 5 to 7). It derives from
/// `partitioner_base`, which has what it need not say.
///
/// 1. `options` — a plain struct; `describe()` returns it as a text that the ranks compare, `problem()` says what is
///    wrong with it (empty when nothing is).
/// 2. `due(iteration)` — true if the regions are made anew before that iteration; true for iteration 0.
/// 3. `bound_words(ranks, k, are_new)` — the most words that one rank sends to make regions for selections of k, if they
///    are new in a call, and to find out that they do not fit.
/// 4. `step<E, Comm>` — the partitioner at work, made from the policy; owns its buffers, derives from
///    `partitioner_base::step_base`.
/// 5. `step.run(call, selected, were_uneven)` — collective; takes the ascending indices that this rank selected, and
///    returns P+1 boundaries: they ascend from 0 to the length, are the same on all ranks, and stay valid until the next
///    run. Region r is [boundaries[r], boundaries[r + 1]); it may be empty. `were_uneven`: regions of the last call had more
///    than `most_load`, or there are none though it is not the first one.
template <class P, class E, class Comm>
concept partitioner = detail::has_partitioner_options<P> && detail::partitions_for<P, E, Comm>;

} // namespace oktopk
