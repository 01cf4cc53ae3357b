// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "counts.hpp"

#include <Kokkos_Core.hpp>

#include <dlfcn.h>

#include <chrono>
#include <cstdint>

namespace device_cost {
namespace {

using emulator_counts = int (*)(unsigned long long*, int);

// Of this program, which is one thread.
emulator_counts emulator = nullptr;
counts told_by_kokkos;

void note_kernel(char const*, std::uint32_t, std::uint64_t*) {
  told_by_kokkos[quantity::launches] += 1;
}

void note_fence(char const*, std::uint32_t, std::uint64_t*) {
  told_by_kokkos[quantity::host_waits] += 1;
}

void note_copy(Kokkos::Profiling::SpaceHandle, char const*, void const*, Kokkos::Profiling::SpaceHandle, char const*,
               void const*, std::uint64_t) {
  told_by_kokkos[quantity::copies] += 1;
}

void note_allocation(Kokkos::Profiling::SpaceHandle, char const*, void const*, std::uint64_t) {
  told_by_kokkos[quantity::allocations] += 1;
}

} // namespace

counts& counts::operator+=(counts const& other) {
  for (std::size_t i = 0; i < quantities; ++i) {
    numbers_[i] += other.numbers_[i];
  }
  return *this;
}

counts counts::operator-(counts const& other) const {
  counts result = *this;
  for (std::size_t i = 0; i < quantities; ++i) {
    result.numbers_[i] -= other.numbers_[i];
  }
  return result;
}

counts counts::operator/(double divisor) const {
  counts result = *this;
  for (double& number : result.numbers_) {
    number /= divisor;
  }
  return result;
}

origin prepare_counting() {
#if KOKKOS_VERSION >= 40000
  // Else Kokkos waits for everything whenever a region begins or ends.
  Kokkos::Tools::Experimental::set_request_tool_settings_callback(
      [](std::uint32_t, Kokkos_Tools_ToolSettings* settings) { settings->requires_global_fencing = false; });
#endif
  emulator = reinterpret_cast<emulator_counts>(dlsym(RTLD_DEFAULT, "oktopk_cuda_emulator_counts"));
  if (emulator != nullptr) {
    return origin::emulator;
  }
  using namespace Kokkos::Tools::Experimental;
  set_begin_parallel_for_callback(note_kernel);
  set_begin_parallel_reduce_callback(note_kernel);
  set_begin_parallel_scan_callback(note_kernel);
  set_begin_deep_copy_callback(note_copy);
  set_begin_fence_callback(note_fence);
  set_allocate_data_callback(note_allocation);
  return origin::kokkos_tools;
}

counts count_now() {
  counts now = told_by_kokkos;
  if (emulator != nullptr) {
    unsigned long long numbers[quantities] = {};
    constexpr int room = static_cast<int>(quantities) - 1;
    int const there = emulator(numbers, room);
    for (int i = 0; i < there && i < room; ++i) {
      now[static_cast<quantity>(i)] = static_cast<double>(numbers[i]);
    }
  }
  now[quantity::seconds] = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  return now;
}

std::string_view description(origin which) {
  return which == origin::emulator
             ? "counted by the emulator of CUDA"
             : "as Kokkos tells its tools, which know no bytes and no instructions; a scan is one launch there";
}

} // namespace device_cost
