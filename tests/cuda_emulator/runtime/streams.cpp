// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Streams and events.

#include "../device/counters.hpp"
#include "../device/queues.hpp"

using namespace cuda_emulator;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  runtime_lock const lock(runtime_mutex());
  *stream = make_stream((flags & cudaStreamNonBlocking) == 0);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  runtime_lock const lock(runtime_mutex());
  destroy_stream(stream_of(stream));
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  runtime_lock const lock(runtime_mutex());
  ++counters.stream_waits;
  finish(stream_of(stream));
  return cudaSuccess;
}

// Each question lets some of the work be done.
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  runtime_lock const lock(runtime_mutex());
  if (stream_of(stream)->work.empty()) {
    return cudaSuccess;
  }
  run_next(stream_of(stream));
  return cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  runtime_lock const lock(runtime_mutex());
  enqueue(stream_of(stream), [recorded = event->latest] { finish(*recorded); });
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  runtime_lock const lock(runtime_mutex());
  ++counters.device_waits;
  finish_all();
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st();
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  runtime_lock const lock(runtime_mutex());
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  runtime_lock const lock(runtime_mutex());
  CUstream_st* const queue = stream_of(stream);
  event->latest = std::make_shared<CUevent_st::record>(CUevent_st::record{queue, false, 0});
  enqueue(queue, [recorded = event->latest] {
    recorded->done = true;
    recorded->time = counters.thread_instructions;
  });
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  runtime_lock const lock(runtime_mutex());
  ++counters.event_waits;
  finish(*event->latest);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  runtime_lock const lock(runtime_mutex());
  if (!event->latest->done) {
    run_next(event->latest->stream);
    return cudaErrorNotReady;
  }
  return cudaSuccess;
}

// There is no time: a millisecond is a million thread instructions.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  runtime_lock const lock(runtime_mutex());
  *milliseconds = static_cast<float>(end->latest->time - begin->latest->time) * 1e-6F;
  return cudaSuccess;
}
