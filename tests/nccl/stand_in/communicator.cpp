// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "nccl/stand_in/communicator.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

void ncclComm::fail(ncclResult_t code, std::string const& what) {
  int expected = ncclSuccess;
  std::lock_guard const lock(mutex);
  if (failure.compare_exchange_strong(expected, code)) {
    text = "rank " + std::to_string(connections.rank()) + ": " + what;
  }
}

namespace nccl_stand_in {

namespace {

/// Page-locked memory, so that copies take their place on the stream and do not wait for it.
class host_buffer {
public:
  explicit host_buffer(std::size_t bytes) : capacity_(bytes), bytes_(bytes) {
    if (cudaMallocHost(&data_, std::max<std::size_t>(bytes, 1)) != cudaSuccess) {
      data_ = nullptr;
    }
  }
  host_buffer(host_buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), capacity_(other.capacity_), bytes_(other.bytes_) {}
  host_buffer& operator=(host_buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~host_buffer() {
    if (data_ != nullptr) {
      static_cast<void>(cudaFreeHost(data_));
    }
  }

  bool made() const { return data_ != nullptr; }
  bool fits(std::size_t bytes) const { return bytes <= capacity_ && capacity_ <= 2 * bytes + 4096; }
  void use(std::size_t bytes) { bytes_ = bytes; }
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(data_), bytes_}; }

private:
  void* data_ = nullptr;
  std::size_t capacity_;
  std::size_t bytes_; // used
};

/// What a stream still needs; given back by a later call, since a function on a stream may not call CUDA.
struct job {
  ncclComm_t comm = nullptr;
  std::vector<host_buffer> buffers;
  std::vector<transfer> transfers;
  void (*reduce)(job&) = nullptr;
  ncclRedOp_t op = ncclSum;
  std::atomic<bool> exchanged{false};
  cudaEvent_t ended = nullptr;
};

std::mutex jobs_mutex;
std::vector<std::unique_ptr<job>> jobs;
std::vector<host_buffer> unused; // kept, for to free one is to wait for all streams

void end_jobs() {
  std::lock_guard const lock(jobs_mutex);
  std::erase_if(jobs, [](auto const& each) {
    if (!each->exchanged || each->ended == nullptr || cudaEventQuery(each->ended) != cudaSuccess) {
      return false;
    }
    static_cast<void>(cudaEventDestroy(each->ended));
    std::ranges::move(each->buffers, std::back_inserter(unused));
    return true;
  });
}

job& new_job(ncclComm_t comm) {
  end_jobs();
  std::lock_guard const lock(jobs_mutex);
  jobs.push_back(std::make_unique<job>());
  jobs.back()->comm = comm;
  return *jobs.back();
}

void add_buffer(job& what, std::size_t bytes) {
  std::lock_guard const lock(jobs_mutex);
  auto const found = std::ranges::find_if(unused, [&](host_buffer const& each) { return each.fits(bytes); });
  if (found == unused.end()) {
    what.buffers.emplace_back(bytes);
    return;
  }
  what.buffers.push_back(std::move(*found));
  what.buffers.back().use(bytes);
  unused.erase(found);
}

void exchange_job(void* argument) {
  job& what = *static_cast<job*>(argument);
  ncclComm& comm = *what.comm;
  if (comm.failure == ncclSuccess && !comm.aborted) {
    std::string const fault = comm.connections.exchange(what.transfers, comm.aborted);
    if (!fault.empty()) {
      comm.fail(ncclRemoteError, fault);
    } else if (what.reduce != nullptr) {
      what.reduce(what);
    }
  }
  comm.under_way -= 1;
  what.exchanged = true;
}

/// Enqueues the exchange and, before it, the copies of `copied` to the host; `back` are copied after it.
struct device_copy {
  void* device;
  std::span<std::byte> host;
};

ncclResult_t enqueue(job& what, cudaStream_t stream, std::vector<device_copy> const& copied,
                     std::vector<device_copy> const& back) {
  bool done = true;
  for (device_copy const& each : copied) {
    done = done && cudaMemcpyAsync(each.host.data(), each.device, each.host.size(), cudaMemcpyDeviceToHost, stream) ==
                       cudaSuccess;
  }
  what.comm->under_way += 1;
  if (!done || cudaLaunchHostFunc(stream, exchange_job, &what) != cudaSuccess) {
    what.comm->under_way -= 1;
    return ncclUnhandledCudaError;
  }
  for (device_copy const& each : back) {
    done = done && cudaMemcpyAsync(each.device, each.host.data(), each.host.size(), cudaMemcpyHostToDevice, stream) ==
                       cudaSuccess;
  }
  cudaEvent_t ended = nullptr;
  done = done && cudaEventCreateWithFlags(&ended, cudaEventDisableTiming) == cudaSuccess &&
         cudaEventRecord(ended, stream) == cudaSuccess;
  std::lock_guard const lock(jobs_mutex);
  what.ended = ended;
  return done ? ncclSuccess : ncclUnhandledCudaError;
}

template <class T>
void reduce_in_order(job& what) {
  auto const ranks = static_cast<std::size_t>(what.comm->connections.ranks());
  auto const values = [&](std::size_t rank) {
    std::span<std::byte> const bytes = what.buffers[rank].bytes();
    return std::span(reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T));
  };
  auto const sum = values(ranks);
  std::ranges::copy(values(0), sum.begin());
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    auto const theirs = values(rank);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] = what.op == ncclSum   ? sum[i] + theirs[i]
               : what.op == ncclMin ? std::min(sum[i], theirs[i])
                                    : std::max(sum[i], theirs[i]);
    }
  }
}

bool made_all(job const& what) {
  return std::ranges::all_of(what.buffers, [](host_buffer const& each) { return each.made(); });
}

} // namespace

ncclResult_t enqueue_group(ncclComm_t comm, cudaStream_t stream, std::vector<operation> const& group) {
  job& what = new_job(comm);
  std::vector<device_copy> copied;
  std::vector<device_copy> back;
  for (operation const& each : group) {
    add_buffer(what, each.bytes);
    std::span<std::byte> const host = what.buffers.back().bytes();
    what.transfers.push_back({host, each.peer, each.receives});
    (each.receives ? back : copied).push_back({each.data, host});
  }
  return made_all(what) ? enqueue(what, stream, copied, back) : ncclUnhandledCudaError;
}

ncclResult_t enqueue_allreduce(ncclComm_t comm, cudaStream_t stream, void const* from, void* to, std::size_t count,
                               ncclDataType_t type, ncclRedOp_t op) {
  job& what = new_job(comm);
  std::size_t const bytes = count * (type == ncclFloat32 || type == ncclInt32 ? 4 : 8);
  int const ranks = comm->connections.ranks();
  for (int i = 0; i <= ranks; ++i) { // one a rank, and the result
    add_buffer(what, bytes);
  }
  if (!made_all(what)) {
    return ncclUnhandledCudaError;
  }
  int const rank = comm->connections.rank();
  std::span<std::byte> const own = what.buffers[static_cast<std::size_t>(rank)].bytes();
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer != rank) {
      what.transfers.push_back({own, peer, false});
      what.transfers.push_back({what.buffers[static_cast<std::size_t>(peer)].bytes(), peer, true});
    }
  }
  what.reduce = type == ncclFloat32 ? &reduce_in_order<float>
                : type == ncclInt32 ? &reduce_in_order<std::int32_t>
                : type == ncclInt64 ? &reduce_in_order<std::int64_t>
                                    : &reduce_in_order<double>;
  what.op = op;
  return enqueue(what, stream, {{const_cast<void*>(from), own}}, {{to, what.buffers.back().bytes()}});
}

} // namespace nccl_stand_in
