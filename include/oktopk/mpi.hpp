// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The MPI adapter; the only header that includes <mpi.h>.

#if !__has_include(<mpi.h>)
#error "oktopk: <mpi.h> was not found; link oktopk::mpi, of find_package(oktopk COMPONENTS mpi), or compile by mpicxx"
#endif

#include <oktopk/comm/revocation.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>

#include <mpi.h>
#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>) // with the header of MPI's standard ABI it does not compile
#include <mpi-ext.h>                                // Open MPI says there what of its extensions it has
#endif

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

namespace oktopk::detail {

inline std::string mpi_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return std::string(text, static_cast<std::size_t>(length));
}

inline void check_mpi(int code, char const* call) {
  if (code != MPI_SUCCESS) {
    throw error(fault::communication, std::string(call) + ": " + mpi_text(code));
  }
}

/// MPI's counts are ints.
inline constexpr std::size_t largest_mpi_count = std::numeric_limits<int>::max();

/// Any number of bytes as an MPI count and datatype: bytes if `count` can hold their number, else one element that is
/// made of blocks of `largest` bytes and the rest. Messages of n bytes match whichever form each side uses, because MPI
/// compares the elementary types. The datatype is freed with this object; a message under way may still use it.
class mpi_bytes {
public:
  explicit mpi_bytes(std::size_t bytes, std::size_t largest = largest_mpi_count) : mpi_bytes() {
    if (bytes <= largest) {
      count_ = static_cast<int>(bytes);
      return;
    }
    if (bytes / largest > largest_mpi_count) {
      throw error(fault::communication, std::to_string(bytes / largest) + " exceeds what MPI can count");
    }
    std::array<int, 2> const counts{static_cast<int>(bytes / largest), static_cast<int>(bytes % largest)};
    std::array<MPI_Aint, 2> const places{0, static_cast<MPI_Aint>(bytes - bytes % largest)};
    std::array<MPI_Datatype, 2> types{MPI_DATATYPE_NULL, MPI_BYTE};
    check_mpi(MPI_Type_contiguous(static_cast<int>(largest), MPI_BYTE, types.data()), "MPI_Type_contiguous");
    MPI_Datatype made = MPI_DATATYPE_NULL;
    int const code = MPI_Type_create_struct(counts[1] > 0 ? 2 : 1, counts.data(), places.data(), types.data(), &made);
    MPI_Type_free(types.data());
    check_mpi(code, "MPI_Type_create_struct");
    type_ = made;
    check_mpi(MPI_Type_commit(&type_), "MPI_Type_commit");
    count_ = 1;
  }

  ~mpi_bytes() {
    if (type_ != MPI_BYTE) {
      MPI_Type_free(&type_);
    }
  }

  mpi_bytes& operator=(mpi_bytes&&) = delete;

  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

private:
  mpi_bytes() = default;

  int count_ = 0;
  MPI_Datatype type_ = MPI_BYTE;
};

/// True if `kinds`, in the form of MPI 4.1's info key mpi_memory_alloc_kinds, names memory of that kind: "cuda", or
/// "cuda:device" among its places, for cuda.
inline bool names_memory_kind(std::string_view kinds, std::string_view kind) {
  while (!kinds.empty()) {
    std::string_view const item = kinds.substr(0, kinds.find(','));
    kinds.remove_prefix(std::min(kinds.size(), item.size() + 1));
    std::string_view const places = item.substr(std::min(item.size(), kind.size()));
    if (item.starts_with(kind) &&
        (places.empty() ||
         (places.front() == ':' && (std::string(places) + ':').find(":device:") != std::string::npos))) {
      return true;
    }
  }
  return false;
}

/// True after MPI_Init. A program whose communicators are of sessions does not call it, and has no MPI_COMM_WORLD.
inline bool mpi_is_initialized() {
  int yes = 0;
  MPI_Initialized(&yes);
  return yes != 0;
}

/// The info key of that name of MPI_COMM_WORLD: the kinds of memory that the job was started for and MPI takes.
inline std::string mpi_memory_kinds() {
  std::string kinds;
#if MPI_VERSION >= 4
  MPI_Info info = MPI_INFO_NULL;
  if (mpi_is_initialized() && MPI_Comm_get_info(MPI_COMM_WORLD, &info) == MPI_SUCCESS && info != MPI_INFO_NULL) {
    std::array<char, 1024> text{};
    int room = static_cast<int>(text.size());
    int there = 0;
    if (MPI_Info_get_string(info, "mpi_memory_alloc_kinds", &room, text.data(), &there) == MPI_SUCCESS && there != 0) {
      kinds = text.data();
    }
    MPI_Info_free(&info);
  }
#endif
  return kinds;
}

/// True if this MPI library takes pointers to memory of such devices. The library is asked when the program runs,
/// because one that was built for a device may run without it: by its own functions, or, where it has none (as with the
/// standard ABI), by MPI's info key. False for a library that cannot be asked. MPI must be initialised.
inline bool mpi_takes_memory_of(device_family family) {
#if defined(MPIX_GPU_SUPPORT_CUDA)
  if (int yes = 0; family == device_family::cuda) {
    return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &yes) == MPI_SUCCESS && yes != 0;
  }
#elif defined(MPIX_CUDA_AWARE_SUPPORT)
  if (family == device_family::cuda) {
    return MPIX_Query_cuda_support() == 1;
  }
#else
  if (family == device_family::cuda) {
    return names_memory_kind(mpi_memory_kinds(), "cuda");
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
#else
  if (family == device_family::hip) {
    return names_memory_kind(mpi_memory_kinds(), "rocm");
  }
#endif
  return false;
}

/// False if the message is over, complete or failed. A message that is over must not be waited for again.
inline bool is_under_way(MPI_Request& handle) noexcept {
  int done = 1;
  if (handle != MPI_REQUEST_NULL && (MPI_Test(&handle, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0)) {
    handle = MPI_REQUEST_NULL;
  }
  return handle != MPI_REQUEST_NULL;
}

/// Memory of messages that were given up, and that MPI may still read or write: it is kept until the program ends.
inline std::vector<std::unique_ptr<std::byte[]>>& left_to_mpi() {
  static std::vector<std::unique_ptr<std::byte[]>> kept;
  return kept;
}

/// Two duplicates of a communicator of MPI, shared by the copies of an `mpi_communicator`.
class mpi_ranks : public shared_state {
public:
  using clock = std::chrono::steady_clock;

  explicit mpi_ranks(MPI_Comm user) {
    check_user(user);
    MPI_Errhandler theirs = MPI_ERRHANDLER_NULL;
    check_mpi(MPI_Comm_get_errhandler(user, &theirs), "MPI_Comm_get_errhandler");
    MPI_Comm_set_errhandler(user, MPI_ERRORS_RETURN); // MPI may have no more communicators
    int code = MPI_Comm_dup(user, &comm);
    if (code == MPI_SUCCESS) {
      code = MPI_Comm_dup(user, &of_program);
      if (code != MPI_SUCCESS) {
        MPI_Comm_free(&comm);
      }
    }
    MPI_Comm_set_errhandler(user, theirs);
    MPI_Errhandler_free(&theirs);
    check_mpi(code, "MPI_Comm_dup");
    check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check_mpi(MPI_Comm_set_errhandler(of_program, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  }

  ~mpi_ranks() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    // If this communicator was given up, here or by a rank whose notice nobody has read, its messages may still be under
    // way: MPI must not give its number to another one, and MPICH 5 ends the program that frees it with such messages.
    for (MPI_Comm* const each : {&comm, &of_program}) {
      int unread = 0;
      if (finalized == 0 && *each != MPI_COMM_NULL && !broken &&
          MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, *each, &unread, MPI_STATUS_IGNORE) == MPI_SUCCESS && unread == 0) {
        MPI_Comm_free(each);
      }
    }
  }

  mpi_ranks& operator=(mpi_ranks&&) = delete;

  /// Also tells the other ranks: by a message of its own tag, with the reason, short enough that MPI needs no receive
  /// for it. Over shared memory Open MPI still keeps one of more than 256 bytes until the receiver calls MPI. It costs
  /// nothing without an error.
  void abort(error const& why) noexcept {
    broken.note(why);
    tell(broken.reason()); // the first error, not one that followed from it
  }

  [[noreturn]] void fail(error const& why) {
    abort(why);
    throw why;
  }

  /// Throws if another rank has given up, because that rank does not answer any more.
  void hear_notices() {
    int there = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, notice_tag, comm, &there, &status) != MPI_SUCCESS || there == 0) {
      return;
    }
    int const aborted_by = status.MPI_SOURCE;
    std::array<char, longest_notice> text{};
    int length = 0;
    if (MPI_Recv(text.data(), static_cast<int>(text.size()), MPI_CHAR, aborted_by, notice_tag, comm, &status) !=
            MPI_SUCCESS ||
        MPI_Get_count(&status, MPI_CHAR, &length) != MPI_SUCCESS) {
      length = 0;
    }
    std::size_t const known = static_cast<std::size_t>(std::max(length, 0));
    broken.fail(abandoned_by(aborted_by, during, std::string(text.data(), known)));
  }

  /// Polls `done()` within the time limit, and yields the core in between. `report()` tells what was waited for. Looks
  /// for notices about once a millisecond.
  template <class Done, class Report>
  void wait_until(Done const& done, Report const& report) {
    constexpr std::chrono::milliseconds between_looks{1};
    clock::time_point begun{};
    clock::time_point next_look{};
    while (!done()) {
      std::this_thread::yield();
      auto const now = clock::now();
      if (begun == clock::time_point()) { // the first poll does not read the clock
        begun = now;
        next_look = now + between_looks;
      }
      if (now >= next_look) {
        hear_notices();
        next_look = now + between_looks;
      }
      if (now - begun > time_limit) {
        fail(report().timed_out(rank, during, time_limit));
      }
    }
  }

  /// Begins to leave a collective by an exception. Returns the time until which messages may still end.
  clock::time_point begin_cancelling() noexcept {
    if (patient_until_ == clock::time_point()) {
      std::chrono::nanoseconds const second = std::chrono::seconds(1);
      patient_until_ = clock::now() + (has_limit() ? std::min(second, time_limit / 4) : second);
    }
    abort(order_is_lost(rank));
    return patient_until_;
  }

  /// For many numbers MPI_Iallreduce is not used, though its wait could end at any time: Open MPI's takes four times as
  /// long. Maxima and minima are those of integers: an operation of our own would be called by an allreduce that was
  /// given up, when this object may be gone, and MPI cannot call it on the memory of a device.
  template <class T>
  void allreduce(std::span<T> data, reduction op) {
    if (has_limit() && data.size_bytes() <= most_copied) {
      return reduce_copy(data, op);
    }
    if (has_limit()) {
      MPI_Request all_are_here = MPI_REQUEST_NULL;
      check_mpi(MPI_Ibarrier(comm, &all_are_here), "MPI_Ibarrier");
      wait_for_all(all_are_here, "MPI_Ibarrier");
    }
    to_order(data, op);
    for (std::span<T> rest = data; !rest.empty();) {
      std::size_t const part = std::min(rest.size(), largest_mpi_count);
      check_mpi(MPI_Allreduce(MPI_IN_PLACE, rest.data(), static_cast<int>(part), type_for<T>(op), op_for(op), comm),
                "MPI_Allreduce");
      rest = rest.subspan(part);
    }
    from_order(data, op);
  }

  MPI_Comm comm = MPI_COMM_NULL;       ///< for the messages of the library
  MPI_Comm of_program = MPI_COMM_NULL; ///< for those of the program, which may have any tag and size
  int rank = 0;
  int size = 0;

private:
  static constexpr int notice_tag = phase_count;
  static constexpr std::size_t longest_notice = 1024;
  static constexpr std::size_t most_copied = std::size_t(64) << 10U;

  // Throws where MPI would end the job, by the handler of the user's communicator or of MPI_COMM_WORLD.
  static void check_user(MPI_Comm user) {
    // Where MPI_Init was not called, a communicator of MPI 4 that is none of these is of a session.
    bool const may_be_of_session =
        MPI_VERSION >= 4 && user != MPI_COMM_WORLD && user != MPI_COMM_SELF && user != MPI_COMM_NULL;
    if (!mpi_is_initialized() && !may_be_of_session) {
      throw error(fault::communication, MPI_VERSION >= 4
                                            ? "MPI is not initialised, and this is no communicator of a session"
                                            : "MPI is not initialised");
    }
    int yes = 0;
    MPI_Finalized(&yes);
    if (yes != 0) { // one of a session cannot be told from one that has ended
      throw error(fault::communication, "MPI is finalised already");
    }
    if (user == MPI_COMM_NULL) {
      throw error(fault::communication, "MPI_COMM_NULL is no communicator; this rank is in none");
    }
    check_mpi(MPI_Comm_test_inter(user, &yes), "MPI_Comm_test_inter");
    if (yes != 0) {
      throw error(fault::communication, "the ranks of an intercommunicator are in two groups; merge them "
                                        "(MPI_Intercomm_merge), or take a communicator of one");
    }
  }

  // Tells every other rank, once; later reasons are not told. Waits for a tenth of a second at most.
  [[gnu::cold]] void tell(std::string_view reason) noexcept {
    if (told_ || size == 1) {
      return;
    }
    told_ = true;
    try {
      std::size_t const length = std::min(reason.size(), longest_notice);
      std::byte* const text = left_to_mpi().emplace_back(std::make_unique<std::byte[]>(longest_notice)).get();
      std::memcpy(text, reason.data(), length);
      notices_.reserve(static_cast<std::size_t>(size));
      for (int step = 1; step < size; ++step) {
        MPI_Request& handle = notices_.emplace_back(MPI_REQUEST_NULL);
        if (MPI_Isend(text, static_cast<int>(length), MPI_CHAR, (rank + step) % size, notice_tag, comm, &handle) !=
            MPI_SUCCESS) {
          notices_.pop_back();
        }
      }
    } catch (std::exception const&) { // a rank that hears nothing has a time limit
    }
    auto const end = clock::now() + std::chrono::milliseconds(100);
    while (std::count_if(notices_.begin(), notices_.end(), is_under_way) > 0 && clock::now() < end) {
    }
  }

  template <class T>
  static MPI_Datatype type_for(reduction op) {
    bool const is_float = std::is_same_v<T, float>;
    return op == reduction::sum ? (is_float ? MPI_FLOAT : MPI_DOUBLE) : (is_float ? MPI_INT32_T : MPI_INT64_T);
  }

  static MPI_Op op_for(reduction op) {
    return op == reduction::sum ? MPI_SUM : op == reduction::min ? MPI_MIN : MPI_MAX;
  }

  template <class T>
  void reduce_copy(std::span<T> data, reduction op) {
    if (data.empty()) {
      return;
    }
    if (!copy_) {
      copy_ = std::make_unique_for_overwrite<std::byte[]>(most_copied);
    }
    std::memcpy(copy_.get(), data.data(), data.size_bytes());
    std::span<T> const copy(reinterpret_cast<T*>(copy_.get()), data.size());
    to_order(copy, op);
    MPI_Request handle = MPI_REQUEST_NULL;
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, copy.data(), static_cast<int>(copy.size()), type_for<T>(op), op_for(op),
                             comm, &handle),
              "MPI_Iallreduce");
    try {
      wait_for_all(handle, "MPI_Iallreduce");
    } catch (...) {
      left_to_mpi().push_back(std::move(copy_));
      throw;
    }
    from_order(copy, op);
    std::memcpy(data.data(), copy.data(), data.size_bytes());
  }

  void wait_for_all(MPI_Request& handle, char const* call) {
    wait_until(
        [&] {
          int done = 0;
          check_mpi(MPI_Test(&handle, &done, MPI_STATUS_IGNORE), call);
          return done != 0;
        },
        [] { return wait_report("for everybody in an allreduce"); });
  }

  clock::time_point patient_until_{}; // once messages were cancelled
  std::unique_ptr<std::byte[]> copy_; // of what is reduced
  std::vector<MPI_Request> notices_;
  bool told_ = false;
};

} // namespace oktopk::detail

namespace oktopk {

/// Ranks of an MPI communicator.
///
/// Owns a duplicate of the user's communicator, so that the library's messages never mix with the user's, and a second
/// one for messages of the program (`get`); errors on the duplicates are returned and checked, not fatal. (MPICH may
/// report a failed message through MPI_COMM_WORLD's handler instead, which only the program may change.) Copies share
/// the duplicates, and the last one frees them; nothing is freed after MPI_Finalize. The tag of a message is its phase.
/// Messages may have any length, 2 GiB and more included. MPI is called on the thread of the caller; only one thread may
/// call at a time. Messages lie in host memory, and in the memory of a GPU where the MPI library says that it takes
/// pointers to it.
///
/// The time limit of a wait is `usual_time_limit` at first. Zero means no limit; then a rank does not hear that another
/// rank has given up. A rank with a limit polls MPI instead of blocking in it, and yields the core in between.
class mpi_communicator : public detail::limited_communicator<mpi_communicator, detail::mpi_ranks> {
public:
  class request : public detail::reported_request {
  public:
    request() = default;
    bool active() const { return handle_ != MPI_REQUEST_NULL; }
    std::size_t bytes() const { return bytes_; }

  private:
    friend mpi_communicator;
    using reported_request::reported_request;

    MPI_Request handle_ = MPI_REQUEST_NULL;
    std::size_t bytes_ = 0;
  };

  using bulk_request = request;
  static constexpr bool tells_sizes() { return true; }

  /// Collective over `comm`. Throws, before a message, where MPI is not initialised or is finalised already, for
  /// MPI_COMM_NULL (on the ranks that have it) and for an intercommunicator; and where MPI cannot duplicate it, such as
  /// MPICH when it has 2,048 communicators. With MPI 4 it takes a communicator of a session as well: the program frees
  /// all objects of the library before MPI_Session_finalize.
  static mpi_communicator duplicate(MPI_Comm comm) { return mpi_communicator(comm); }

  /// True if MPI was initialised for threads: MPI_THREAD_SERIALIZED at least.
  bool takes_other_threads() const {
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    return level >= MPI_THREAD_SERIALIZED;
  }

  /// A communicator of the same ranks for calls of the program beside the library's, which never sends on it: messages
  /// may have any tag and size, also while the library reduces. Owned by this object; it must not be freed.
  MPI_Comm get() const { return shared_->of_program; }

  /// The communicator of the library's own messages, for tests and tools. A message of the program on it is taken for one
  /// of the library. It must not be freed.
  MPI_Comm carrier() const { return shared_->comm; }

  request isend(std::span<std::byte const> out, int peer, phase use) { return start_one(false, out, peer, use); }
  request irecv(std::span<std::byte> in, int peer, phase use) { return start_one(true, in, peer, use); }

  /// An error of MPI in one request is thrown when the other requests are over.
  void wait_all(std::span<request> requests) {
    detail::launch_unlock const lent;
    int first_error = MPI_SUCCESS;
    int of_peer = 0;
    auto next = requests.begin();
    // One by one: an error of MPI_Waitall belongs to no communicator, and MPI may then call a handler that ends the
    // job.
    auto const are_over = [&] {
      for (; next != requests.end(); ++next) {
        if (!next->active()) {
          continue;
        }
        MPI_Status status;
        int done = 1;
        int const code =
            shared_->has_limit() ? MPI_Test(&next->handle_, &done, &status) : MPI_Wait(&next->handle_, &status);
        if (code == MPI_SUCCESS && done == 0) {
          return false;
        }
        next->handle_ = MPI_REQUEST_NULL; // a failed message is over, too: it must not be waited for again
        if (code == MPI_SUCCESS) {
          note_arrived(*next, status);
        } else if (first_error == MPI_SUCCESS) {
          first_error = code;
          of_peer = next->peer_;
        }
      }
      return true;
    };
    // A message that completes while the report is made is not taken: its wait has failed.
    auto const is_complete = [](request const& each) {
      int done = 1;
      if (each.active()) {
        MPI_Request_get_status(each.handle_, &done, MPI_STATUS_IGNORE);
      }
      return done != 0;
    };
    shared_->wait_until(are_over, [&] { return detail::wait_report(requests, is_complete); });
    if (first_error != MPI_SUCCESS) {
      shared_->fail(error(fault::communication, "rank " + std::to_string(rank()) + ", a message of rank " +
                                                    std::to_string(of_peer) + shared_->during.where() +
                                                    ": MPI_Wait: " + detail::mpi_text(first_error)));
    }
  }

  /// Gives the communicator up: this rank can no longer use it, and the waits of the others end. A wait that times out
  /// does this by itself.
  void abort(error const& why) noexcept { shared_->abort(why); }

  /// As `communicator` says; the duplicate will not be freed. Receives and sends of this communicator get a second in
  /// all to end, or a quarter of the time limit if that is less. After that MPI may still read the memory of a message
  /// that has not ended, or write it if the message was already arriving, when the peer continues. So the program
  /// should end soon.
  void cancel(std::span<request> requests) noexcept {
    auto const patient_until = shared_->begin_cancelling();
    for (request& each : requests) {
      if (each.active() && each.receives()) {
        MPI_Cancel(&each.handle_);
      }
    }
    auto const is_active = [](request& each) { return detail::is_under_way(each.handle_); };
    while (std::count_if(requests.begin(), requests.end(), is_active) > 0 &&
           std::chrono::steady_clock::now() < patient_until) {
      std::this_thread::yield();
    }
    for (request& each : requests) { // not MPI_Request_free: MPICH 4.0 gives it to others while the message waits
      each.handle_ = MPI_REQUEST_NULL;
    }
  }

  /// MPI's own allreduce. Maxima and minima are of numbers in host memory. With a time limit all ranks meet in a barrier
  /// first: if a rank does not come, the others get an error, and the numbers are as before. After the barrier the limit
  /// no longer applies. Numbers of up to 64 KiB are reduced in a copy instead; then the limit applies to the whole call.
  template <class T>
    requires std::is_same_v<T, float> || std::is_same_v<T, double>
  void allreduce(std::span<T> data, reduction op, phase) {
    shared_->broken.throw_if_happened();
    detail::launch_unlock const lent;
    shared_->allreduce(data, op);
  }

  template <class MemorySpace>
  bool can_access() const {
    if constexpr (Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible) {
      return true;
    } else {
      return detail::mpi_takes_memory_of(detail::family_of<MemorySpace>);
    }
  }

private:
  explicit mpi_communicator(MPI_Comm user) : limited_communicator(std::make_shared<detail::mpi_ranks>(user)) {}

  request start_one(bool receives, std::span<std::byte const> bytes, int peer, phase use) {
    shared_->broken.throw_if_happened();
    request started(receives, peer, use);
    void* const data = const_cast<std::byte*>(bytes.data()); // the data of a send is only read
    int const tag = static_cast<int>(use);
#if MPI_VERSION >= 4
    auto const count = static_cast<MPI_Count>(bytes.size());
    detail::check_mpi(receives ? MPI_Irecv_c(data, count, MPI_BYTE, peer, tag, shared_->comm, &started.handle_)
                               : MPI_Isend_c(data, count, MPI_BYTE, peer, tag, shared_->comm, &started.handle_),
                      receives ? "MPI_Irecv" : "MPI_Isend");
#else
    detail::mpi_bytes const extent(bytes.size());
    detail::check_mpi(receives
                          ? MPI_Irecv(data, extent.count(), extent.type(), peer, tag, shared_->comm, &started.handle_)
                          : MPI_Isend(data, extent.count(), extent.type(), peer, tag, shared_->comm, &started.handle_),
                      receives ? "MPI_Irecv" : "MPI_Isend");
#endif
    return started;
  }

  // By value, because the header of SimGrid takes no pointer to a constant.
  static void note_arrived(request& finished, MPI_Status status) {
    if (finished.receives_) {
      MPI_Count bytes = 0;
#if MPI_VERSION >= 4
      detail::check_mpi(MPI_Get_count_c(&status, MPI_BYTE, &bytes), "MPI_Get_count_c");
#else
      detail::check_mpi(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
#endif
      finished.bytes_ = static_cast<std::size_t>(bytes);
    }
  }
};

} // namespace oktopk
