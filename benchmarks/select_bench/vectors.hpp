// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "inputs.hpp"

#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/kokkos_ext/memory.hpp>
#include <oktopk/select/kernel/source.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace select_bench {

using space = Kokkos::DefaultExecutionSpace;
using device_vector = Kokkos::View<float*, space::memory_space>;
using const_device_vector = Kokkos::View<float const*, space::memory_space>;
using making = oktopk::accumulation<std::int32_t, float, space::memory_space>;
using candidates = oktopk::candidates<std::int32_t, float, space::memory_space>;

inline constexpr bool on_device = oktopk::detail::is_device<space>;

/// An input where the execution space reads it, and room for the accumulator.
struct vectors {
  float rate = 0;
  device_vector residual;
  std::array<device_vector, 2> gradients;
  device_vector accumulator;

  explicit vectors(input const& from)
      : rate(from.rate), residual(copy(from.residual)), gradients{copy(from.gradients[0]), copy(from.gradients[1])},
        accumulator("select_bench::accumulator", from.residual.size()) {}

  std::int64_t size() const { return static_cast<std::int64_t>(accumulator.extent(0)); }

  /// What a selection that accumulates reads in a repetition.
  making source(int repetition) const {
    device_vector const& gradient = gradients[static_cast<std::size_t>(repetition % 2)];
    making made;
    made.residual = oktopk::array_ref<float const, space::memory_space>(residual.data(), residual.extent(0));
    made.gradient = oktopk::array_ref<float const, space::memory_space>(gradient.data(), gradient.extent(0));
    made.accumulator = oktopk::array_ref<float, space::memory_space>(accumulator.data(), accumulator.extent(0));
    made.rate = rate;
    return made;
  }

private:
  static device_vector copy(std::vector<float> const& from) {
    device_vector to(Kokkos::view_alloc(Kokkos::WithoutInitializing, "select_bench::vector"), from.size());
    Kokkos::deep_copy(to, Kokkos::View<float const*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
                              from.data(), from.size()));
    return to;
  }
};

} // namespace select_bench
