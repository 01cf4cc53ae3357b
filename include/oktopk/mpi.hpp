// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The MPI adapter; with what it keeps in detail/mpi/, the only headers that include <mpi.h>.

#include <oktopk/comm/cancel_on_unwind.hpp>
#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/start_one_by_one.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/launch_turn.hpp>
#include <oktopk/core/kokkos_ext/memory.hpp>
#include <oktopk/mpi/bytes.hpp>
#include <oktopk/mpi/call.hpp>
#include <oktopk/mpi/device_memory.hpp>
#include <oktopk/mpi/time_limit.hpp>

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace oktopk {

/// Ranks of an MPI communicator.
///
/// Owns a duplicate of the user's, so that the library's messages never meet the user's; errors on the duplicate are
/// returned and checked, not fatal. (MPICH may report a failed message through MPI_COMM_WORLD's handler instead, which
/// only the program may change.) Copies share the duplicate, and the last one frees it; nothing is freed after
/// MPI_Finalize. The tag of a message is its phase. Messages may have any length, 2 GiB and more included. Calls are
/// made from whatever thread calls, one at a time. Messages lie in host memory, and in the memory of a GPU where the
/// MPI library says that it takes pointers to it.
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
    request(bool receives, int peer, phase use) : peer_(peer), receives_(receives), use_(use) {}

    MPI_Request handle_ = MPI_REQUEST_NULL;
    int peer_ = 0;
    bool receives_ = false;
    phase use_ = phase::control;
    std::size_t bytes_ = 0;
  };

  using bulk_request = request;
  static constexpr bool tells_sizes = true;
  static constexpr bool ordered_by_instance = false;

  /// Collective over `comm`.
  static mpi_communicator duplicate(MPI_Comm comm) { return mpi_communicator(comm); }

  int rank() const { return shared_->rank; }
  int size() const { return shared_->size; }

  /// Where MPI was initialised for threads: MPI_THREAD_SERIALIZED at least.
  bool takes_other_threads() const {
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    return level >= MPI_THREAD_SERIALIZED;
  }

  /// The duplicate, for calls beside the library's; it must not be freed.
  MPI_Comm get() const { return shared_->comm; }

  request isend(std::span<std::byte const> out, int peer, phase use) {
    check_order();
    request started(false, peer, use);
    detail::mpi_bytes const bytes(out.size());
    detail::check_mpi(MPI_Isend(out.data(), bytes.count(), bytes.type(), peer, static_cast<int>(use), shared_->comm,
                                &started.handle_),
                      "MPI_Isend");
    return started;
  }

  request irecv(std::span<std::byte> in, int peer, phase use) {
    check_order();
    request started(true, peer, use);
    detail::mpi_bytes const room(in.size());
    detail::check_mpi(
        MPI_Irecv(in.data(), room.count(), room.type(), peer, static_cast<int>(use), shared_->comm, &started.handle_),
        "MPI_Irecv");
    return started;
  }

  template <execution_space E>
  void start(E const&, std::span<bulk_message const> messages, std::span<request> requests) {
    start_one_by_one(*this, messages, requests);
  }

  void wait_all(std::span<request> requests) {
    launch_pause const lent;
    // One by one: an error of MPI_Waitall belongs to no communicator, and MPI may then call a handler that ends the
    // job.
    int first_error = MPI_SUCCESS;
    for (request& each : requests) {
      if (each.active()) {
        MPI_Status status;
        int const code = wait_for(each, status);
        code == MPI_SUCCESS ? complete(each, status) : drop(each);
        first_error = first_error == MPI_SUCCESS ? code : first_error;
      }
    }
    detail::check_mpi(first_error, "MPI_Wait");
  }

  /// Time limit of every wait; none where it is zero, as at first. All copies share it; the same on all ranks. A rank
  /// with a limit asks MPI again and again instead of blocking in it, and an allreduce works on a copy, 16 MiB at a
  /// time. Where an allreduce is late for some ranks, they leave their copies to MPI and can use this communicator no
  /// more; the rank that came late may get its result, and hears of it in its next call.
  void set_time_limit(std::chrono::nanoseconds limit) { shared_->time_limit = limit; }

  /// As `communicator` says; the duplicate will not be freed. Receives are over when this returns. Sends of this
  /// communicator get a second in all to end; what is left then is MPI's, and must stay readable until the peer has it
  /// or the program ends.
  void cancel(std::span<request> requests) noexcept {
    shared_->begin_cancelling();
    for (request& each : requests) {
      if (each.active() && each.receives()) {
        MPI_Cancel(&each.handle_);
        MPI_Wait(&each.handle_, MPI_STATUS_IGNORE); // however it ends, it ends
        drop(each);
      }
    }
    while (test_sends(requests) && std::chrono::steady_clock::now() < shared_->patient_until) {
    }
    for (request& each : requests) {
      drop(each); // not MPI_Request_free: MPICH 4.0 gives the request to others while the message waits
    }
  }

  template <class T>
    requires std::is_same_v<T, float> || std::is_same_v<T, double>
  void allreduce(std::span<T> data, reduction op, phase) {
    check_order();
    launch_pause const lent;
    MPI_Datatype const type = std::is_same_v<T, float> ? MPI_FLOAT : MPI_DOUBLE;
    MPI_Op const mpi_op = op == reduction::sum ? MPI_SUM : op == reduction::min ? MPI_MIN : MPI_MAX;
    if (shared_->time_limit > std::chrono::nanoseconds(0)) {
      return reduce_in_time(data, type, mpi_op);
    }
    while (!data.empty()) {
      std::size_t const part = std::min(data.size(), detail::largest_mpi_count);
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
      // Messages of one that was cancelled may still be under way: MPI must not give its number to another.
      if (finalized == 0 && comm != MPI_COMM_NULL && !has_cancelled) {
        MPI_Comm_free(&comm);
      }
    }

    shared(shared const&) = delete;
    shared& operator=(shared const&) = delete;

    void begin_cancelling() noexcept {
      if (!has_cancelled) {
        has_cancelled = true;
        patient_until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
      }
    }

    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0;
    int size = 0;
    std::chrono::nanoseconds time_limit{0}; // none
    std::unique_ptr<std::byte[]> reduced;   // by an allreduce with a time limit
    bool has_cancelled = false;
    std::chrono::steady_clock::time_point patient_until; // once it has
  };

  explicit mpi_communicator(MPI_Comm user) : shared_(std::make_shared<shared>(user)) {}

  void check_order() const {
    if (shared_->has_cancelled) {
      throw detail::order_is_lost(rank());
    }
  }

  // MPI's own wait, or one with a time limit; gives MPI's code.
  int wait_for(request& each, MPI_Status& status) {
    if (shared_->time_limit <= std::chrono::nanoseconds(0)) {
      return MPI_Wait(&each.handle_, &status);
    }
    return detail::test_until_done(each.handle_, status, shared_->time_limit, rank(), [&] {
      return std::string(each.receives_ ? "to receive from rank " : "to send to rank ") + std::to_string(each.peer_) +
             " (" + std::string(name(each.use_)) + ")";
    });
  }

  // Numbers of the caller's never are MPI's: they are copied part by part into memory that outlives a wait in vain.
  template <class T>
  void reduce_in_time(std::span<T> data, MPI_Datatype type, MPI_Op op) {
    constexpr std::size_t most = (std::size_t(16) << 20U) / sizeof(T);
    if (!shared_->reduced) {
      shared_->reduced = std::make_unique_for_overwrite<std::byte[]>(most * sizeof(T));
    }
    while (!data.empty()) {
      std::span<T> const part = data.first(std::min(data.size(), most));
      std::memcpy(shared_->reduced.get(), part.data(), part.size_bytes());
      MPI_Request handle = MPI_REQUEST_NULL;
      MPI_Status status;
      detail::check_mpi(MPI_Iallreduce(MPI_IN_PLACE, shared_->reduced.get(), static_cast<int>(part.size()), type, op,
                                       shared_->comm, &handle),
                        "MPI_Iallreduce");
      try {
        detail::check_mpi(detail::test_until_done(handle, status, shared_->time_limit, rank(),
                                                  [] { return std::string("for everybody in an allreduce"); }),
                          "MPI_Iallreduce");
      } catch (...) {
        static_cast<void>(shared_->reduced.release()); // MPI's from now on
        shared_->begin_cancelling();
        throw;
      }
      std::memcpy(part.data(), shared_->reduced.get(), part.size_bytes());
      data = data.subspan(part.size());
    }
  }

  // Whether some of them are still active.
  static bool test_sends(std::span<request> requests) noexcept {
    bool active = false;
    for (request& each : requests) {
      if (each.active()) {
        int done = 0;
        if (MPI_Test(&each.handle_, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0) {
          drop(each);
        }
        active = active || each.active();
      }
    }
    return active;
  }

  // What failed is over, too: it must not be waited for again.
  static void drop(request& failed) noexcept { failed.handle_ = MPI_REQUEST_NULL; }

  // By value, for the header of SimGrid takes no pointer to a constant.
  static void complete(request& finished, MPI_Status status) {
    finished.handle_ = MPI_REQUEST_NULL;
    if (finished.receives_) {
      MPI_Count bytes = 0;
      detail::check_mpi(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
      finished.bytes_ = static_cast<std::size_t>(bytes);
    }
  }

  std::shared_ptr<shared> shared_;
};

} // namespace oktopk
