// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The MPI adapter; the only header that includes <mpi.h>.

#include <oktopk/comm/concept.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/detail/kokkos_ext/memory.hpp>

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h> // Open MPI says there what of its extensions it has
#endif

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace oktopk {

namespace detail {

inline void check_mpi(int code, char const* call) {
  if (code != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw error(fault::communication, std::string(call) + ": " + std::string(text, static_cast<std::size_t>(length)));
  }
}

/// MPI counts are ints: a message that does not fit is an error, never a wrapped number.
inline int to_mpi_count(std::size_t count) {
  if (count > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw error(fault::communication, "a message of " + std::to_string(count) + " bytes exceeds what MPI can count");
  }
  return static_cast<int>(count);
}

/// Whether this MPI library takes pointers to memory of such devices. Asked when the program runs, for a library that
/// was built for a device may run without; one that cannot be asked is taken to say no. MPI must be initialised.
inline bool mpi_takes_memory_of([[maybe_unused]] device_family family) {
#if defined(MPIX_GPU_SUPPORT_CUDA)
  if (int yes = 0; family == device_family::cuda) {
    return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &yes) == MPI_SUCCESS && yes != 0;
  }
#elif defined(MPIX_CUDA_AWARE_SUPPORT)
  if (family == device_family::cuda) {
    return MPIX_Query_cuda_support() == 1;
  }
#endif
#if defined(MPIX_GPU_SUPPORT_HIP)
  if (int yes = 0; family == device_family::hip) {
    return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_HIP, &yes) == MPI_SUCCESS && yes != 0;
  }
#elif defined(MPIX_ROCM_AWARE_SUPPORT)
  if (family == device_family::hip) {
    return MPIX_Query_rocm_support() == 1;
  }
#endif
  return false;
}

} // namespace detail

/// Ranks of an MPI communicator.
///
/// Owns a duplicate of the user's, so that the library's messages never meet the user's; errors on the duplicate are
/// returned and checked, not fatal. (MPICH may report a failed message through MPI_COMM_WORLD's handler instead, which
/// only the program may change.) Copies share the duplicate, and the last one frees it; nothing is freed after
/// MPI_Finalize. The tag of a message is its phase. Calls are made from whatever thread calls, one at a time. Messages
/// lie in host memory, and in the memory of a GPU where the MPI library says that it takes pointers to it.
class mpi_communicator {
public:
  class request {
  public:
    request() = default;
    bool active() const { return handle_ != MPI_REQUEST_NULL; }
    bool receives() const { return receives_; }
    phase message_phase() const { return use_; }
    std::size_t bytes() const { return bytes_; }

  private:
    friend mpi_communicator;
    request(bool receives, phase use) : receives_(receives), use_(use) {}

    MPI_Request handle_ = MPI_REQUEST_NULL;
    bool receives_ = false;
    phase use_ = phase::control;
    std::size_t bytes_ = 0;
  };

  /// Collective over `comm`.
  static mpi_communicator duplicate(MPI_Comm comm) { return mpi_communicator(comm); }

  int rank() const { return shared_->rank; }
  int size() const { return shared_->size; }

  /// The duplicate, for calls beside the library's; it must not be freed.
  MPI_Comm get() const { return shared_->comm; }

  request isend(std::span<std::byte const> out, int peer, phase use) {
    request started(false, use);
    detail::check_mpi(MPI_Isend(out.data(), detail::to_mpi_count(out.size()), MPI_BYTE, peer, static_cast<int>(use),
                                shared_->comm, &started.handle_),
                      "MPI_Isend");
    return started;
  }

  request irecv(std::span<std::byte> in, int peer, phase use) {
    request started(true, use);
    // More room than MPI can count is no harm: no message can fill it.
    std::size_t const room = std::min(in.size(), static_cast<std::size_t>(std::numeric_limits<int>::max()));
    detail::check_mpi(MPI_Irecv(in.data(), static_cast<int>(room), MPI_BYTE, peer, static_cast<int>(use), shared_->comm,
                                &started.handle_),
                      "MPI_Irecv");
    return started;
  }

  std::size_t wait_any(std::span<request> requests) {
    std::vector<MPI_Request>& handles = gather_handles(requests);
    int which = MPI_UNDEFINED;
    MPI_Status status;
    int const code = MPI_Waitany(static_cast<int>(handles.size()), handles.data(), &which, &status);
    if (code != MPI_SUCCESS && which >= 0 && static_cast<std::size_t>(which) < requests.size()) {
      drop(requests[static_cast<std::size_t>(which)]);
    }
    detail::check_mpi(code, "MPI_Waitany");
    if (which == MPI_UNDEFINED) {
      return requests.size();
    }
    complete(requests[static_cast<std::size_t>(which)], status);
    return static_cast<std::size_t>(which);
  }

  void wait_all(std::span<request> requests) {
    // One by one: an error of MPI_Waitall belongs to no communicator, and MPI may then call a handler that ends the
    // job.
    int first_error = MPI_SUCCESS;
    for (request& each : requests) {
      if (each.active()) {
        MPI_Status status;
        int const code = MPI_Wait(&each.handle_, &status);
        code == MPI_SUCCESS ? complete(each, status) : drop(each);
        first_error = first_error == MPI_SUCCESS ? code : first_error;
      }
    }
    detail::check_mpi(first_error, "MPI_Wait");
  }

  template <class T>
    requires std::is_same_v<T, float> || std::is_same_v<T, double>
  void allreduce(std::span<T> data, reduction op, phase) {
    MPI_Datatype const type = std::is_same_v<T, float> ? MPI_FLOAT : MPI_DOUBLE;
    MPI_Op const mpi_op = op == reduction::sum ? MPI_SUM : op == reduction::min ? MPI_MIN : MPI_MAX;
    while (!data.empty()) {
      std::size_t const part = std::min(data.size(), static_cast<std::size_t>(std::numeric_limits<int>::max()));
      detail::check_mpi(MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(part), type, mpi_op, shared_->comm),
                        "MPI_Allreduce");
      data = data.subspan(part);
    }
  }

  template <class MemorySpace>
  bool reaches() const {
    if constexpr (Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible) {
      return true;
    } else {
      return detail::mpi_takes_memory_of(detail::family_of<MemorySpace>);
    }
  }

private:
  struct shared {
    explicit shared(MPI_Comm user) {
      int initialized = 0;
      MPI_Initialized(&initialized);
      if (initialized == 0) {
        throw error(fault::communication, "MPI is not initialised");
      }
      detail::check_mpi(MPI_Comm_dup(user, &comm), "MPI_Comm_dup");
      detail::check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
      detail::check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
      detail::check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
    }

    ~shared() {
      int finalized = 0;
      MPI_Finalized(&finalized);
      if (finalized == 0 && comm != MPI_COMM_NULL) {
        MPI_Comm_free(&comm);
      }
    }

    shared(shared const&) = delete;
    shared& operator=(shared const&) = delete;

    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0;
    int size = 0;
    std::vector<MPI_Request> handles; // room for waits; one thread at a time
  };

  explicit mpi_communicator(MPI_Comm user) : shared_(std::make_shared<shared>(user)) {}

  std::vector<MPI_Request>& gather_handles(std::span<request const> requests) {
    shared_->handles.clear();
    for (request const& each : requests) {
      shared_->handles.push_back(each.handle_);
    }
    return shared_->handles;
  }

  // What failed is over, too: it must not be waited for again.
  static void drop(request& failed) { failed.handle_ = MPI_REQUEST_NULL; }

  static void complete(request& finished, MPI_Status const& status) {
    finished.handle_ = MPI_REQUEST_NULL;
    if (finished.receives_) {
      int bytes = 0;
      detail::check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
      finished.bytes_ = static_cast<std::size_t>(bytes);
    }
  }

  std::shared_ptr<shared> shared_;
};

} // namespace oktopk
