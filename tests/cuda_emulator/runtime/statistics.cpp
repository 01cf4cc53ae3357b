// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The counts: for programs that ask, and with settings::statistics at the end.

#include "../device/counters.hpp"
#include "../device/modules.hpp"
#include "../device/queues.hpp"
#include "../device/settings.hpp"
#include "../execution/warp.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace cuda_emulator {

namespace {

void print() {
  auto const& c = counters;
  struct line {
    char const* format;
    u64 values[4];
  };
  for (line const& each : std::initializer_list<line>{
           {"%lu launches of %lu blocks with %lu threads\n", {c.launches, c.blocks, c.threads}},
           {"%lu thread instructions, %lu warp instructions\n", {c.thread_instructions, c.warp_instructions}},
           {"%lu bytes read in %lu sectors, %lu bytes written in %lu sectors\n",
            {c.bytes_read, c.sectors_read, c.bytes_written, c.sectors_written}},
           {"%lu waits for streams, %lu for the device, %lu for events, %lu for copies\n",
            {c.stream_waits, c.device_waits, c.event_waits, c.blocking_copies}},
           {"%lu copies to the device with %lu bytes, %lu to the host with %lu bytes\n",
            {c.copies_to_device, c.bytes_to_device, c.copies_to_host, c.bytes_to_host}},
           {"%lu copies on the device with %lu bytes, %lu sets of %lu bytes\n",
            {c.copies_on_device, c.bytes_on_device, c.memsets, c.bytes_set}},
           {"%lu atomic operations, %lu allocations\n", {c.atomics, c.allocations}}}) {
    std::fputs("CUDA emulator: ", stderr);
    std::fprintf(stderr, each.format, each.values[0], each.values[1], each.values[2], each.values[3]);
  }
  std::vector<function const*> costly;
  for (auto const& each : modules()) {
    for (auto const& [name, kernel] : each->functions) {
      costly.push_back(kernel.get());
    }
  }
  std::sort(costly.begin(), costly.end(),
            [](function const* a, function const* b) { return a->instructions > b->instructions; });
  costly.resize(std::min<std::size_t>(costly.size(), settings::given().statistics));
  for (function const* const each : costly) {
    std::fprintf(stderr, "  %8lu launches %14lu thread instructions %10.3f ms  %s\n", each->launches,
                 each->instructions, static_cast<double>(each->nanoseconds) * 1e-6,
                 readable(each->name).substr(0, 400).c_str());
  }
}

[[maybe_unused]] bool const prints = settings::given().statistics != 0 && std::atexit(print) == 0;

} // namespace

} // namespace cuda_emulator

void oktopk_cuda_emulator_read_counts(oktopk_cuda_emulator_counts* counts) {
  cuda_emulator::runtime_lock const lock(cuda_emulator::runtime_mutex());
  *counts = cuda_emulator::counters;
}

void oktopk_cuda_emulator_reset_counts(void) {
  cuda_emulator::runtime_lock const lock(cuda_emulator::runtime_mutex());
  cuda_emulator::counters = {};
}
