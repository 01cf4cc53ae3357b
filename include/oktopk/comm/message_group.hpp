// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/revocation.hpp>
#include <oktopk/core/workspace.hpp>

#include <cstring>
#include <limits>
#include <vector>

namespace oktopk::detail {

/// An array of bytes that only grows. Kernels of `E` write and read it; messages are sent from it and received into it.
///
/// If the communicator reaches the execution space's memory, kernels and messages use one array. If not, messages use
/// page-locked host memory, and `push` and `pull` copy the bytes that travel, and no others, on the caller's instance.
template <execution_space E>
class message_buffer {
public:
  using memory_space = typename E::memory_space;
  using wire_space = detail::host_staging_space<E>;

  explicit message_buffer(char const* label) : kernel_(label), wire_(label) {}

  /// Room for `bytes`; the contents are lost when it grows.
  template <communicator Comm>
  void reserve(E const& exec, Comm const& comm, std::int64_t bytes) {
    staged_ = !comm.template can_access<memory_space>();
    kernel_.reserve(exec, bytes);
    if (staged_) {
      wire_.reserve(exec, bytes);
    }
  }

  /// The bytes as kernels see them.
  std::byte* data() const { return kernel_.data(); }

  /// The bytes as messages see them: valid to send after `push` and `fence`, filled by a receive before `pull`.
  std::span<std::byte> wire(std::int64_t offset, std::int64_t bytes) const {
    std::byte* const begin = staged_ ? wire_.data() : kernel_.data();
    return {begin + offset, static_cast<std::size_t>(bytes)};
  }

  /// Writes one number where messages see it. The host does this, so kernels must not write the same place.
  void put(E const& exec, std::int64_t offset, std::uint64_t number) const {
    if (host_writes()) {
      std::memcpy(wire(offset, sizeof(number)).data(), &number, sizeof(number));
    } else {
      auto const* const from = reinterpret_cast<std::byte const*>(&number);
      enqueue_copy<memory_space, Kokkos::HostSpace>(exec, data() + offset, from, sizeof(number));
      fence(exec, "oktopk::message_buffer::put");
    }
  }

  /// Reads one number of a message that has arrived.
  std::uint64_t get(E const& exec, std::int64_t offset) const {
    std::uint64_t number = 0;
    if (host_writes()) {
      std::memcpy(&number, wire(offset, sizeof(number)).data(), sizeof(number));
    } else {
      auto* const to = reinterpret_cast<std::byte*>(&number);
      enqueue_copy<Kokkos::HostSpace, memory_space>(exec, to, data() + offset, sizeof(number));
      fence(exec, "oktopk::message_buffer::get");
    }
    return number;
  }

  /// Enqueues the copy from the memory of kernels to that of messages, if they differ.
  void push(E const& exec, std::int64_t offset, std::int64_t bytes) const {
    if (staged_ && bytes > 0) {
      enqueue_copy<wire_space, memory_space>(exec, wire_.data() + offset, data() + offset, bytes);
    }
  }

  /// Enqueues the copy from the memory of messages to that of kernels; the messages' bytes must stay until the next
  /// fence.
  void pull(E const& exec, std::int64_t offset, std::int64_t bytes) const {
    if (staged_ && bytes > 0) {
      enqueue_copy<memory_space, wire_space>(exec, data() + offset, wire_.data() + offset, bytes);
    }
  }

  /// Sets bytes to zero where messages see them; the work is enqueued if that is the memory of a device.
  void clear(E const& exec, std::int64_t offset, std::int64_t bytes) const {
    if (bytes > 0 && host_writes()) {
      std::memset(wire(offset, bytes).data(), 0, static_cast<std::size_t>(bytes));
    } else if (bytes > 0) {
      fill_array("oktopk::message_buffer::clear", exec, data() + offset, bytes, std::byte(0));
    }
  }

  /// Copies bytes of another buffer, in the memory that messages see on both sides. The caller has waited for `exec`
  /// since they were written. The copy is done, or only enqueued if kernels and messages share memory on a device.
  void copy(E const& exec, std::int64_t offset, message_buffer const& from, std::int64_t from_offset,
            std::int64_t bytes) const {
    if (host_writes()) {
      std::memcpy(wire(offset, bytes).data(), from.wire(from_offset, bytes).data(), static_cast<std::size_t>(bytes));
    } else {
      enqueue_copy<memory_space, memory_space>(exec, data() + offset, from.data() + from_offset, bytes);
    }
  }

private:
  // True if the host writes and reads the memory of messages.
  bool host_writes() const { return staged_ || !is_device<E>; }

  buffer<std::byte, memory_space> kernel_;
  buffer<std::byte, wire_space> wire_;
  bool staged_ = false;
};

/// The receiver's knowledge of the size of a message before it arrives.
enum class message_size : std::uint8_t {
  known,   ///< the room of the receive is exactly as large as the message
  unknown, ///< the room is at least as large
};

/// Bulk messages of one step of a collective, started in groups.
///
/// `send` and `receive` name messages and give each a number; `start` starts all that were named since the last start
/// as one group, so that several groups can be under way; `wait` waits for one message, `wait_all` for all. A size that
/// the receiver does not know is sent ahead, as a control message of 2 words, if the transport cannot tell it;
/// otherwise only the messages are sent. Allocates nothing once `reset` has made room. Not to be copied while messages
/// are under way, since a `cancel_on_unwind` guard refers to `requests()`.
template <communicator Comm>
class message_group {
public:
  using request = typename Comm::bulk_request;

  /// Forgets all messages, which must be complete, and makes room for `messages` new ones.
  void reset(std::size_t messages) {
    named_.clear();
    sizes_.clear();
    requests_.clear();
    started_ = 0;
    named_.reserve(messages);
    sizes_.reserve(messages);
    requests_.reserve(messages);
    announcements_.reserve(messages);
  }

  /// Names a message to receive; `space` belongs to the communicator from `start` until a wait.
  std::size_t receive(std::span<std::byte> space, int peer, phase use, message_size size = message_size::unknown) {
    return add({space, peer, use, true}, size);
  }

  /// Names a message to send; its bytes belong to the communicator as above. `size` is the same as at the receiver.
  std::size_t send(std::span<std::byte> bytes, int peer, phase use, message_size size = message_size::unknown) {
    return add({bytes, peer, use, false}, size);
  }

  /// Starts the named messages after the kernels enqueued on `exec`, which write the bytes to send or read the bytes
  /// received before; `label` names the fence that a transport on the host needs.
  template <execution_space E>
  void start(E const& exec, Comm& comm, char const* label) {
    if (!comm.ordered_by_instance()) {
      detail::fence(exec, label);
    }
    start(exec, comm);
  }

  /// Starts the named messages; no kernel that was enqueued since the last fence touches their bytes.
  template <execution_space E>
  void start(E const& exec, Comm& comm) {
    if (!comm.tells_sizes()) {
      announce_sizes(comm);
    }
    requests_.resize(named_.size());
    comm.start(exec, std::span<bulk_message const>(named_).subspan(started_), std::span(requests_).subspan(started_));
    started_ = named_.size();
  }

  void wait(Comm& comm, std::size_t which) { comm.wait_all(std::span(&requests_[which], 1)); }
  void wait_all(Comm& comm) { comm.wait_all(std::span(requests_)); }

  /// Bytes of a message that has arrived.
  std::int64_t bytes(std::size_t which) const {
    if constexpr (may_tell_sizes<Comm>) {
      return static_cast<std::int64_t>(requests_[which].bytes());
    } else {
      return static_cast<std::int64_t>(named_[which].bytes.size());
    }
  }

  std::vector<request>& requests() { return requests_; }

private:
  std::size_t add(bulk_message message, message_size size) {
    named_.push_back(message);
    sizes_.push_back(size == message_size::unknown ? unknown_size : known_size);
    return named_.size() - 1;
  }

  // All ranks announce sizes in the same order, each as soon as it comes to its own start.
  void announce_sizes(Comm& comm) {
    announcements_.clear();
    cancel_on_unwind const guard(comm, announcements_);
    for (std::size_t i = started_; i < named_.size(); ++i) {
      if (sizes_[i] == unknown_size) {
        std::span<std::int64_t> const number(&sizes_[i], 1);
        if (named_[i].receives) {
          announcements_.push_back(comm.irecv(std::as_writable_bytes(number), named_[i].peer, phase::control));
        } else {
          sizes_[i] = static_cast<std::int64_t>(named_[i].bytes.size());
          announcements_.push_back(comm.isend(std::as_bytes(number), named_[i].peer, phase::control));
        }
      }
    }
    comm.wait_all(std::span(announcements_));
    for (std::size_t i = started_; i < named_.size(); ++i) {
      std::span<std::byte>& room = named_[i].bytes;
      if (!named_[i].receives || sizes_[i] == known_size) {
        continue;
      }
      if (sizes_[i] < 0 || static_cast<std::uint64_t>(sizes_[i]) > room.size()) {
        throw exceeds_room(sizes_[i], named_[i].peer, room.size());
      }
      room = room.first(static_cast<std::size_t>(sizes_[i]));
    }
  }

  static constexpr std::int64_t unknown_size = -1;
  static constexpr std::int64_t known_size = std::numeric_limits<std::int64_t>::min();

  std::vector<bulk_message> named_;
  std::vector<std::int64_t> sizes_; // of those whose receiver does not know it
  std::vector<request> requests_;
  std::vector<typename Comm::request> announcements_;
  std::size_t started_ = 0;
};

/// Starts one bulk message; none if it has no bytes. The caller has waited for the kernels that touch its bytes.
template <execution_space E, communicator Comm>
typename Comm::bulk_request start_single(E const& exec, Comm& comm, bulk_message const& message) {
  static_assert(!always_ordered_by_instance<Comm>,
                "oktopk: the textbook allreduces need messages that do not wait for each other; over a transport that "
                "orders groups by its instance use native_allreduce");
  if (comm.ordered_by_instance()) { // the catalogue lets nobody come here
    throw error(fault::communication, "the textbook allreduces do not run over a communicator that orders messages");
  }
  typename Comm::bulk_request request{};
  if (!message.bytes.empty()) {
    comm.start(exec, std::span(&message, 1), std::span(&request, 1));
  }
  return request;
}

template <execution_space E, communicator Comm>
typename Comm::bulk_request start_send(E const& exec, Comm& comm, std::span<std::byte> out, int peer, phase use) {
  return start_single(exec, comm, {out, peer, use, false});
}

template <execution_space E, communicator Comm>
typename Comm::bulk_request start_receive(E const& exec, Comm& comm, std::span<std::byte> in, int peer, phase use) {
  return start_single(exec, comm, {in, peer, use, true});
}

/// Waits for one message, if it is under way.
template <communicator Comm>
void wait_for(Comm& comm, typename Comm::bulk_request& one) {
  if (one.active()) {
    comm.wait_all(std::span<typename Comm::bulk_request>(&one, 1));
  }
}

/// Waits for a message whose request is stored nowhere else.
template <communicator Comm>
void finish(Comm& comm, typename Comm::bulk_request one) {
  cancel_on_unwind const guard(comm, one);
  wait_for(comm, one);
}

} // namespace oktopk::detail
