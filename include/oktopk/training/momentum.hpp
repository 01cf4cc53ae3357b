// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/kernels.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/sparse/positions.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace oktopk::detail {

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
