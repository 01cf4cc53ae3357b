// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "queues.hpp"

#include "settings.hpp"

#include <set>

namespace cuda_emulator {

namespace {

CUstream_st* default_stream() {
  static CUstream_st& stream = *new CUstream_st();
  return &stream;
}

std::set<CUstream_st*>& other_streams() {
  static auto& streams = *new std::set<CUstream_st*>();
  return streams;
}

void drain(CUstream_st* stream) {
  while (!stream->work.empty()) {
    run_next(stream);
  }
}

} // namespace

std::recursive_mutex& runtime_mutex() {
  static auto& mutex = *new std::recursive_mutex();
  return mutex;
}

CUstream_st* stream_of(cudaStream_t stream) {
  bool const is_default = stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
  return is_default ? default_stream() : stream;
}

CUstream_st* make_stream(bool blocking) {
  auto* const made = new CUstream_st();
  made->blocking = blocking;
  other_streams().insert(made);
  return made;
}

void destroy_stream(CUstream_st* stream) {
  drain(stream);
  other_streams().erase(stream);
  delete stream;
}

void run_next(CUstream_st* stream) {
  auto const work = std::move(stream->work.front());
  stream->work.pop_front();
  work();
}

// What the default stream gets comes after all before it on blocking streams, and the other way round.
void enqueue(CUstream_st* stream, std::function<void()> work) {
  if (!settings::given().lazy) {
    work();
    return;
  }
  if (stream != default_stream() && stream->blocking) {
    drain(default_stream());
  } else if (stream == default_stream()) {
    for (CUstream_st* const each : other_streams()) {
      if (each->blocking) {
        drain(each);
      }
    }
  }
  stream->work.push_back(std::move(work));
}

void finish(CUstream_st* stream) {
  drain(stream);
}

void finish_all() {
  drain(default_stream());
  for (CUstream_st* const each : other_streams()) {
    drain(each);
  }
}

void finish(CUevent_st* event) {
  while (!event->done && !event->stream->work.empty()) {
    run_next(event->stream);
  }
}

} // namespace cuda_emulator
