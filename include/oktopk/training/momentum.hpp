// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/range.hpp>
#include <oktopk/core/workspace.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace oktopk::detail {

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

  /// Kernels; public because nvcc wants the functions around them to be.
  template <class Gradient>
  void advance(E const& exec, Gradient const& gradient, Value scale, Value momentum) const {
    vector_type const now = now_;
    vector_type const next = next_;
    Kokkos::parallel_for(
        "oktopk::training::advance_velocity", index_range<E>(exec, 0, static_cast<std::int64_t>(next.extent(0))),
        KOKKOS_LAMBDA(std::int64_t i) { next(i) = momentum * now(i) + scale * static_cast<Value>(gradient(i)); });
  }

  /// Clears the next velocity of entries that have reached all ranks: the contributed ones that are in the update
  /// (momentum factor masking, section 3.2). Both lists ascend.
  template <class Contributed, class Reached>
  void mask(E const& exec, Contributed const& contributed, Reached const& reached) const {
    vector_type const next = next_;
    auto const count = static_cast<std::int64_t>(reached.extent(0));
    Kokkos::parallel_for(
        "oktopk::training::mask_velocity", index_range<E>(exec, 0, static_cast<std::int64_t>(contributed.extent(0))),
        KOKKOS_LAMBDA(std::int64_t i) {
          auto const index = contributed(i);
          std::int64_t low = 0;
          std::int64_t high = count;
          while (low < high) {
            std::int64_t const middle = low + (high - low) / 2;
            if (reached(middle) < index) {
              low = middle + 1;
            } else {
              high = middle;
            }
          }
          if (low < count && reached(low) == index) {
            next(static_cast<std::int64_t>(index)) = 0;
          }
        });
  }

private:
  vector_type now_;
  vector_type next_;
};

} // namespace oktopk::detail
