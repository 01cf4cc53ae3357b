// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/select/kernel/source.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace select_bench {

inline constexpr float rate = 0.5F;

/// What is measured on: an accumulator is residual + rate x gradient, with the two gradients by turns, so that a
/// selection never sees twice in a row what it saw before.
struct input {
  std::string name;
  std::vector<float> residual;
  std::array<std::vector<float>, 2> gradients;
};

/// `normal` and `heavy_tailed` (Student's t with 3 degrees of freedom) are what gradients look like; the others are the
/// worst cases of selection: one magnitude for all, all in one bin of a histogram, none a normal number, all ten times
/// as large in every other call.
inline constexpr std::string_view distributions[] = {"normal",  "heavy_tailed", "constant",
                                                     "one_bin", "denormal",     "jumping"};

bool is_distribution(std::string_view name);

/// Values of a distribution; the same for the same name and length.
input make_input(std::string_view distribution, std::int64_t length);

/// The values of a file (.npy or raw) as accumulator; throws `std::runtime_error` where it cannot be read.
input read_input(std::string const& path);

using space = Kokkos::DefaultExecutionSpace;
using device_vector = Kokkos::View<float*, space::memory_space>;
using const_device_vector = Kokkos::View<float const*, space::memory_space>;
using making = oktopk::detail::accumulation<std::int32_t, float, space::memory_space>;
using candidates = oktopk::detail::candidates<std::int32_t, float, space::memory_space>;

inline constexpr bool on_device = oktopk::detail::is_device<space>;

/// An input where the execution space reads it, and room for the accumulator.
struct vectors {
  device_vector residual;
  std::array<device_vector, 2> gradients;
  device_vector accumulator;

  explicit vectors(input const& from)
      : residual(copy(from.residual)), gradients{copy(from.gradients[0]), copy(from.gradients[1])},
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

/// Selects in a repetition, to the end; gives how many.
using selection = std::function<std::int64_t(int repetition)>;

} // namespace select_bench
