// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The NCCL adapter; the only header that includes <nccl.h> (or RCCL's <rccl/rccl.h>).

#include <oktopk/comm/paired.hpp>
#include <oktopk/comm/revocation.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>

#if __has_include(<nccl.h>)
#include <nccl.h>
#else
#include <rccl/rccl.h> // the same functions on AMD's devices
#endif

#include <algorithm>
#include <array>
#include <exception>
#include <future>
#include <thread>
#include <utility>
#include <vector>

namespace oktopk {

namespace detail {

/// The text of a result of NCCL, after the name of the call, with the last error that NCCL noted.
inline std::string nccl_text(ncclResult_t code, std::string const& call, ncclComm_t comm = nullptr) {
  char const* const noted = ncclGetLastError(comm);
  std::string text = call + ": " + ncclGetErrorString(code);
  if (noted != nullptr && *noted != '\0') {
    text += std::string(" (") + noted + ")";
  }
  return text;
}

inline void check_nccl(ncclResult_t code, char const* call) {
  if (code != ncclSuccess) {
    throw error(fault::communication, nccl_text(code, call));
  }
}

/// Operations that NCCL starts together: sends and receives of a group do not wait for each other.
class nccl_group {
public:
  nccl_group() { check_nccl(ncclGroupStart(), "ncclGroupStart"); }
  nccl_group& operator=(nccl_group&&) = delete;

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

struct nccl_abort {
  void operator()(ncclComm_t comm) const noexcept { static_cast<void>(ncclCommAbort(comm)); }
};

/// A position in the work that was enqueued on an instance of a device: one event, made by the first `record` for the
/// device that is current then.
///
/// Both functions throw an `error` (fault::communication) where the device returns an error.
template <execution_space E>
  requires has_stream<E>
class instance_mark {
  using events = device_events<E>;

public:
  instance_mark() = default;
  instance_mark& operator=(instance_mark&&) = delete;
  ~instance_mark() {
    if (event_ != nullptr) {
      static_cast<void>(events::destroy(event_));
    }
  }

  void record(E const& exec) {
    if (event_ == nullptr) {
      check(events::create(event_));
    }
    check(events::record(event_, stream_of(exec)));
  }

  bool reached() const {
    auto const code = event_ == nullptr ? events::success : events::query(event_);
    if (code != events::not_ready) {
      check(code);
    }
    return code == events::success;
  }

private:
  static void check(typename events::status_type code) {
    if (code != events::success) {
      throw error(fault::communication, events::describe(code));
    }
  }

  typename events::event_type event_ = nullptr;
};

/// A communicator of NCCL for the ranks of `control` in the same order, on the device that is current on each rank.
/// Collective. P-1 messages of 33 words from rank 0, then P-1 of one word from each rank. An `error` on all ranks,
/// which names the lowest rank that failed, if rank 0 gets no identifier or NCCL refuses some rank. While NCCL itself
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
  std::vector<std::int32_t> codes(static_cast<std::size_t>(ranks), ncclSuccess);
  std::vector<typename Control::request> requests;
  requests.reserve(2 * static_cast<std::size_t>(ranks));
  std::unique_ptr<std::remove_pointer_t<ncclComm_t>, nccl_abort> made;
  cancel_on_unwind const guard(control, requests); // declared after the memory of its messages

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

  ncclComm_t comm = nullptr;
  std::int32_t& mine = codes[static_cast<std::size_t>(rank)];
  mine = ncclCommInitRank(&comm, ranks, invited.id, rank);
  made.reset(comm);
  requests.clear();
  for (int peer = 0; peer < ranks; ++peer) {
    if (auto& theirs = codes[static_cast<std::size_t>(peer)]; peer != rank) {
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
  return made.release();
}

/// A communicator of NCCL, and the marks of its groups; shared by the copies of an `nccl_bulk`.
template <execution_space E>
struct nccl_ranks : shared_state {
  nccl_ranks(E const& instance, ncclComm_t made) : exec(instance), comm(made) {
    check_nccl(ncclCommUserRank(comm, &rank), "ncclCommUserRank");
    check_nccl(ncclCommCount(comm, &size), "ncclCommCount");
    time_limit = {};
  }

  /// Waits for at most the time limit, or the usual one where there is none.
  ~nccl_ranks() {
    if (broken) {
      abort();
    } else if (comm != nullptr) {
      destroy();
    }
  }

  nccl_ranks& operator=(nccl_ranks&&) = delete;

  /// Marks the end of the group that was started last; gives its number.
  std::uint64_t record(E const& instance) {
    ++groups;
    mark(groups).record(instance);
    return groups;
  }

  // A mark that was recorded again for a later group implies the earlier group: NCCL orders the groups of a
  // communicator.
  instance_mark<E>& mark(std::uint64_t group) { return marks[group % marks.size()]; }

  void abort() noexcept {
    if (comm != nullptr) {
      static_cast<void>(ncclCommAbort(std::exchange(comm, nullptr)));
    }
  }

  // From NCCL 2.31.2 on ncclCommDestroy waits for the ranks of the node, and those that have aborted do not come. Then the
  // thread that waits is left to itself: an abort beside it would free what it uses.
  void destroy() noexcept {
    try {
      std::promise<void> destroyed;
      auto const end = destroyed.get_future();
      std::thread([made = comm, done = std::move(destroyed)]() mutable {
        static_cast<void>(ncclCommDestroy(made));
        done.set_value();
      }).detach();
      end.wait_for(this->has_limit() ? this->time_limit : usual_time_limit);
    } catch (std::exception const&) { // there is no memory or thread for it
      abort();
    }
  }

  E exec;
  ncclComm_t comm; // none once it was aborted
  int rank = 0;
  int size = 0;
  std::uint64_t groups = 0;
  std::array<instance_mark<E>, 16> marks;
};

/// Bulk messages by ncclSend and ncclRecv, in groups on the stream of the caller's instance.
///
/// The host waits for none of them: a message counts as complete when it is on the stream, before all work that is
/// enqueued there afterwards. Data lies in the memory of the device; control messages use another communicator
/// (`nccl_communicator`). Copies share one communicator of NCCL, and the last one destroys it. NCCL orders the groups
/// of a communicator, so sends and receives that belong together are started in groups in the same order on both sides,
/// as all sparse algorithms do; the textbook dense allreduces do not, and the compiler refuses them. After an error
/// that NCCL reports, or a wait beyond the time limit, the communicator can only be cancelled: by ncclCommAbort, which
/// ends the work on the stream. The device that was current when it was made must be current in every call.
///
/// There is no time limit at first. A rank with a limit polls the device, so the host waits for each message; without a
/// limit it waits for none.
template <execution_space E>
class nccl_bulk : public detail::limited_communicator<nccl_bulk<E>, detail::nccl_ranks<E>> {
  static_assert(detail::has_stream<E>, "oktopk: NCCL moves data of a GPU: E must be Kokkos' space of one");
  using nccl_bulk::limited_communicator::shared_;

public:
  class bulk_request : public detail::reported_request {
  public:
    bulk_request() = default;
    bool active() const { return group_ != 0; }

  private:
    friend nccl_bulk;
    bulk_request(bulk_message const& message, std::uint64_t started)
        : reported_request(message.receives, message.peer, message.use), group_(message.bytes.empty() ? 0 : started) {}

    std::uint64_t group_ = 0; // from 1 on
  };

  static constexpr bool ordered_by_instance() { return true; }
  using nccl_bulk::limited_communicator::rank;

  /// Collective over `control`; the result has the same ranks. `exec` is the instance of `allreduce`.
  template <control_communicator Control>
  static nccl_bulk connect(E const& exec, Control& control) {
    return nccl_bulk(exec, detail::connect_nccl(control));
  }

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 1)
  /// Collective over `user`: a communicator of the same ranks, so that messages never meet the user's.
  static nccl_bulk duplicate(E const& exec, ncclComm_t user) {
    int rank = 0;
    ncclComm_t made = nullptr;
    detail::check_nccl(ncclCommUserRank(user, &rank), "ncclCommUserRank");
    detail::check_nccl(ncclCommSplit(user, 0, rank, &made, nullptr), "ncclCommSplit");
    return nccl_bulk(exec, made);
  }
#endif

  /// NCCL sets the device of its communicator by itself.
  bool takes_other_threads() const { return true; }

  /// NCCL's communicator, for calls beside the library's, in the same order on all ranks; it must not be destroyed.
  ncclComm_t get() const { return shared_->comm; }

  /// A message of no bytes is not started; both sides know its size.
  template <execution_space Caller>
  void start(Caller const& exec, std::span<bulk_message const> messages, std::span<bulk_request> requests) {
    static_assert(std::is_same_v<Caller, E>, "oktopk: the bulk messages of NCCL lie in the memory of its own device");
    shared_->broken.throw_if_happened();
    auto const stream = detail::stream_of(exec);
    detail::nccl_group group;
    for (bulk_message const& each : messages) {
      if (each.bytes.empty()) {
        continue;
      }
      std::span<std::byte> const bytes = each.bytes;
      detail::check_nccl(each.receives
                             ? ncclRecv(bytes.data(), bytes.size(), ncclUint8, each.peer, shared_->comm, stream)
                             : ncclSend(bytes.data(), bytes.size(), ncclUint8, each.peer, shared_->comm, stream),
                         each.receives ? "ncclRecv" : "ncclSend");
    }
    group.start();
    std::uint64_t const started = shared_->record(exec);
    std::transform(messages.begin(), messages.end(), requests.begin(),
                   [&](bulk_message const& each) { return bulk_request(each, started); });
  }

  void wait_all(std::span<bulk_request> requests) {
    for (bulk_request& each : requests) {
      if (each.active()) {
        shared_->broken.throw_if_happened();
        wait_until_reached(shared_->mark(each.group_), [&] {
          return detail::wait_report(requests, [](bulk_request const& other) { return !other.active(); });
        });
        each.group_ = 0;
      }
    }
  }

  /// Aborts NCCL's communicator: messages under way end, on this rank.
  void cancel(std::span<bulk_request> requests) noexcept {
    shared_->broken.note(detail::order_is_lost(rank()));
    shared_->abort();
    for (bulk_request& each : requests) {
      each.group_ = 0;
    }
  }

  /// ncclAllReduce on the instance that this was made with; complete when it returns.
  template <class T>
    requires std::is_same_v<T, float> || std::is_same_v<T, double>
  void allreduce(std::span<T> values, reduction op, phase) {
    shared_->broken.throw_if_happened();
    bool const sums = op == reduction::sum;
    bool const is_float = std::is_same_v<T, float>;
    auto const numbers = detail::index_range<E>(shared_->exec, 0, std::ssize(values));
    if (!sums) { // NCCL's own maximum and minimum lose a NaN
      Kokkos::parallel_for("oktopk::nccl_bulk::to_order", numbers,
                           detail::ordering<T>{values.data(), op == reduction::max});
    }
    ncclDataType_t const type = sums ? (is_float ? ncclFloat32 : ncclFloat64) : (is_float ? ncclInt32 : ncclInt64);
    ncclRedOp_t const operation = sums ? ncclSum : op == reduction::min ? ncclMin : ncclMax;
    detail::check_nccl(ncclAllReduce(values.data(), values.data(), values.size(), type, operation, shared_->comm,
                                     detail::stream_of(shared_->exec)),
                       "ncclAllReduce");
    if (!sums) {
      Kokkos::parallel_for("oktopk::nccl_bulk::from_order", numbers, detail::ordering_back<T>{values.data()});
    }
    wait_until_reached(shared_->mark(shared_->record(shared_->exec)),
                       [] { return detail::wait_report("for everybody in an allreduce"); });
    detail::fence(shared_->exec, "oktopk::nccl_bulk::allreduce");
  }

  template <class MemorySpace>
  bool can_access() const {
    return std::is_same_v<MemorySpace, typename E::memory_space>;
  }

private:
  nccl_bulk(E const& exec, ncclComm_t made)
      : nccl_bulk::limited_communicator(std::make_shared<detail::nccl_ranks<E>>(exec, made)) {}

  bool has_reached(detail::instance_mark<E> const& mark) {
    try {
      return mark.reached();
    } catch (error const& of_device) {
      shared_->broken.fail(of_device);
    }
  }

  template <class Report>
  void wait_until_reached(detail::instance_mark<E> const& mark, Report const& report) {
    auto const begun = std::chrono::steady_clock::now();
    do {
      ncclResult_t code = ncclSuccess;
      detail::check_nccl(ncclCommGetAsyncError(shared_->comm, &code), "ncclCommGetAsyncError");
      if (code != ncclSuccess && code != ncclInProgress) {
        shared_->broken.fail(error(fault::communication, "rank " + std::to_string(rank()) + ", " + report().open() +
                                                             ": " + detail::nccl_text(code, "NCCL", shared_->comm)));
      }
      if (!shared_->has_limit() || has_reached(mark)) {
        return;
      }
      std::this_thread::yield();
    } while (std::chrono::steady_clock::now() - begun <= shared_->time_limit);
    shared_->broken.fail(report().timed_out(rank(), shared_->during, shared_->time_limit));
  }
};

} // namespace detail

/// Ranks that send bulk data by NCCL from device to device, and the few numbers of the host by `control`, such as
/// `mpi_communicator`. The result keeps a copy of `control`.
///
/// Collective over `control`. Each rank has made its device the current one; NCCL needs a different device on each
/// rank. `exec` is an instance on this device, on which `allreduce` runs; all else runs on the instance of the
/// algorithm. Bulk data goes from the memory of kernels without a copy.
template <execution_space E, control_communicator Control>
paired<Control, detail::nccl_bulk<E>> nccl_communicator(E const& exec, Control control) {
  auto bulk = detail::nccl_bulk<E>::connect(exec, control);
  return {std::move(control), std::move(bulk)};
}

} // namespace oktopk
