// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/core/kokkos_ext/instance.hpp>
#include <oktopk/core/kokkos_ext/kernels.hpp>
#include <oktopk/core/kokkos_ext/memory.hpp>
#include <oktopk/core/sparse.hpp>
#include <oktopk/core/workspace.hpp>

#include <cstring>

namespace oktopk::detail {

/// A grow-only array of bytes that kernels of `E` write and read, and that messages travel from and to.
///
/// Where the communicator reaches the execution space's memory the two are one array. Where not, messages use
/// page-locked host memory, and `push` and `pull` copy the bytes that travel — those and no others — on the caller's
/// instance.
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

  /// Writes one number where messages see it; the host does this, kernels must not write the same place.
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

  /// Enqueues the copy from kernels' memory to the wire's, where they differ.
  void push(E const& exec, std::int64_t offset, std::int64_t bytes) const {
    if (staged_ && bytes > 0) {
      enqueue_copy<wire_space, memory_space>(exec, wire_.data() + offset, data() + offset, bytes);
    }
  }

  /// Enqueues the copy from the wire's memory to kernels'; the wire's bytes must stay until the next fence.
  void pull(E const& exec, std::int64_t offset, std::int64_t bytes) const {
    if (staged_ && bytes > 0) {
      enqueue_copy<memory_space, wire_space>(exec, data() + offset, wire_.data() + offset, bytes);
    }
  }

  /// Sets bytes to zero where messages see them: enqueued where that is the memory of a device.
  void clear(E const& exec, std::int64_t offset, std::int64_t bytes) const {
    if (bytes > 0 && host_writes()) {
      std::memset(wire(offset, bytes).data(), 0, static_cast<std::size_t>(bytes));
    } else if (bytes > 0) {
      fill_array("oktopk::message_buffer::clear", exec, data() + offset, bytes, std::byte(0));
    }
  }

  /// Copies bytes of another buffer, as messages see them on both sides. `exec` has been waited for since they were
  /// written; the copy is done, or enqueued where kernels and messages share memory on a device.
  void copy(E const& exec, std::int64_t offset, message_buffer const& from, std::int64_t from_offset,
            std::int64_t bytes) const {
    if (host_writes()) {
      std::memcpy(wire(offset, bytes).data(), from.wire(from_offset, bytes).data(), static_cast<std::size_t>(bytes));
    } else {
      enqueue_copy<memory_space, memory_space>(exec, data() + offset, from.data() + from_offset, bytes);
    }
  }

private:
  // True where the host writes and reads what messages see.
  bool host_writes() const { return staged_ || !is_device<E>; }

  buffer<std::byte, memory_space> kernel_;
  buffer<std::byte, wire_space> wire_;
  bool staged_ = false;
};

} // namespace oktopk::detail
