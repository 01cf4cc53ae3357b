// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/core/sparse.hpp>

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace oktopk::detail {

/// An array that only grows: the building block of every workspace, so that a steady state allocates nothing.
///
/// Memory is uninitialised unless `zeroed`. Growth replaces the array and loses its contents. It allocates half more
/// than the requested size, so that changing sizes (region widths, selected counts) need no growth after a few calls.
template <class T, class MemorySpace>
class buffer {
public:
  using view_type = Kokkos::View<T*, MemorySpace>;

  explicit buffer(char const* label, bool zeroed = false) : label_(label), zeroed_(zeroed) {}

  /// Makes room for `size` elements; on growth waits for `exec` (the old array may be in use) and allocates. Kokkos may
  /// also wait for other instances when it frees the old array.
  template <execution_space E>
  void reserve(E const& exec, std::int64_t size) {
    if (size <= capacity()) {
      return;
    }
    std::int64_t const grown = capacity() == 0 ? size : size + size / 2;
    detail::fence(exec, "oktopk::buffer::reserve");
    view_ = view_type();
    if constexpr (accessible_from<view_type, E>) { // with the instance, or Kokkos uses the default one and waits for it
      view_ = made(static_cast<std::size_t>(grown), exec);
    } else { // host memory, for which Kokkos takes no instance of the device
      view_ = made(static_cast<std::size_t>(grown));
    }
  }

  std::int64_t capacity() const { return static_cast<std::int64_t>(view_.extent(0)); }
  view_type const& view() const { return view_; }
  T* data() const { return view_.data(); }

private:
  template <class... Instance>
  view_type made(std::size_t size, Instance const&... exec) const {
    std::string const label(label_);
    return zeroed_ ? view_type(Kokkos::view_alloc(exec..., label), size)
                   : view_type(Kokkos::view_alloc(exec..., Kokkos::WithoutInitializing, label), size);
  }

  char const* label_;
  bool zeroed_;
  view_type view_;
};

/// Room for entries, as two arrays that only grow. `Width` is the type of the number of values of an entry.
template <gradient_index Index, wire_value Value, execution_space E, class Width = width_of_one>
struct entries_buffer {
  using memory_space = typename E::memory_space;
  using entries_type = sparse_ref<Index, Value, memory_space>;

  explicit entries_buffer(char const* label, Width values_of_each = {})
      : indices(label), values(label), width(values_of_each) {}

  buffer<Index, memory_space> indices;
  buffer<Value, memory_space> values;
  Width width;

  /// May lose the entries that are there.
  void reserve(E const& exec, std::int64_t count) {
    indices.reserve(exec, count);
    values.reserve(exec, count * width);
  }

  /// The values of the entry at a position.
  Value* values_at(std::int64_t position) const { return values.data() + position * width; }

  entries_type entries(std::int64_t count) const { return {indices.data(), values.data(), count, width}; }
};

/// Enqueues a copy from one memory space to another: of bytes, so that it is compiled once for all types.
template <class To, class From, execution_space E, class T>
void enqueue_copy(E const& exec, T* to, T const* from, std::int64_t count) {
  auto const size = static_cast<std::size_t>(count) * sizeof(T);
  Kokkos::deep_copy(exec, array_ref<std::byte, To>(reinterpret_cast<std::byte*>(to), size),
                    array_ref<std::byte const, From>(reinterpret_cast<std::byte const*>(from), size));
}

/// Objects that keep their addresses and are used again; the pool only grows.
template <class T>
class object_pool {
public:
  T* take(T const& value) {
    if (spare_.empty()) {
      if (spare_.capacity() <= storage_.size()) {
        spare_.reserve(2 * storage_.size() + 8); // room for all that will be released
      }
      spare_.push_back(&storage_.emplace_back());
    }
    T* const taken = spare_.back();
    spare_.pop_back();
    *taken = value;
    return taken;
  }

  void release(T* taken) noexcept { spare_.push_back(taken); } // `take` has made room

private:
  std::deque<T> storage_;
  std::vector<T*> spare_;
};

/// A few numbers that a kernel writes and the host reads, or the other way round, on one instance.
template <class T, execution_space E>
class shared_numbers {
public:
  using memory_space = typename E::memory_space;
  using wire_space = host_staging_space<E>;

  explicit shared_numbers(char const* label) : device_(label), host_(label) {}

  void reserve(E const& exec, std::int64_t count) {
    device_.reserve(exec, count);
    if constexpr (is_device<E>) {
      host_.reserve(exec, count);
    }
  }

  Kokkos::View<T*, memory_space> const& device() const { return device_.view(); }

  T* host() const {
    if constexpr (is_device<E>) {
      return host_.data();
    } else {
      return device_.data();
    }
  }

  /// Waits for `exec`. Then `host()` holds the first `count` numbers that kernels wrote.
  void to_host(E const& exec, std::int64_t count, char const* label) const {
    if constexpr (is_device<E>) {
      enqueue_copy<wire_space, memory_space>(exec, host_.data(), device_.data(), count);
    }
    fence(exec, label);
  }

  /// Enqueues the copy in the other direction; `host()` must not change before the next fence.
  void to_device(E const& exec, std::int64_t count) const {
    if constexpr (is_device<E>) {
      enqueue_copy<memory_space, wire_space>(exec, device_.data(), host_.data(), count);
    }
  }

private:
  buffer<T, memory_space> device_;
  buffer<T, wire_space> host_;
};

} // namespace oktopk::detail
