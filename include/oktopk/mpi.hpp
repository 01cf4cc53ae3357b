// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The MPI adapter; with the headers in mpi/, the only ones that include <mpi.h>.

#if !__has_include(<mpi.h>)
#error "oktopk: <mpi.h> was not found; link oktopk::mpi, of find_package(oktopk COMPONENTS mpi), or compile by mpicxx"
#endif

#include <oktopk/comm/breakdown.hpp>
#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/time_limit.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/launch_turn.hpp>
#include <oktopk/core/kokkos_ext/memory.hpp>
#include <oktopk/mpi/ranks.hpp>

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
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
    int peer_ = -1; // none yet
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

  /// True if MPI was initialised for threads: MPI_THREAD_SERIALIZED at least.
  bool takes_other_threads() const {
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    return level >= MPI_THREAD_SERIALIZED;
  }

  /// The duplicate, for calls beside the library's; it must not be freed.
  MPI_Comm get() const { return shared_->comm; }

  request isend(std::span<std::byte const> out, int peer, phase use) {
    shared_->check_usable();
    request started(false, peer, use);
    detail::mpi_bytes const bytes(out.size());
    detail::check_mpi(MPI_Isend(out.data(), bytes.count(), bytes.type(), peer, static_cast<int>(use), shared_->comm,
                                &started.handle_),
                      "MPI_Isend");
    return started;
  }

  request irecv(std::span<std::byte> in, int peer, phase use) {
    shared_->check_usable();
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

  /// An error of MPI in one request is thrown when the other requests are over.
  void wait_all(std::span<request> requests) {
    launch_pause const lent;
    detail::timed_wait patience(shared_->time_limit);
    // One by one: an error of MPI_Waitall belongs to no communicator, and MPI may then call a handler that ends the
    // job.
    int first_error = MPI_SUCCESS;
    int of_peer = 0;
    for (request& each : requests) {
      if (each.active()) {
        MPI_Status status;
        int const code = wait_for(each, status, patience, requests);
        code == MPI_SUCCESS ? complete(each, status) : drop(each);
        if (first_error == MPI_SUCCESS && code != MPI_SUCCESS) {
          first_error = code;
          of_peer = each.peer_;
        }
      }
    }
    if (first_error != MPI_SUCCESS) {
      shared_->fail(error(fault::communication, "rank " + std::to_string(rank()) + ", a message of rank " +
                                                    std::to_string(of_peer) + shared_->where() +
                                                    ": MPI_Wait: " + detail::mpi_text(first_error)));
    }
  }

  /// Time limit of every wait, `usual_time_limit` at first; none where it is zero, and then nobody hears that another
  /// rank has given up. All copies share it; the same on all ranks. A rank with a limit asks MPI again and again
  /// instead of blocking in it, and gives the core away in between.
  void set_time_limit(std::chrono::nanoseconds limit) { shared_->time_limit = detail::checked_time_limit(limit); }
  std::chrono::nanoseconds time_limit() const { return shared_->time_limit; }

  /// The purpose of messages from now on.
  void begin_operation(std::string_view name, std::int64_t number) { shared_->during.begin(name, number); }

  /// Leaves all ranks: this one can use the communicator no more, and the waits of the others end. A rank that waits
  /// in vain does it by itself.
  void give_up(error const& why) noexcept { shared_->give_up(why); }

  /// As `communicator` says; the duplicate will not be freed. Receives and sends of this communicator get a second in
  /// all to end, or a quarter of the time limit where that is less. What is left then is MPI's: it may be read, or
  /// written if it was already arriving, when its peer goes on, so the program should end soon.
  void cancel(std::span<request> requests) noexcept {
    auto const patient_until = shared_->begin_cancelling();
    for (request& each : requests) {
      if (each.active() && each.receives()) {
        MPI_Cancel(&each.handle_);
      }
    }
    while (test_all(requests) && std::chrono::steady_clock::now() < patient_until) {
      std::this_thread::yield();
    }
    for (request& each : requests) {
      drop(each); // not MPI_Request_free: MPICH 4.0 gives the request to others while the message waits
    }
  }

  /// MPI's own. With a time limit all ranks meet first, so that a rank that does not come is an error on the others and
  /// the numbers are as before; MPI cannot be left once all have come. Numbers of up to 64 KiB are reduced in a copy
  /// instead, all in the limit.
  template <class T>
    requires std::is_same_v<T, float> || std::is_same_v<T, double>
  void allreduce(std::span<T> data, reduction op, phase) {
    shared_->check_usable();
    launch_pause const lent;
    shared_->allreduce(data, op);
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
  explicit mpi_communicator(MPI_Comm user) : shared_(std::make_shared<detail::mpi_ranks>(user)) {}

  // MPI's own wait, or one with a time limit; gives MPI's code.
  int wait_for(request& each, MPI_Status& status, detail::timed_wait& patience, std::span<request> all) {
    if (!shared_->has_limit()) {
      return MPI_Wait(&each.handle_, &status);
    }
    int code = MPI_SUCCESS;
    shared_->wait_until(
        patience,
        [&] {
          int done = 0;
          code = MPI_Test(&each.handle_, &done, &status);
          return code != MPI_SUCCESS || done != 0;
        },
        [&] { return report(all); });
    return code;
  }

  // The messages of a wait, complete or not. A message that completes now is not taken: its wait has failed.
  static detail::wait_report report(std::span<request> all) {
    detail::wait_report waited;
    for (request& each : all) {
      if (each.peer_ >= 0) {
        int done = 1;
        if (each.active()) {
          MPI_Request_get_status(each.handle_, &done, MPI_STATUS_IGNORE);
        }
        waited.add(done != 0, each.receives_, each.peer_, each.use_);
      }
    }
    return waited;
  }

  // True if some of them are still active.
  static bool test_all(std::span<request> requests) noexcept {
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

  // A failed message is over, too: it must not be waited for again.
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

  std::shared_ptr<detail::mpi_ranks> shared_;
};

} // namespace oktopk
