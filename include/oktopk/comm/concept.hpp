// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/reduce.hpp>

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

// No concept gets a decltype as its argument: Clang 22 keeps that it was not satisfied, for other types too
// (findings/clang_concept_of_decltype.sh).
template <class C>
concept knows_its_order = std::is_same_v<decltype(C::ordered_by_instance), bool const> || requires(C const& comm) {
  { comm.ordered_by_instance() } -> std::same_as<bool>;
};

template <class C>
concept knows_if_it_tells_sizes = std::is_same_v<decltype(C::tells_sizes), bool const> || requires(C const& comm) {
  { comm.tells_sizes() } -> std::same_as<bool>;
};

/// True for a communicator whose type says that messages are ordered by the instance.
template <class C>
inline constexpr bool always_ordered_by_instance = requires { requires C::ordered_by_instance; };

/// False for a communicator whose type says that a receive does not tell its size.
template <class C>
inline constexpr bool may_tell_sizes = !requires { requires !C::tells_sizes; };

template <class C>
concept knows_what_arrived = knows_its_order<C> && knows_if_it_tells_sizes<C> &&
                             (!may_tell_sizes<C> || requires(C const& comm, typename C::bulk_request const& request) {
                               { request.bytes() } -> std::same_as<std::size_t>;
                             });

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
/// A communicator is a handle: copies are cheap and stand for the same ranks. Peers are ranks of it.
/// 1. `rank()`, `size()` — do not change.
/// 2. `isend(bytes, peer, phase)`, `irecv(bytes, peer, phase)` — start a message of contiguous bytes in host memory.
///    Both sides know its size. The bytes belong to the communicator until a wait has completed the request. Never
///    block. Messages of one phase between two ranks arrive in the order they were sent.
/// 3. `wait_all(requests)` — blocks until all active requests among these are complete, and makes them inactive. A
///    communicator may have a time limit (`set_time_limit`, `time_limit`), the same on all ranks; each communicator
///    documents its first value and the meaning of zero. A wait that takes longer is an `error` (fault::timed_out) that
///    names the operation of the ranks (`begin_operation`), the phase, the peers that have not answered and the
///    complete messages; the request stays active, to be cancelled. A wait releases this thread's lock to launch
///    kernels (`launch_unlock`), otherwise other threads could not launch any.
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
concept control_communicator = std::copy_constructible<C> && detail::ranked<C> && detail::sends_and_receives<C> &&
                               detail::waits<C> && detail::cancels<C>;

/// Bulk: groups of messages of data in the memory of kernels, if the transport reaches it.
///
/// 1. `can_access<MemorySpace>()` — true if bulk messages may lie in that memory; other memory is staged
///    (`message_buffer`).
/// 2. `start(exec, messages, requests)` — starts a group of messages together and fills one request for each, in their
///    order. Never waits for a peer. Messages of one phase between two ranks arrive in the order they were started.
/// 3. `ordered_by_instance` — true if messages run in order with the work enqueued on `exec`; a constant, or a function
///    where only the object knows. If it is false, the caller has waited for the work that touches the bytes (`message_group` does). If it is true, a group
///    may begin only when the group before it has ended, so ranks start groups in matching orders: messages that belong
///    together, such as a send and a receive of two ranks that exchange, are in the same group on both.
/// 4. `tells_sizes` — true if a receive may offer more room than its message needs, and `request.bytes()` of a complete
///    one returns the bytes that arrived; a constant or a function. If it is false, the room of a receive is exactly as large as
///    its message; `message_group` sends sizes ahead by control messages if the receiver cannot know them. A message
///    that exceeds the room of its receive is an `error`.
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
    std::copy_constructible<C> && detail::ranked<C> && detail::starts_groups<C> && detail::knows_what_arrived<C> &&
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

/// The facts of the contract, whether constants or functions.
template <class Comm>
constexpr bool ordered_by_instance(Comm const& comm) {
  if constexpr (requires { comm.ordered_by_instance(); }) {
    return comm.ordered_by_instance();
  } else {
    return Comm::ordered_by_instance;
  }
}

template <class Comm>
constexpr bool tells_sizes(Comm const& comm) {
  if constexpr (requires { comm.tells_sizes(); }) {
    return comm.tells_sizes();
  } else {
    return Comm::tells_sizes;
  }
}

/// Tells a communicator the operation that its next messages belong to, if it has a member of this name, which takes
/// the last two arguments. Not collective; sends nothing.
template <class Comm>
void begin_operation(Comm& comm, std::string_view name, std::int64_t number = -1) {
  if constexpr (requires { comm.begin_operation(name, number); }) {
    comm.begin_operation(name, number);
  }
}

/// The number of an object that is made on the ranks of a communicator: of the objects made on it or on its copies
/// before. It is in the tags of the object's messages. Collective, as the making of an object is; sends nothing. 0 for a
/// communicator without a member of this name: then only other facts tell objects apart.
template <class Comm>
std::int64_t number_object(Comm& comm) {
  if constexpr (requires { comm.number_object(); }) {
    return comm.number_object();
  } else {
    return 0;
  }
}

/// Counts an object whose messages have no tags. Collective, as the making of an object is; sends nothing. The count is
/// the communicator's `untagged_objects()`, a reference, shared by its copies; one without this member counts none.
template <class Comm>
void add_untagged_object([[maybe_unused]] Comm const& comm) {
  if constexpr (requires { ++comm.untagged_objects(); }) {
    ++comm.untagged_objects();
  }
}

/// Objects without tags that are made within its scope count as none: their maker counts as one, and calls one of them
/// at a time.
template <class Comm>
class uncounted_objects {
public:
  explicit uncounted_objects(Comm const& comm) : comm_(comm) {
    if constexpr (requires { ++comm.untagged_objects(); }) {
      before_ = comm.untagged_objects();
    }
  }
  uncounted_objects& operator=(uncounted_objects&&) = delete;
  ~uncounted_objects() {
    if constexpr (requires { ++comm_.untagged_objects(); }) {
      comm_.untagged_objects() = before_;
    }
  }

private:
  Comm const& comm_;
  std::int64_t before_ = 0;
};

/// True if more than one object without tags was made on the communicator: values of one may then meet those of
/// another, so ranks have to compare first which one they call. The same on all ranks.
template <ranked Comm>
bool confuses_objects([[maybe_unused]] Comm const& comm) {
  if constexpr (requires { ++comm.untagged_objects(); }) {
    return comm.size() > 1 && comm.untagged_objects() > 1;
  } else {
    return false;
  }
}

/// True if calls of a communicator may come from another thread than the one that has made it, one at a time.
///
/// Asks its member `takes_other_threads()`; a communicator without one takes none.
template <ranked Comm>
bool takes_other_threads([[maybe_unused]] Comm const& comm) {
  if constexpr (requires { comm.takes_other_threads(); }) {
    return comm.takes_other_threads();
  } else {
    return false;
  }
}

/// Gives up a communicator for a reason that this rank alone may know: this rank cannot use it any more, and a
/// communicator with `abort` tells the others the reason. Not collective.
template <class Comm>
void leave(Comm& comm, error const& why) noexcept {
  if constexpr (requires { comm.abort(why); }) {
    comm.abort(why);
  }
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
