// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>

#if __has_include(<nccl.h>)
#include <nccl.h>
#else
#include <rccl/rccl.h> // the same functions on AMD's devices
#endif

#include <string>

namespace oktopk::detail {

/// The text of a result of NCCL, after the name of the call, with the last error that NCCL noted.
inline std::string nccl_text(ncclResult_t code, std::string const& call, ncclComm_t comm = nullptr) {
  char const* const noted = ncclGetLastError(comm);
  std::string text = call + ": " + ncclGetErrorString(code);
  if (noted != nullptr && *noted != '\0') {
    text += std::string(" (") + noted + ")";
  }
  return text;
}

/// Throws what a call of NCCL reports, with the name of the call.
inline void check_nccl(ncclResult_t code, char const* call) {
  if (code != ncclSuccess) {
    throw error(fault::communication, nccl_text(code, call));
  }
}

/// Operations that NCCL starts together: sends and receives of a group do not wait for each other.
class nccl_group {
public:
  nccl_group() { check_nccl(ncclGroupStart(), "ncclGroupStart"); }
  nccl_group(nccl_group const&) = delete;
  nccl_group& operator=(nccl_group const&) = delete;

  /// After an exception NCCL must still be told that the group is over; the communicator is aborted next.
  ~nccl_group() {
    if (open_) {
      static_cast<void>(ncclGroupEnd());
    }
  }

  void start() {
    open_ = false;
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
  }

private:
  bool open_ = true;
};

} // namespace oktopk::detail
