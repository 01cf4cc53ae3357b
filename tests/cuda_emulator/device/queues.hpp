// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include "../ptx/types.hpp"

#include <cuda_runtime_api.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>

// What cudaStream_t and cudaEvent_t point to.
struct CUstream_st {
  struct task {
    std::uint64_t number = 0; // counts the tasks of all streams
    std::function<void()> run;
  };
  std::deque<task> work; // held back; empty unless settings::lazy
  bool blocking = true;  // waits for the default stream, and that one for it
  bool destroyed = false;
};

struct CUevent_st {
  struct record {
    CUstream_st* stream = nullptr;
    bool done = true;
  };
  std::shared_ptr<record> latest = std::make_shared<record>(); // a wait is for the one that was the latest at its call
};

namespace cuda_emulator {

inline thread_local cudaError_t last_error = cudaSuccess;
inline std::recursive_mutex runtime_mutex;

// A function of the runtime: one runs at a time, and cudaGetLastError() has the error that it gives, where it gives one.
template <typename Body>
cudaError_t in_runtime(Body const& body) {
  std::lock_guard const lock(runtime_mutex);
  cudaError_t error = cudaSuccess;
  if constexpr (std::is_void_v<decltype(body())>) {
    body();
  } else {
    error = body();
  }
  last_error = error == cudaSuccess || error == cudaErrorNotReady ? last_error : error;
  return error;
}

// The default one for its several names. Ends the program where there is no such stream.
CUstream_st* stream_of(cudaStream_t stream);

// Runs the work at once, or with settings::lazy when somebody waits for it.
void enqueue(CUstream_st* stream, std::function<void()> work);
void finish(CUstream_st* stream);
void finish_all();

} // namespace cuda_emulator
