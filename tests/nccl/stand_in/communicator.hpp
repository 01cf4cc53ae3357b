// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "nccl/stand_in/mesh.hpp"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

/// A communicator of the stand-in: what its streams have not done yet, and what went wrong.
struct ncclComm {
  ncclComm(std::string const& name, int ranks, int rank) : connections(name, ranks, rank) {}

  /// Notes the first failure; what is enqueued afterwards does nothing.
  void fail(ncclResult_t code, std::string const& text);

  nccl_stand_in::mesh connections;
  std::atomic<int> failure{ncclSuccess};
  std::atomic<bool> aborted{false};
  std::atomic<int> under_way{0}; // groups that have been enqueued and not ended
  int splits = 0;
  std::mutex mutex; // of the text
  std::string text;
};

namespace nccl_stand_in {

/// While it is set, ncclCommDestroy waits, as NCCL 2.31.2 does for a rank of the node that has aborted.
inline std::atomic<bool> a_rank_has_aborted{false};

/// One ncclSend or ncclRecv.
struct operation {
  ncclComm_t comm;
  cudaStream_t stream;
  void* data; // in the memory of the device
  std::size_t bytes;
  int peer;
  bool receives;
};

/// Enqueues a group on a stream: copies to the host, the exchange, copies to the device.
ncclResult_t enqueue_group(ncclComm_t comm, cudaStream_t stream, std::vector<operation> const& group);

/// Enqueues a reduction: every rank gets all vectors and reduces them in the order of ranks.
ncclResult_t enqueue_allreduce(ncclComm_t comm, cudaStream_t stream, void const* from, void* to, std::size_t count,
                               ncclDataType_t type, ncclRedOp_t op);

} // namespace nccl_stand_in
