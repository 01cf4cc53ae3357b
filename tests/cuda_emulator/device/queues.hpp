// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include "../ptx/types.hpp"

#include <cuda_runtime_api.h>

#include <deque>
#include <functional>
#include <mutex>

// What cudaStream_t and cudaEvent_t point to.
struct CUstream_st {
  std::deque<std::function<void()>> work; // held back; empty unless settings::lazy
  bool blocking = true;                   // waits for the default stream, and that one for it
};

struct CUevent_st {
  bool done = true;
  CUstream_st* stream = nullptr; // that it was recorded on
  std::uint64_t time = 0;
};

namespace cuda_emulator {

// All functions of the runtime hold it.
std::recursive_mutex& runtime_mutex();
using runtime_lock = std::lock_guard<std::recursive_mutex>;

CUstream_st* stream_of(cudaStream_t stream); // the default one for its several names
CUstream_st* make_stream(bool blocking);
void destroy_stream(CUstream_st* stream);

// Runs the work at once, or with settings::lazy when somebody waits for it.
void enqueue(CUstream_st* stream, std::function<void()> work);
void run_next(CUstream_st* stream);
void finish(CUstream_st* stream);
void finish_all();
void finish(CUevent_st* event);

} // namespace cuda_emulator
