// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/reduce.hpp>

#include <chrono>
#include <cstddef>
#include <span>

namespace oktopk {

/// The purpose of a message; messages of one phase between two ranks arrive in the order they were sent.
enum class phase : std::uint8_t { control, partition, threshold, reduce, balance, gather };

inline constexpr int phase_count = 6;

constexpr std::string_view name(phase p) noexcept {
  constexpr std::string_view names[phase_count] = {"control", "partition", "threshold", "reduce", "balance", "gather"};
  return names[static_cast<int>(p)];
}

/// One of the bulk messages that start together.
struct bulk_message {
  std::span<std::byte> bytes; ///< bytes to send, or room for bytes that arrive, in memory that the communicator reaches
  int peer = 0;               ///< the rank it goes to or comes from
  phase use = phase::control; ///< its purpose
  bool receives = false;      ///< true if this rank receives it
};

/// Time limits of the waits for control and for bulk messages; zero stands for none.
using time_limit_pair = std::pair<std::chrono::nanoseconds, std::chrono::nanoseconds>;

/// Base of every communicator: all that one may offer beyond what the concepts ask for. A class that offers a member
/// hides the one here, which says what it means to have none. Calls of these members send nothing.
struct communicator_base {
  /// True if bulk messages run in order with the work enqueued on `exec`. Without: false. This function and the next one
  /// are static and constexpr where the type knows the answer.
  static constexpr bool ordered_by_instance() { return false; }

  /// True if a receive may offer more room than its message needs, and its request tells the bytes that arrived.
  /// Without: false.
  static constexpr bool tells_sizes() { return false; }

  /// True if calls may come from another thread than the one that has made the communicator, one at a time. Without:
  /// false, so `bucketed` overlaps nothing.
  bool takes_other_threads() const { return false; }

  /// Names the operation that the next messages belong to, and its number, or -1. Not collective. Without: errors name
  /// no operation.
  void begin_operation(std::string_view, std::int64_t) {}

  /// Returns how often it was called before, on this communicator or a copy of it. Collective. The number is in the tags
  /// of an object's messages. Without: 0, so only other facts tell objects apart.
  std::int64_t number_object() { return 0; }

  /// The number of objects whose messages have no tags; 0 at first, and shared by all copies. Without: null, so ranks do
  /// not notice that they call different ones of such objects.
  std::int64_t* untagged_objects() const { return nullptr; }

  /// Gives the communicator up on this rank, and tells the other ranks why. Not collective. Without: they wait up to
  /// their time limit.
  void abort(error const&) noexcept {}

  /// The limits of all copies on this rank. Without: an `error` (option_out_of_range).
  time_limit_pair time_limits() const { throw no_time_limit(); }
  void set_time_limits(time_limit_pair const&) { throw no_time_limit(); }

private:
  static error no_time_limit() { return {fault::option_out_of_range, "this communicator has no time limit"}; }
};

namespace detail {

/// A handle of one message under way; a default-made one is inactive.
template <class R>
concept message_request = std::default_initializable<R> && std::movable<R> && requires(R const& request) {
  { request.active() } -> std::same_as<bool>;
};

template <class C>
concept ranked = requires(C const& comm) {
  { comm.rank() } -> std::same_as<int>;
  { comm.size() } -> std::same_as<int>;
};

template <class C>
concept sends_and_receives =
    requires { typename C::request; } && message_request<typename C::request> &&
    requires(C& comm, std::span<std::byte const> out, std::span<std::byte> in, int peer, phase p) {
      { comm.isend(out, peer, p) } -> std::same_as<typename C::request>;
      { comm.irecv(in, peer, p) } -> std::same_as<typename C::request>;
    };

template <class C>
concept waits = requires(C& comm, std::span<typename C::request> requests) {
  { comm.wait_all(requests) } -> std::same_as<void>;
};

template <class C>
concept cancels = requires(C& comm, std::span<typename C::request> requests) {
  { comm.cancel(requests) } noexcept -> std::same_as<void>;
};

template <class C>
concept starts_groups = requires { typename C::bulk_request; } && message_request<typename C::bulk_request> &&
                        requires(C& comm, Kokkos::DefaultHostExecutionSpace const& exec,
                                 std::span<bulk_message const> messages, std::span<typename C::bulk_request> requests) {
                          { comm.start(exec, messages, requests) } -> std::same_as<void>;
                          { comm.wait_all(requests) } -> std::same_as<void>;
                          { comm.cancel(requests) } noexcept -> std::same_as<void>;
                        };

/// True for a communicator whose type says that messages are ordered by the instance.
template <class C>
inline constexpr bool always_ordered_by_instance = requires { typename std::enable_if_t<C::ordered_by_instance()>; };

/// False for a communicator whose type says that a receive does not tell its size.
template <class C>
inline constexpr bool may_tell_sizes = !requires { typename std::enable_if_t<!C::tells_sizes()>; };

template <class C>
concept knows_what_arrived = requires(C const& comm) {
  { comm.ordered_by_instance() } -> std::same_as<bool>;
  { comm.tells_sizes() } -> std::same_as<bool>;
} && (!may_tell_sizes<C> || requires(typename C::bulk_request const& request) {
                               { request.bytes() } -> std::same_as<std::size_t>;
                             });

template <class C>
concept derives_from_communicator_base = std::derived_from<C, communicator_base>;

/// What `communicator_base` has; a class that hides a member has one with the same signature.
template <class C>
concept has_optional_members =
    requires(C& comm, C const& as_const, std::string_view name, std::int64_t number, time_limit_pair const& limits) {
      { comm.begin_operation(name, number) } -> std::same_as<void>;
      { comm.number_object() } -> std::same_as<std::int64_t>;
      { as_const.untagged_objects() } -> std::same_as<std::int64_t*>;
      { as_const.takes_other_threads() } -> std::same_as<bool>;
      { as_const.time_limits() } -> std::same_as<time_limit_pair>;
      { comm.set_time_limits(limits) } -> std::same_as<void>;
    } && requires(C& comm, error const& why) {
      { comm.abort(why) } noexcept -> std::same_as<void>;
    };

template <class C>
concept reduces_everywhere = requires(C& comm, std::span<float> f, std::span<double> d, reduction op, phase p) {
  { comm.allreduce(f, op, p) } -> std::same_as<void>;
  { comm.allreduce(d, op, p) } -> std::same_as<void>;
};

template <class C>
concept knows_its_reach = requires(C const& comm) {
  { comm.template can_access<Kokkos::HostSpace>() } -> std::same_as<bool>;
};

} // namespace detail

/// Control: messages of a few numbers of the host, such as sizes, faults, thresholds, boundaries and agreements.
///
/// A communicator is a handle: copies are cheap and stand for the same ranks. Peers are ranks of it. Its class derives
/// from `communicator_base`, whose members it hides where it has more to offer.
/// 1. `rank()`, `size()` — do not change.
/// 2. `isend(bytes, peer, phase)`, `irecv(bytes, peer, phase)` — start a message of contiguous bytes in host memory.
///    Both sides know its size. The bytes belong to the communicator until a wait has completed the request. Never
///    block. Messages of one phase between two ranks arrive in the order they were sent.
/// 3. `wait_all(requests)` — blocks until all active requests among these are complete, and makes them inactive. A
///    communicator may have a time limit (`time_limits`), the same on all ranks; each communicator documents its first
///    value. A wait that takes longer is an `error` (fault::timed_out) that names the operation of the ranks
///    (`begin_operation`), the phase, the peers that have not answered and the complete messages; the request stays
///    active, to be cancelled. A wait releases this thread's lock to launch kernels (`launch_unlock`), otherwise other
///    threads could not launch any.
/// 4. `cancel(requests)` — ends the active requests among these, if any, without their messages; throws nothing.
///    Afterwards they are inactive and no receive writes to its room. A receive whose message is already arriving may
///    wait for the rest of it. A send that does not end soon may go on by itself; its bytes are then still read when
///    its peer asks for them. Messages that the other ranks send or expect from now on belong to a collective that this
///    rank has left. So this rank cannot use the communicator any more (`revocation`): on all its copies on this rank,
///    every call that starts a message is an `error` at once, with the first reason. A communicator with `abort` tells
///    the other ranks: their waits end with an `error` (fault::abandoned) that names the rank that has given up, and
///    its reason.
///
/// Every collective on numbers is built from these messages (`comm/collectives.hpp`), so that `counted` sees each byte.
template <class C>
concept control_communicator =
    std::copy_constructible<C> && detail::ranked<C> && detail::sends_and_receives<C> && detail::waits<C> &&
    detail::cancels<C> && detail::derives_from_communicator_base<C> && detail::has_optional_members<C>;

/// Bulk: groups of messages of data in the memory of kernels, if the transport reaches it.
///
/// 1. `can_access<MemorySpace>()` — true if bulk messages may lie in that memory; other memory is staged
///    (`message_buffer`).
/// 2. `start(exec, messages, requests)` — starts a group of messages together and fills one request for each, in their
///    order. Never waits for a peer. Messages of one phase between two ranks arrive in the order they were started.
/// 3. `ordered_by_instance()` — if it is false, the caller has waited for the work that touches the bytes
///    (`message_group` does). If it is true, a group may begin only when the group before it has ended, so ranks start
///    groups in matching orders: messages that belong together, such as a send and a receive of two ranks that exchange,
///    are in the same group on both.
/// 4. `tells_sizes()` — if it is true, `request.bytes()` of a complete receive returns the bytes that arrived. If it is
///    false, the room of a receive is exactly as large as its message; `message_group` sends sizes ahead by control
///    messages if the receiver cannot know them. A message that exceeds the room of its receive is an `error`.
/// 5. `wait_all(requests)` — blocks until all active ones are complete. Work that is enqueued afterwards on the
///    instance of their `start` sees the bytes that arrived, and may overwrite the bytes that were sent. If
///    `ordered_by_instance` is true, the host may not have to wait for that.
/// 6. `cancel(requests)` — as for control messages.
/// 7. `allreduce(values, op, phase)` — in place over the whole span, in memory that the communicator reaches (maxima and
///    minima: in host memory, if it reaches that); same length, operation and phase on all ranks; the result is
///    bit-identical on all of them. A result is NaN where a rank had NaN; maxima and minima take -0 for less than 0.
///    It is the communicator's own algorithm, the one that `dense` measures.
template <class C>
concept bulk_communicator =
    std::copy_constructible<C> && detail::ranked<C> && detail::starts_groups<C> &&
    detail::derives_from_communicator_base<C> && detail::has_optional_members<C> && detail::knows_what_arrived<C> &&
    detail::reduces_everywhere<C> && detail::knows_its_reach<C>;

/// Ranks that exchange messages: the only communication of the library between processes.
///
/// There are two contracts, for control messages and for bulk data. One type fulfils both: an MPI communicator does;
/// `paired<Control, Bulk>` joins a bulk transport such as NCCL with any control communicator.
template <class C>
concept communicator = control_communicator<C> && bulk_communicator<C>;

/// Starts a group of bulk messages as single ones: `start` for communicators whose transport runs on the host.
template <class Comm>
void start_one_by_one(Comm& comm, std::span<bulk_message const> messages,
                      std::span<typename Comm::bulk_request> requests) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    bulk_message const& each = messages[i];
    requests[i] = each.receives ? comm.irecv(each.bytes, each.peer, each.use)
                                : comm.isend(std::span<std::byte const>(each.bytes), each.peer, each.use);
  }
}

namespace detail {

/// The bytes of a complete receive with this room: those that arrived, or the room, which is as large if nobody tells.
template <class Comm, class Request>
std::size_t arrived_bytes(Comm const& comm, Request const& received, std::size_t room) {
  if constexpr (may_tell_sizes<Comm> && std::is_same_v<Request, typename Comm::bulk_request>) {
    return comm.tells_sizes() ? received.bytes() : room;
  } else {
    return room;
  }
}

/// Counts an object whose messages have no tags. Collective, as the making of an object is; sends nothing.
template <class Comm>
void add_untagged_object(Comm const& comm) {
  if (std::int64_t* const count = comm.untagged_objects()) {
    ++*count;
  }
}

/// Objects without tags that are made within its scope count as none: their maker counts as one, and calls one of them
/// at a time.
class uncounted_objects {
public:
  template <class Comm>
  explicit uncounted_objects(Comm const& comm)
      : count_(comm.untagged_objects()), before_(count_ == nullptr ? 0 : *count_) {}
  uncounted_objects& operator=(uncounted_objects&&) = delete;
  ~uncounted_objects() {
    if (count_ != nullptr) {
      *count_ = before_;
    }
  }

private:
  std::int64_t* count_;
  std::int64_t before_;
};

/// True if more than one object without tags was made on the communicator: values of one may then meet those of
/// another, so ranks have to compare first which one they call. The same on all ranks.
template <ranked Comm>
bool confuses_objects(Comm const& comm) {
  std::int64_t const* const count = comm.untagged_objects();
  return comm.size() > 1 && count != nullptr && *count > 1;
}

/// Gives up a communicator for a reason that this rank alone may know: this rank cannot use it any more, and a
/// communicator with `abort` tells the others the reason. Not collective.
template <class Comm>
void leave(Comm& comm, error const& why) noexcept {
  comm.abort(why);
  comm.cancel(std::span<typename Comm::request>());
}

/// Calls `leave`, then throws the reason.
template <class Comm>
[[noreturn]] void abort(Comm& comm, error const& why) {
  leave(comm, why);
  throw why;
}

} // namespace detail
} // namespace oktopk
