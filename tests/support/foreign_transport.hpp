// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/archetype_communicator.hpp"
#include "support/collect.hpp"

#include <oktopk/comm/in_process.hpp>
#include <oktopk/comm/paired.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/core/sparse.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// A transport that is not MPI's: it moves bulk data alone, only in memory that Kokkos has allocated for kernels, and
// its receives tell nothing about sizes. Control messages go another way. As NCCL beside any control would.
namespace oktopk_tests {

/// The arrays that Kokkos has allocated, from the first use on.
class kokkos_arrays {
public:
  static kokkos_arrays& known() {
    static kokkos_arrays arrays;
    return arrays;
  }

  /// Whether all of these bytes lie in one array.
  bool hold(std::span<std::byte const> bytes) const {
    auto const after = sizes_.upper_bound(bytes.data());
    if (after == sizes_.begin()) {
      return false;
    }
    auto const& [begin, size] = *std::prev(after);
    return bytes.data() + bytes.size() <= static_cast<std::byte const*>(begin) + size + header_bytes;
  }

private:
  // Kokkos tells where its own header begins, and the size without it.
  static constexpr std::uint64_t header_bytes = 128;

  kokkos_arrays() {
    Kokkos::Tools::Experimental::set_allocate_data_callback([](Kokkos::Profiling::SpaceHandle, char const*,
                                                               void const* data,
                                                               std::uint64_t size) { known().sizes_[data] = size; });
    Kokkos::Tools::Experimental::set_deallocate_data_callback([](Kokkos::Profiling::SpaceHandle, char const*,
                                                                 void const* data,
                                                                 std::uint64_t) { known().sizes_.erase(data); });
  }

  std::map<void const*, std::uint64_t, std::less<>> sizes_;
};

/// Bulk data and nothing else: the least that `bulk_communicator` asks for.
class bulk_archetype : public oktopk::communicator_base {
public:
  class bulk_request {
  public:
    bool active() const { return inner_.active(); }

  private:
    friend bulk_archetype;
    oktopk::in_process_communicator::request inner_;
    std::size_t capacity_ = 0;
    std::vector<std::byte> staged_;    // the message, on a device
    std::byte* received_at_ = nullptr; // where it goes from there
  };

  explicit bulk_archetype(oktopk::in_process_communicator inner) : inner_(inner) { kokkos_arrays::known(); }
  bulk_archetype(bulk_archetype const&) = default;
  bulk_archetype& operator=(bulk_archetype const&) = delete;

  int rank() const { return inner_.rank(); }
  int size() const { return inner_.size(); }

  template <oktopk::execution_space E>
  void start(E const& exec, std::span<oktopk::bulk_message const> messages, std::span<bulk_request> requests) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      oktopk::bulk_message const& each = messages[i];
      check_memory(each.bytes);
      requests[i] = bulk_request(); // it may be one that was moved from
      requests[i].capacity_ = each.receives ? each.bytes.size() : 0;
      auto const bytes = oktopk::detail::is_device<E> ? staged(exec, each, requests[i]) : each.bytes;
      requests[i].inner_ =
          each.receives ? inner_.irecv(bytes, each.peer, each.use) : inner_.isend(bytes, each.peer, each.use);
    }
  }

  void wait_all(std::span<bulk_request> requests) {
    for (bulk_request& each : requests) {
      bool const receives = each.active() && each.inner_.receives();
      inner_.wait_all(std::span(&each.inner_, 1));
      if (receives && each.inner_.bytes() != each.capacity_) {
        throw oktopk::error(oktopk::fault::communication, "a bulk message of " + std::to_string(each.inner_.bytes()) +
                                                              " bytes has met a receive of " +
                                                              std::to_string(each.capacity_));
      }
      if (std::byte* const to = std::exchange(each.received_at_, nullptr); to != nullptr) {
        copy<memory, Kokkos::HostSpace>(execution(), each.staged_.data(), to, each.staged_.size());
      }
    }
  }

  void cancel(std::span<bulk_request> requests) noexcept {
    inner_.cancel({});
    for (bulk_request& each : requests) {
      inner_.cancel(std::span(&each.inner_, 1));
      each.received_at_ = nullptr;
    }
  }

  void allreduce(std::span<float> values, oktopk::reduction op, oktopk::phase use) { reduce(values, op, use); }
  void allreduce(std::span<double> values, oktopk::reduction op, oktopk::phase use) { reduce(values, op, use); }

  /// The memory of kernels, and no other.
  template <class MemorySpace>
  bool can_access() const {
    return std::is_same_v<MemorySpace, memory>;
  }

private:
  template <class Value>
  void reduce(std::span<Value> values, oktopk::reduction op, oktopk::phase use) {
    check_memory(std::as_bytes(values));
    if constexpr (oktopk::detail::is_device<execution>) {
      std::vector<Value> staged(values.size());
      copy<Kokkos::HostSpace, memory>(execution(), values.data(), staged.data(), staged.size());
      inner_.allreduce(std::span(staged), op, use);
      copy<memory, Kokkos::HostSpace>(execution(), staged.data(), values.data(), staged.size());
    } else {
      inner_.allreduce(values, op, use);
    }
  }

  // The host, which moves the bytes here, does not reach a device's memory.
  template <oktopk::execution_space E>
  static std::span<std::byte> staged(E const& exec, oktopk::bulk_message const& message, bulk_request& lent) {
    lent.staged_.resize(message.bytes.size());
    if (message.receives) {
      lent.received_at_ = message.bytes.data();
    } else {
      copy<Kokkos::HostSpace, memory>(exec, message.bytes.data(), lent.staged_.data(), message.bytes.size());
    }
    return lent.staged_;
  }

  template <class ToSpace, class FromSpace, oktopk::execution_space E, class T>
  static void copy(E const& exec, T const* from, T* to, std::size_t count) {
    if (count > 0) {
      Kokkos::deep_copy(exec, oktopk::array_ref<T, ToSpace>(to, count),
                        oktopk::array_ref<T const, FromSpace>(from, count));
    }
    exec.fence();
  }

  static void check_memory(std::span<std::byte const> bytes) {
    if (!bytes.empty() && !kokkos_arrays::known().hold(bytes)) {
      throw oktopk::error(oktopk::fault::communication, "bulk data lies in memory that is not of kernels");
    }
  }

  oktopk::in_process_communicator inner_;
};

/// The two together.
class foreign_communicator : public oktopk::paired<control_archetype, bulk_archetype> {
public:
  explicit foreign_communicator(oktopk::in_process_communicator inner)
      : paired(control_archetype(inner), bulk_archetype(inner)) {}
};

} // namespace oktopk_tests
