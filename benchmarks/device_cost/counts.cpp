// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "counts.hpp"

#include "../../tests/cuda_emulator/counts.hpp"

#include <Kokkos_Core.hpp>

#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <limits>

namespace device_cost {
namespace {

using emulator_reader = decltype(&oktopk_cuda_emulator_read_counts);

// Of this program, which is one thread.
emulator_reader emulator = nullptr;
counts counted_by_kokkos;

void note_kernel(char const*, std::uint32_t, std::uint64_t*) {
  counted_by_kokkos[quantity::launches] += 1;
}

void note_fence(char const*, std::uint32_t, std::uint64_t*) {
  counted_by_kokkos[quantity::host_waits] += 1;
}

void note_copy(Kokkos::Profiling::SpaceHandle, char const*, void const*, Kokkos::Profiling::SpaceHandle, char const*,
               void const*, std::uint64_t bytes) {
  counted_by_kokkos[quantity::copies] += 1;
  counted_by_kokkos[quantity::bytes_copied] += static_cast<double>(bytes);
}

void note_allocation(Kokkos::Profiling::SpaceHandle, char const*, void const*, std::uint64_t) {
  counted_by_kokkos[quantity::allocations] += 1;
}

counts from_emulator(oktopk_cuda_emulator_counts const& counted) {
  auto const number = [](std::uint64_t count) { return static_cast<double>(count); };
  counts now;
  now[quantity::launches] = number(counted.launches);
  now[quantity::blocks] = number(counted.blocks);
  now[quantity::threads] = number(counted.threads);
  now[quantity::instructions] = number(counted.thread_instructions);
  now[quantity::bytes_read] = number(counted.bytes_read);
  now[quantity::bytes_written] = number(counted.bytes_written);
  now[quantity::sectors_read] = number(counted.sectors_read);
  now[quantity::sectors_written] = number(counted.sectors_written);
  now[quantity::host_waits] =
      number(counted.stream_waits + counted.device_waits + counted.event_waits + counted.blocking_copies);
  now[quantity::copies] = number(counted.copies_to_device + counted.copies_to_host + counted.copies_on_device);
  now[quantity::bytes_copied] = number(counted.bytes_to_device + counted.bytes_to_host + counted.bytes_on_device);
  now[quantity::allocations] = number(counted.allocations);
  return now;
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
  emulator = reinterpret_cast<emulator_reader>(dlsym(RTLD_DEFAULT, "oktopk_cuda_emulator_read_counts"));
  if (emulator != nullptr) {
    return origin::emulator;
  }
  for (quantity const each : {quantity::blocks, quantity::threads, quantity::instructions, quantity::bytes_read,
                              quantity::bytes_written, quantity::sectors_read, quantity::sectors_written}) {
    counted_by_kokkos[each] = std::numeric_limits<double>::quiet_NaN(); // nobody tells it
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
  counts now = counted_by_kokkos;
  if (emulator != nullptr) {
    oktopk_cuda_emulator_counts counted{};
    emulator(&counted);
    now = from_emulator(counted);
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
