// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/cancel_on_unwind.hpp>
#include <oktopk/comm/concept.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/nccl/call.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace oktopk::detail {

/// A communicator of NCCL that is aborted unless somebody takes it.
struct nccl_in_the_making {
  nccl_in_the_making() = default;
  nccl_in_the_making(nccl_in_the_making const&) = delete;
  nccl_in_the_making& operator=(nccl_in_the_making const&) = delete;
  ~nccl_in_the_making() {
    if (comm != nullptr) {
      static_cast<void>(ncclCommAbort(comm));
    }
  }

  ncclComm_t comm = nullptr;
};

/// A communicator of NCCL for the ranks of `control` in the same order, on the device that is current on each rank.
/// Collective. P-1 messages of 33 words from rank 0, then P-1 of one word from each rank. An `error` on all ranks,
/// with the lowest rank that failed, where rank 0 gets no identifier or NCCL refuses some rank; while NCCL itself
/// connects, a rank that it refuses may leave the others waiting.
template <control_communicator Control>
ncclComm_t connect_nccl(Control& control) {
  struct invitation {
    std::int32_t code = ncclSuccess;
    ncclUniqueId id{};
  };
  int const ranks = control.size();
  int const rank = control.rank();
  invitation invited;
  std::int32_t mine = ncclSuccess;
  std::vector<std::int32_t> codes(static_cast<std::size_t>(ranks), ncclSuccess);
  std::vector<typename Control::request> requests;
  requests.reserve(2 * static_cast<std::size_t>(ranks));
  nccl_in_the_making made;
  cancel_on_unwind const guard(control, requests); // after what its messages use

  if (rank == 0) {
    invited.code = ncclGetUniqueId(&invited.id);
    for (int peer = 1; peer < ranks; ++peer) {
      requests.push_back(control.isend(std::as_bytes(std::span(&invited, 1)), peer, phase::control));
    }
  } else {
    requests.push_back(control.irecv(std::as_writable_bytes(std::span(&invited, 1)), 0, phase::control));
  }
  control.wait_all(std::span(requests));
  if (invited.code != ncclSuccess) {
    throw error(fault::communication,
                "rank 0: " + nccl_text(static_cast<ncclResult_t>(invited.code), "ncclGetUniqueId"));
  }

  mine = ncclCommInitRank(&made.comm, ranks, invited.id, rank);
  requests.clear();
  for (int peer = 0; peer < ranks; ++peer) {
    auto& theirs = codes[static_cast<std::size_t>(peer)];
    if (peer == rank) {
      theirs = mine;
    } else {
      requests.push_back(control.irecv(std::as_writable_bytes(std::span(&theirs, 1)), peer, phase::control));
      requests.push_back(control.isend(std::as_bytes(std::span(&mine, 1)), peer, phase::control));
    }
  }
  control.wait_all(std::span(requests));
  for (std::size_t each = 0; each < codes.size(); ++each) {
    if (codes[each] != ncclSuccess) {
      throw error(fault::communication, "rank " + std::to_string(each) + ": " +
                                            nccl_text(static_cast<ncclResult_t>(codes[each]), "ncclCommInitRank"));
    }
  }
  return std::exchange(made.comm, nullptr);
}

} // namespace oktopk::detail
