// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/breakdown.hpp>
#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/time_limit.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/mpi/call.hpp>

#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace oktopk::detail {

/// One wait with a time limit.
///
/// `try_again` is for a loop that asks MPI in between: it gives the core away, and now and then does `look`.
class timed_wait {
public:
  using clock = std::chrono::steady_clock;

  explicit timed_wait(std::chrono::nanoseconds limit) : limit_(limit) {}

  /// Whether there is time left.
  template <class Look>
  bool try_again(Look const& look) {
    std::this_thread::yield();
    auto const now = clock::now();
    if (begun_ == clock::time_point()) { // the first question is asked without a clock
      begun_ = now;
      next_look_ = now + between_looks;
    }
    if (now >= next_look_) {
      look();
      next_look_ = now + between_looks;
    }
    return now - begun_ <= limit_;
  }

private:
  static constexpr std::chrono::milliseconds between_looks{1};

  std::chrono::nanoseconds limit_;
  clock::time_point begun_{};
  clock::time_point next_look_{};
};

/// Memory of messages that were given up, and that MPI may still read or write: it is kept until the program ends.
inline std::vector<std::unique_ptr<std::byte[]>>& left_to_mpi() {
  static std::vector<std::unique_ptr<std::byte[]>> kept;
  return kept;
}

/// What a rank that gives up tells the other ranks of its communicator: a message of its own tag, with the reason.
///
/// Short enough that MPI sends it whether or not it is awaited. Who waits looks for one now and then; nobody else does,
/// so it costs nothing while all goes well. Part of a communicator.
class mpi_notices {
public:
  struct notice {
    int teller = 0;
    std::string reason;
  };

  /// Tells every other rank, once; later reasons are not told. Waits for a tenth of a second at most.
  void tell(MPI_Comm comm, int rank, int size, std::string_view reason) noexcept {
    if (told_ || size == 1) {
      return;
    }
    told_ = true;
    try {
      std::size_t const length = std::min(reason.size(), longest);
      std::byte* const text = left_to_mpi().emplace_back(std::make_unique<std::byte[]>(longest)).get();
      std::memcpy(text, reason.data(), length);
      sends_.reserve(static_cast<std::size_t>(size));
      for (int step = 1; step < size; ++step) {
        MPI_Request& handle = sends_.emplace_back(MPI_REQUEST_NULL);
        if (MPI_Isend(text, static_cast<int>(length), MPI_CHAR, (rank + step) % size, tag, comm, &handle) !=
            MPI_SUCCESS) {
          sends_.pop_back();
        }
      }
    } catch (std::exception const&) { // who has heard nothing has a time limit
    }
    auto const end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    while (under_way() && std::chrono::steady_clock::now() < end) {
    }
  }

  /// What another rank has told, if anything.
  static std::optional<notice> look(MPI_Comm comm) {
    int there = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &there, &status) != MPI_SUCCESS || there == 0) {
      return std::nullopt;
    }
    notice heard;
    heard.teller = status.MPI_SOURCE;
    std::array<char, longest> text{};
    int length = 0;
    if (MPI_Recv(text.data(), static_cast<int>(text.size()), MPI_CHAR, heard.teller, tag, comm, &status) ==
            MPI_SUCCESS &&
        MPI_Get_count(&status, MPI_CHAR, &length) == MPI_SUCCESS && length > 0) {
      heard.reason.assign(text.data(), static_cast<std::size_t>(length));
    }
    return heard;
  }

private:
  static constexpr int tag = phase_count;
  static constexpr std::size_t longest = 1024;

  bool under_way() noexcept {
    bool some = false;
    for (MPI_Request& each : sends_) {
      int done = 1;
      if (each != MPI_REQUEST_NULL && MPI_Test(&each, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
        each = MPI_REQUEST_NULL;
        done = 1;
      }
      some = some || done == 0;
    }
    return some;
  }

  std::vector<MPI_Request> sends_;
  bool told_ = false;
};

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

/// MPI's own allreduce, in the time limit of its ranks.
///
/// Up to `most_copied` bytes are reduced in a copy, which can be left at any time. For more, all ranks meet first; once
/// they have, MPI cannot be left any more, since Open MPI's allreduce that can be (MPI_Iallreduce) takes four times as
/// long.
class mpi_reduction {
public:
  static constexpr std::size_t most_copied = std::size_t(64) << 10U;

  template <class T>
  void run(mpi_ranks& ranks, std::span<T> data, reduction op) {
    MPI_Datatype const type = std::is_same_v<T, float> ? MPI_FLOAT : MPI_DOUBLE;
    MPI_Op const mpi_op = op == reduction::sum ? MPI_SUM : op == reduction::min ? MPI_MIN : MPI_MAX;
    if (ranks.has_limit() && data.size_bytes() <= most_copied) {
      return reduce_copy(ranks, data, type, mpi_op);
    }
    if (ranks.has_limit()) {
      MPI_Request all_are_here = MPI_REQUEST_NULL;
      check_mpi(MPI_Ibarrier(ranks.comm, &all_are_here), "MPI_Ibarrier");
      wait_for_all(ranks, all_are_here, "MPI_Ibarrier");
    }
    while (!data.empty()) {
      std::size_t const part = std::min(data.size(), largest_mpi_count);
      check_mpi(MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(part), type, mpi_op, ranks.comm),
                "MPI_Allreduce");
      data = data.subspan(part);
    }
  }

private:
  template <class T>
  void reduce_copy(mpi_ranks& ranks, std::span<T> data, MPI_Datatype type, MPI_Op op) {
    if (data.empty()) {
      return;
    }
    if (!copy_) {
      copy_ = std::make_unique_for_overwrite<std::byte[]>(most_copied);
    }
    std::memcpy(copy_.get(), data.data(), data.size_bytes());
    MPI_Request handle = MPI_REQUEST_NULL;
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, copy_.get(), static_cast<int>(data.size()), type, op, ranks.comm, &handle),
              "MPI_Iallreduce");
    try {
      wait_for_all(ranks, handle, "MPI_Iallreduce");
    } catch (...) {
      left_to_mpi().push_back(std::move(copy_));
      throw;
    }
    std::memcpy(data.data(), copy_.get(), data.size_bytes());
  }

  static void wait_for_all(mpi_ranks& ranks, MPI_Request& handle, char const* call) {
    timed_wait patience(ranks.time_limit);
    ranks.wait_until(
        patience,
        [&] {
          int done = 0;
          check_mpi(MPI_Test(&handle, &done, MPI_STATUS_IGNORE), call);
          return done != 0;
        },
        [] { return wait_report("for everybody in an allreduce"); });
  }

  std::unique_ptr<std::byte[]> copy_;
};

} // namespace oktopk::detail
