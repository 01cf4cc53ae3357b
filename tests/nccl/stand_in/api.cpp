// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The functions of NCCL, with its rules: device memory, peers in range, groups that end. A call that breaks one says so
// in ncclGetLastError. A message to oneself, which NCCL has within a group, is refused: the library sends none.

#include "nccl/stand_in/communicator.hpp"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <random>
#include <thread>
#include <utility>

namespace {

using nccl_stand_in::operation;

thread_local int group_depth = 0;
thread_local ncclResult_t group_failure = ncclSuccess;
thread_local std::vector<operation> group;
thread_local std::string last_error;

ncclResult_t refuse(ncclResult_t code, std::string text) {
  last_error = std::move(text);
  if (group_depth > 0 && group_failure == ncclSuccess) {
    group_failure = code;
  }
  return code;
}

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
  case ncclInt8:
  case ncclUint8: return 1;
  case ncclInt32:
  case ncclFloat32: return 4;
  case ncclInt64:
  case ncclFloat64: return 8;
  }
  return 0;
}

// What every operation must keep; an empty sentence where it does.
std::string fault_of(void const* data, std::size_t count, ncclDataType_t type, ncclComm_t comm) {
  if (comm == nullptr) {
    return "there is no communicator";
  }
  if (comm->aborted) {
    return "the communicator was aborted";
  }
  if (bytes_of(type) == 0) {
    return "a data type that the stand-in does not know";
  }
  cudaPointerAttributes about{};
  if (count > 0 && (cudaPointerGetAttributes(&about, data) != cudaSuccess ||
                    (about.type != cudaMemoryTypeDevice && about.type != cudaMemoryTypeManaged))) {
    return "the data is not in the memory of the device";
  }
  return {};
}

ncclResult_t start_group() {
  std::vector<operation> const all = std::exchange(group, {});
  for (std::size_t first = 0; first < all.size(); ++first) { // a group a communicator and stream
    auto const same = [&](operation const& each) {
      return each.comm == all[first].comm && each.stream == all[first].stream;
    };
    bool seen = false;
    for (std::size_t i = 0; i < first; ++i) {
      seen = seen || same(all[i]);
    }
    if (!seen) {
      std::vector<operation> together;
      for (operation const& each : all) {
        if (same(each)) {
          together.push_back(each);
        }
      }
      ncclResult_t const code = nccl_stand_in::enqueue_group(all[first].comm, all[first].stream, together);
      if (code != ncclSuccess) {
        return refuse(code, "CUDA has refused what a group needs");
      }
    }
  }
  return ncclSuccess;
}

ncclResult_t add(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream,
                 bool receives) {
  if (std::string const fault = fault_of(data, count, type, comm); !fault.empty()) {
    return refuse(ncclInvalidArgument, (receives ? "ncclRecv: " : "ncclSend: ") + fault);
  }
  if (peer < 0 || peer >= comm->connections.ranks() || peer == comm->connections.rank()) {
    return refuse(ncclInvalidArgument, "there is no peer " + std::to_string(peer));
  }
  group.push_back({comm, stream, data, count * bytes_of(type), peer, receives});
  return group_depth > 0 ? ncclSuccess : start_group();
}

ncclResult_t make(ncclComm_t* made, std::string const& name, int ranks, int rank) {
  try {
    *made = new ncclComm(name, ranks, rank);
  } catch (std::exception const& thrown) {
    return refuse(ncclSystemError, thrown.what());
  }
  return ncclSuccess;
}

} // namespace

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::random_device entropy;
  std::string text = std::to_string(entropy()) + "-" + std::to_string(entropy());
  std::memset(id->internal, 0, sizeof id->internal);
  std::memcpy(id->internal, text.data(), text.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    return refuse(ncclInvalidArgument, "rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  }
  return make(comm, std::string(id.internal), ranks, rank);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  if (color != 0 || key != comm->connections.rank() || config != nullptr) {
    return refuse(ncclInvalidArgument, "the stand-in splits off all ranks in their order and nothing else");
  }
  comm->splits += 1;
  return make(made, comm->connections.name() + "s" + std::to_string(comm->splits), comm->connections.ranks(),
              comm->connections.rank());
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  while (nccl_stand_in::a_rank_has_aborted && !comm->aborted) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  while (comm->under_way > 0) {
    if (cudaDeviceSynchronize() != cudaSuccess) { // the functions end by themselves, once the streams come to them
      return ncclUnhandledCudaError;
    }
  }
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->aborted = true;
  return ncclCommDestroy(comm);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = static_cast<ncclResult_t>(comm->failure.load());
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  *count = comm->connections.ranks();
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  *rank = comm->connections.rank();
  return ncclSuccess;
}

char const* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSuccess: return "no error";
  case ncclUnhandledCudaError: return "unhandled cuda error";
  case ncclSystemError: return "unhandled system error";
  case ncclInternalError: return "internal error";
  case ncclInvalidArgument: return "invalid argument";
  case ncclInvalidUsage: return "invalid usage";
  case ncclRemoteError: return "remote process exited or there was a network error";
  case ncclInProgress: return "NCCL operation in progress";
  }
  return "unknown result code";
}

char const* ncclGetLastError(ncclComm_t comm) {
  if (comm != nullptr && comm->failure != ncclSuccess) {
    std::lock_guard const lock(comm->mutex);
    last_error = comm->text;
  }
  return last_error.c_str();
}

ncclResult_t ncclGroupStart(void) {
  group_depth += 1;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
  if (group_depth == 0) {
    return refuse(ncclInvalidUsage, "a group ends that has not begun");
  }
  group_depth -= 1;
  if (group_depth > 0) {
    return ncclSuccess;
  }
  if (ncclResult_t const failed = std::exchange(group_failure, ncclSuccess); failed != ncclSuccess) {
    group.clear();
    return failed;
  }
  return start_group();
}

ncclResult_t ncclSend(void const* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(const_cast<void*>(from), count, type, peer, comm, stream, false);
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return add(to, count, type, peer, comm, stream, true);
}

ncclResult_t ncclAllReduce(void const* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  for (void const* const each : {from, static_cast<void const*>(to)}) {
    if (std::string const fault = fault_of(each, count, type, comm); !fault.empty()) {
      return refuse(ncclInvalidArgument, "ncclAllReduce: " + fault);
    }
  }
  if (bytes_of(type) < 4 || (op != ncclSum && op != ncclMin && op != ncclMax)) {
    return refuse(ncclInvalidArgument, "ncclAllReduce: an operation that the stand-in does not have");
  }
  return nccl_stand_in::enqueue_allreduce(comm, stream, from, to, count, type, op);
}

} // extern "C"
