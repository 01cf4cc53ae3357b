// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Streams and events.

#include "../device/counters.hpp"
#include "../device/errors.hpp"
#include "../device/queues.hpp"
#include "../device/settings.hpp"

#include <set>

namespace cuda_emulator {

namespace {

CUstream_st default_stream;
std::set<CUstream_st*> other_streams; // never freed, so that an address names no other one

void run_next(CUstream_st* stream);

// Its tasks with lower numbers than this.
void drain(CUstream_st* stream, std::uint64_t before = ~std::uint64_t(0)) {
  while (!stream->work.empty() && stream->work.front().number < before) {
    run_next(stream);
  }
}

// What the default stream gets comes after all before it on blocking streams, and the other way round.
void run_next(CUstream_st* stream) {
  auto const next = std::move(stream->work.front());
  stream->work.pop_front();
  if (stream == &default_stream) {
    for (CUstream_st* const each : other_streams) {
      if (each->blocking) {
        drain(each, next.number);
      }
    }
  } else if (stream->blocking) {
    drain(&default_stream, next.number);
  }
  next.run();
}

void finish(CUevent_st::record& recorded) {
  while (!recorded.done && !recorded.stream->work.empty()) {
    run_next(recorded.stream);
  }
}

} // namespace

CUstream_st* stream_of(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) {
    return &default_stream;
  }
  if (other_streams.count(stream) == 0 || stream->destroyed) {
    stop("%p is no stream, or was destroyed", static_cast<void*>(stream));
  }
  return stream;
}

void enqueue(CUstream_st* stream, std::function<void()> work) {
  static std::uint64_t number = 0;
  if (settings::lazy) {
    stream->work.push_back({++number, std::move(work)});
  } else {
    work();
  }
}

void finish(CUstream_st* stream) {
  drain(stream);
}

void finish_all() {
  drain(&default_stream);
  for (CUstream_st* const each : other_streams) {
    drain(each);
  }
}

} // namespace cuda_emulator

using namespace cuda_emulator;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return in_runtime([&] {
    *stream = new CUstream_st();
    (*stream)->blocking = (flags & cudaStreamNonBlocking) == 0;
    other_streams.insert(*stream);
  });
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, 0);
}

// Its work is still done.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return in_runtime([&] {
    if (stream_of(stream) == &default_stream) {
      stop("the default stream cannot be destroyed");
    }
    stream->destroyed = true;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return in_runtime([&] {
    ++counters.host_waits;
    finish(stream_of(stream));
  });
}

// Each question lets some of the work be done.
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return in_runtime([&] {
    if (stream_of(stream)->work.empty()) {
      return cudaSuccess;
    }
    run_next(stream_of(stream));
    return cudaErrorNotReady;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return in_runtime([&] { enqueue(stream_of(stream), [recorded = event->latest] { finish(*recorded); }); });
}

cudaError_t cudaDeviceSynchronize() {
  return in_runtime([] {
    ++counters.host_waits;
    finish_all();
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st();
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return in_runtime([&] { delete event; });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return in_runtime([&] {
    event->latest = std::make_shared<CUevent_st::record>(CUevent_st::record{stream_of(stream), false});
    enqueue(stream_of(stream), [recorded = event->latest] { recorded->done = true; });
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return in_runtime([&] {
    ++counters.host_waits;
    finish(*event->latest);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return in_runtime([&] {
    if (event->latest->done) {
      return cudaSuccess;
    }
    run_next(event->latest->stream);
    return cudaErrorNotReady;
  });
}
