// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/breakdown.hpp>
#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/time_limit.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/mpi/call.hpp>
#include <oktopk/mpi/notices.hpp>
#include <oktopk/mpi/time_limit.hpp>

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace oktopk::detail {

/// A duplicate of a communicator of MPI, and how long its ranks wait for each other; shared by the copies of an
/// `mpi_communicator`.
class mpi_ranks {
public:
  using clock = std::chrono::steady_clock;

  explicit mpi_ranks(MPI_Comm user) {
    int initialized = 0;
    MPI_Initialized(&initialized);
    if (initialized == 0) {
      throw error(fault::communication, "MPI is not initialised");
    }
    check_mpi(MPI_Comm_dup(user, &comm), "MPI_Comm_dup");
    check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  }

  ~mpi_ranks() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    // Messages of one that was given up may still be under way: MPI must not give its number to another.
    if (finalized == 0 && comm != MPI_COMM_NULL && !broken) {
      MPI_Comm_free(&comm);
    }
  }

  mpi_ranks(mpi_ranks const&) = delete;
  mpi_ranks& operator=(mpi_ranks const&) = delete;

  bool has_limit() const { return time_limit > std::chrono::nanoseconds(0); }

  void check_usable() const { broken.throw_if_happened(); }

  /// " in ok_topk, call 12"
  std::string where() const { return during.name.empty() ? "" : " in " + during.text(); }

  void give_up(error const& why) noexcept {
    broken.note(why.code(), why.sentence());
    notices.tell(comm, rank, size, broken.reason()); // of what began it, not of what it led to
  }

  [[noreturn]] void fail(error const& why) {
    give_up(why);
    throw why;
  }

  /// Throws where another rank has given up: it does not answer any more.
  void hear_notices() {
    if (auto const heard = mpi_notices::look(comm)) {
      error const why = abandoned_by(heard->teller, during, heard->reason);
      broken.note(why.code(), why.sentence());
      throw why;
    }
  }

  /// Asks again and again; `done()` says whether it is enough, `report()` what was waited for.
  template <class Done, class Report>
  void wait_until(timed_wait& patience, Done const& done, Report const& report) {
    while (!done()) {
      if (!patience.try_again([this] { hear_notices(); })) {
        fail(report().timed_out(rank, during, time_limit));
      }
    }
  }

  /// Leaves a collective by an exception. Gives the time at which MPI has had enough of it to end messages: a second
  /// after the first was cancelled, or a quarter of the time limit where that is less.
  clock::time_point begin_cancelling() noexcept {
    if (patient_until_ == clock::time_point()) {
      std::chrono::nanoseconds const second = std::chrono::seconds(1);
      patient_until_ = clock::now() + (has_limit() ? std::min(second, time_limit / 4) : second);
    }
    give_up(order_is_lost(rank));
    return patient_until_;
  }

  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 0;
  std::chrono::nanoseconds time_limit = usual_time_limit;
  operation during;
  breakdown broken;
  mpi_notices notices;

private:
  clock::time_point patient_until_{}; // once messages were cancelled
};

} // namespace oktopk::detail
