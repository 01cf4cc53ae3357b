// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "queues.hpp"

#include "errors.hpp"
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

// Its tasks with lower numbers than this.
void drain(CUstream_st* stream, std::uint64_t before = ~std::uint64_t(0)) {
  while (!stream->work.empty() && stream->work.front().number < before) {
    run_next(stream);
  }
}

} // namespace

std::recursive_mutex& runtime_mutex() {
  static auto& mutex = *new std::recursive_mutex();
  return mutex;
}

CUstream_st* stream_of(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) {
    return default_stream();
  }
  if (other_streams().count(stream) == 0 || stream->destroyed) {
    stop("%p is no stream, or was destroyed", static_cast<void*>(stream));
  }
  return stream;
}

CUstream_st* make_stream(bool blocking) {
  auto* const made = new CUstream_st();
  made->blocking = blocking;
  other_streams().insert(made);
  return made;
}

// It is never freed, so that its address names no other one.
void destroy_stream(CUstream_st* stream) {
  if (stream == default_stream()) {
    stop("the default stream cannot be destroyed");
  }
  stream->destroyed = true;
}

// What the default stream gets comes after all before it on blocking streams, and the other way round.
void run_next(CUstream_st* stream) {
  auto const next = std::move(stream->work.front());
  stream->work.pop_front();
  if (stream == default_stream()) {
    for (CUstream_st* const each : other_streams()) {
      if (each->blocking) {
        drain(each, next.number);
      }
    }
  } else if (stream->blocking) {
    drain(default_stream(), next.number);
  }
  next.run();
}

void enqueue(CUstream_st* stream, std::function<void()> work) {
  static std::uint64_t number = 0;
  if (settings::given().lazy) {
    stream->work.push_back({++number, std::move(work)});
  } else {
    work();
  }
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

void finish(CUevent_st::record& recorded) {
  while (!recorded.done && !recorded.stream->work.empty()) {
    run_next(recorded.stream);
  }
}

} // namespace cuda_emulator
