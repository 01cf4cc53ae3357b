// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/concepts.hpp>
#include <oktopk/core/kokkos_ext/range.hpp>

#include <cstdint>

// What error feedback computes around its allreduce. All views are rank-1 and of one length, that of the accumulator;
// all of it is enqueued on `exec`, and nothing waits.
namespace oktopk::detail {

/// accumulator = residual + scale * gradient
template <execution_space E, class Vector, class Gradient, gradient_value Value>
void accumulate(E const& exec, Vector const& accumulator, Vector const& residual, Gradient const& gradient,
                Value scale) {
  Vector const sums = accumulator; // nvcc captures no references
  Vector const kept = residual;
  Gradient const added = gradient;
  Kokkos::parallel_for(
      "oktopk::error_feedback::accumulate", index_range<E>(exec, 0, static_cast<std::int64_t>(sums.extent(0))),
      KOKKOS_LAMBDA(std::int64_t i) { sums(i) = kept(i) + scale * static_cast<Value>(added(i)); });
}

/// accumulator = residual + scale * (clip * gradient + momentum * next velocity): Nesterov's step, which looks one step
/// ahead.
template <execution_space E, class Vector, class Gradient, gradient_value Value>
void accumulate_ahead(E const& exec, Vector const& accumulator, Vector const& residual, Gradient const& gradient,
                      Vector const& next_velocity, Value scale, Value clip, Value momentum) {
  Vector const sums = accumulator;
  Vector const kept = residual;
  Vector const next = next_velocity;
  Gradient const added = gradient;
  Kokkos::parallel_for(
      "oktopk::error_feedback::accumulate_ahead", index_range<E>(exec, 0, static_cast<std::int64_t>(sums.extent(0))),
      KOKKOS_LAMBDA(std::int64_t i) {
        sums(i) = kept(i) + scale * (clip * static_cast<Value>(added(i)) + momentum * next(i));
      });
}

/// What stays of an accumulator: without what is in the update (Algorithm 2, line 4), with what the update returns.
template <execution_space E, class Vector, class Update>
void keep_rest(E const& exec, Vector const& accumulator, Update const& update) {
  Vector const rest = accumulator;
  auto const contributed = update.contributed();
  Kokkos::parallel_for(
      "oktopk::error_feedback::clear_contributed",
      index_range<E>(exec, 0, static_cast<std::int64_t>(contributed.extent(0))),
      KOKKOS_LAMBDA(std::int64_t i) { rest(static_cast<std::int64_t>(contributed(i))) = 0; });
  auto const returned = update.returned();
  if (returned.size() > 0) {
    Kokkos::parallel_for(
        "oktopk::error_feedback::add_returned", index_range<E>(exec, 0, returned.size()),
        KOKKOS_LAMBDA(std::int64_t i) { rest(static_cast<std::int64_t>(returned.indices(i))) += returned.values(i); });
  }
}

/// The averages of an update over so many ranks, dense: 0 where there is none.
template <execution_space E, class Update, class Average, gradient_value Value>
void scatter_averages(E const& exec, Update const& update, Value ranks, Average const& into) {
  Average const averages = into;
  Kokkos::parallel_for(
      "oktopk::error_feedback::clear", index_range<E>(exec, 0, static_cast<std::int64_t>(averages.extent(0))),
      KOKKOS_LAMBDA(std::int64_t i) { averages(i) = 0; });
  auto const indices = update.indices();
  auto const values = update.values();
  Kokkos::parallel_for(
      "oktopk::error_feedback::average", index_range<E>(exec, 0, static_cast<std::int64_t>(indices.extent(0))),
      KOKKOS_LAMBDA(std::int64_t i) { averages(static_cast<std::int64_t>(indices(i))) = values(i) / ranks; });
}

} // namespace oktopk::detail
