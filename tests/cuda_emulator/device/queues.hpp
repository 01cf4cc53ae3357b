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
    std::uint64_t time = 0;
  };
  std::shared_ptr<record> latest = std::make_shared<record>(); // a wait is for the one that was the latest at its call
};

namespace cuda_emulator {

// All functions of the runtime hold it.
std::recursive_mutex& runtime_mutex();
using runtime_lock = std::lock_guard<std::recursive_mutex>;

// The default one for its several names. Ends the program where there is no such stream.
CUstream_st* stream_of(cudaStream_t stream);
CUstream_st* make_stream(bool blocking);
void destroy_stream(CUstream_st* stream); // its work is still done

// Runs the work at once, or with settings::lazy when somebody waits for it.
void enqueue(CUstream_st* stream, std::function<void()> work);
void run_next(CUstream_st* stream);
void finish(CUstream_st* stream);
void finish_all();
void finish(CUevent_st::record& recorded);

} // namespace cuda_emulator
