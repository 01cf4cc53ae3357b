// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace device_cost {

/// What is counted, since the program began.
enum class quantity : std::size_t {
  launches,
  blocks,
  threads,
  instructions, ///< of threads
  bytes_read,   ///< asked for by loads from global memory; an atomic reads and writes
  bytes_written,
  sectors_read, ///< different sectors of 32 bytes of a warp's load
  sectors_written,
  host_waits,
  copies, ///< between host and device, and within the device
  bytes_copied,
  allocations,
  seconds ///< of the host
};

inline constexpr std::size_t quantities = static_cast<std::size_t>(quantity::seconds) + 1;

/// A number for each quantity.
class counts {
public:
  double& operator[](quantity which) { return numbers_[static_cast<std::size_t>(which)]; }
  double operator[](quantity which) const { return numbers_[static_cast<std::size_t>(which)]; }

  counts& operator+=(counts const& other);
  counts operator-(counts const& other) const;
  counts operator/(double divisor) const;

private:
  std::array<double, quantities> numbers_{};
};

/// Where the counts come from.
enum class origin {
  emulator,     ///< of CUDA: all of them, exact
  kokkos_tools, ///< launches, host waits and copies as Kokkos tells its tools, and times
};

/// Finds out; to be called before Kokkos is initialized, since its tools must be set up then.
origin prepare_counting();

/// All counts up to now.
counts count_now();

std::string_view description(origin which);

} // namespace device_cost
