// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/fence.hpp>
#include <oktopk/core/kokkos_ext/memory.hpp>
#include <oktopk/core/sparse.hpp>
#include <oktopk/core/workspace.hpp>

#include <cstddef>
#include <cstdint>

namespace oktopk {

/// A few numbers that a kernel writes and the host reads, or the other way round, on one instance.
template <class T, execution_space E>
class shared_numbers {
public:
  using memory_space = typename E::memory_space;
  using wire_space = detail::host_staging_space<E>;

  explicit shared_numbers(char const* label) : device_(label), host_(label) {}

  void reserve(E const& exec, std::int64_t count) {
    device_.reserve(exec, count);
    if constexpr (detail::is_device<E>) {
      host_.reserve(exec, count);
    }
  }

  Kokkos::View<T*, memory_space> const& device() const { return device_.view(); }

  T* host() const {
    if constexpr (detail::is_device<E>) {
      return host_.data();
    } else {
      return device_.data();
    }
  }

  /// Waits for `exec`, after which `host()` holds the first `count` numbers that kernels wrote.
  void to_host(E const& exec, std::int64_t count, char const* label) const {
    if constexpr (detail::is_device<E>) {
      Kokkos::deep_copy(exec, first<wire_space>(host_.data(), count), first<memory_space>(device_.data(), count));
    }
    detail::fence(exec, label);
  }

  /// Enqueues the way back; `host()` must not change before the next fence.
  void to_device(E const& exec, std::int64_t count) const {
    if constexpr (detail::is_device<E>) {
      Kokkos::deep_copy(exec, first<memory_space>(device_.data(), count), first<wire_space>(host_.data(), count));
    }
  }

private:
  template <class Space>
  static array_ref<T, Space> first(T* data, std::int64_t count) {
    return array_ref<T, Space>(data, static_cast<std::size_t>(count));
  }

  buffer<T, memory_space> device_;
  buffer<T, wire_space> host_;
};

} // namespace oktopk
