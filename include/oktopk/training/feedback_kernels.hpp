// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/kokkos_ext/kernels.hpp>
#include <oktopk/sparse/positions.hpp>
#include <oktopk/training/norm.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

// What error feedback computes around its allreduce. All views are rank-1 and of one length, that of the accumulator;
// all of it is enqueued on `exec`, and nothing waits.
namespace oktopk::detail {

template <class Vector, class Gradient, gradient_value Value>
struct gradient_scaling {
  Gradient gradient;
  Vector scaled;
  double factor;
  double power;
  double other_power;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    auto const value = static_cast<double>(static_cast<Value>(gradient(i)));
    scaled(i) = static_cast<Value>(value * factor * power * other_power);
  }
};

template <class Vector, class Gradient, gradient_value Value>
struct residual_accumulation {
  Vector accumulator;
  Vector residual;
  Gradient gradient;
  Value scale;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    accumulator(i) = residual(i) + scale * static_cast<Value>(gradient(i));
  }
};

template <class Vector, class Gradient, gradient_value Value>
struct residual_accumulation_ahead {
  Vector accumulator;
  Vector residual;
  Gradient gradient;
  Vector next_velocity;
  Value scale;
  Value clip;
  Value momentum;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    accumulator(i) = residual(i) + scale * (clip * static_cast<Value>(gradient(i)) + momentum * next_velocity(i));
  }
};

template <class Vector, class Indices>
struct contributed_clearing {
  Vector rest;
  Indices contributed;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { rest(static_cast<std::int64_t>(contributed(i))) = 0; }
};

template <class Vector, class Entries>
struct returned_addition {
  Vector rest;
  Entries returned;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    rest(static_cast<std::int64_t>(returned.indices(i))) += returned.values(i);
  }
};

template <class Indices, class Values, class Average, gradient_value Value>
struct average_scattering {
  Indices indices;
  Values values;
  Value ranks;
  Average averages;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    averages(static_cast<std::int64_t>(indices(i))) = values(i) / ranks;
  }
};

/// scaled = factor * gradient, for a factor that a `Value` cannot hold since it is too small: in double precision, and
/// in steps that each make the product smaller, so that none of them underflows where the product does not.
template <gradient_value Value, execution_space E, class Gradient, class Vector>
void scale_down(E const& exec, Gradient const& gradient, wide_number factor, Vector const& scaled) {
  int const exponent = std::max(factor.exponent, -2144); // makes 0 of every double already
  int const half = exponent / 2;
  gradient_scaling<Vector, Gradient, Value> const kernel{gradient, scaled, factor.value, std::ldexp(1.0, half),
                                                         std::ldexp(1.0, exponent - half)};
  Kokkos::parallel_for("oktopk::error_feedback::scale_down",
                       index_range<E>(exec, 0, static_cast<std::int64_t>(scaled.extent(0))), kernel);
}

/// accumulator = residual + scale * gradient
template <execution_space E, class Vector, class Gradient, gradient_value Value>
void accumulate(E const& exec, Vector const& accumulator, Vector const& residual, Gradient const& gradient,
                Value scale) {
  residual_accumulation<Vector, Gradient, Value> const kernel{accumulator, residual, gradient, scale};
  Kokkos::parallel_for("oktopk::error_feedback::accumulate",
                       index_range<E>(exec, 0, static_cast<std::int64_t>(accumulator.extent(0))), kernel);
}

/// accumulator = residual + scale * (clip * gradient + momentum * next velocity): Nesterov's step, which looks one step
/// ahead.
template <execution_space E, class Vector, class Gradient, gradient_value Value>
void accumulate_ahead(E const& exec, Vector const& accumulator, Vector const& residual, Gradient const& gradient,
                      Vector const& next_velocity, Value scale, Value clip, Value momentum) {
  residual_accumulation_ahead<Vector, Gradient, Value> const kernel{accumulator, residual, gradient, next_velocity,
                                                                    scale,       clip,     momentum};
  Kokkos::parallel_for("oktopk::error_feedback::accumulate_ahead",
                       index_range<E>(exec, 0, static_cast<std::int64_t>(accumulator.extent(0))), kernel);
}

/// What stays of an accumulator: without what is in the update (Algorithm 2, line 4), with what the update returns.
template <execution_space E, class Vector, class Update>
void keep_rest(E const& exec, Vector const& accumulator, Update const& update) {
  auto const contributed = update.contributed();
  Kokkos::parallel_for("oktopk::error_feedback::clear_contributed",
                       index_range<E>(exec, 0, static_cast<std::int64_t>(contributed.extent(0))),
                       contributed_clearing<Vector, decltype(contributed)>{accumulator, contributed});
  auto const returned = update.returned();
  if (returned.size() > 0) {
    Kokkos::parallel_for("oktopk::error_feedback::add_returned", index_range<E>(exec, 0, returned.size()),
                         returned_addition<Vector, decltype(returned)>{accumulator, returned});
  }
}

/// The averages of an update over so many ranks, dense: 0 where there is none.
template <execution_space E, class Update, class Average, gradient_value Value>
void scatter_averages(E const& exec, Update const& update, Value ranks, Average const& into) {
  fill_array("oktopk::error_feedback::clear", exec, into, static_cast<std::int64_t>(into.extent(0)), Value(0));
  auto const indices = update.indices();
  auto const values = update.values();
  average_scattering<decltype(indices), decltype(values), Average, Value> const kernel{indices, values, ranks, into};
  Kokkos::parallel_for("oktopk::error_feedback::average",
                       index_range<E>(exec, 0, static_cast<std::int64_t>(indices.extent(0))), kernel);
}

template <class Vector, class Gradient, gradient_value Value>
struct velocity_advance {
  Vector now;
  Vector next;
  Gradient gradient;
  Value scale;
  Value momentum;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    next(i) = momentum * now(i) + scale * static_cast<Value>(gradient(i));
  }
};

template <class Vector, class Contributed, class Reached>
struct velocity_mask {
  Vector next;
  Contributed contributed;
  Reached reached;
  std::int64_t count; ///< of `reached`

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    auto const index = contributed(i);
    std::int64_t const place = lower_bound(reached, count, static_cast<std::int64_t>(index));
    if (place < count && reached(place) == index) {
      next(static_cast<std::int64_t>(index)) = 0;
    }
  }
};

/// Velocity of a rank: velocity = momentum * velocity + gradient, before the residual takes it (momentum correction,
/// Lin et al., Deep Gradient Compression, ICLR 2018, section 3.1).
///
/// Holds two vectors of the gradient's length, so that a call that fails leaves the velocity as it was: `advance`
/// writes the next one beside it, `swap` makes that one count. No memory is taken where the momentum is 0.
template <execution_space E, gradient_value Value>
class velocity {
public:
  using memory_space = typename E::memory_space;
  using vector_type = Kokkos::View<Value*, memory_space>;

  velocity() = default;
  velocity(E const& exec, std::int64_t length)
      : now_(Kokkos::view_alloc(exec, std::string("oktopk::training::velocity")), static_cast<std::size_t>(length)),
        next_(Kokkos::view_alloc(exec, std::string("oktopk::training::next_velocity"), Kokkos::WithoutInitializing),
              static_cast<std::size_t>(length)) {}

  vector_type const& now() const { return now_; }
  vector_type const& next() const { return next_; }

  /// What was advanced counts from now on; a second time, it counts no more.
  void swap() { std::swap(now_, next_); }

  template <class Gradient>
  void advance(E const& exec, Gradient const& gradient, Value scale, Value momentum) const {
    velocity_advance<vector_type, Gradient, Value> const kernel{now_, next_, gradient, scale, momentum};
    Kokkos::parallel_for("oktopk::training::advance_velocity",
                         index_range<E>(exec, 0, static_cast<std::int64_t>(next_.extent(0))), kernel);
  }

  /// Clears the next velocity of entries that have reached all ranks: the contributed ones that are in the update
  /// (momentum factor masking, section 3.2). Both lists ascend.
  template <class Contributed, class Reached>
  void mask(E const& exec, Contributed const& contributed, Reached const& reached) const {
    velocity_mask<vector_type, Contributed, Reached> const kernel{next_, contributed, reached,
                                                                  static_cast<std::int64_t>(reached.extent(0))};
    Kokkos::parallel_for("oktopk::training::mask_velocity",
                         index_range<E>(exec, 0, static_cast<std::int64_t>(contributed.extent(0))), kernel);
  }

private:
  vector_type now_;
  vector_type next_;
};

} // namespace oktopk::detail
