// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/execution.hpp>

#include <concepts>
#include <cstdint>

// Each item gives entries. They are written one after the other, in the order of the items, by one scan.
namespace oktopk::detail {

/// Items that kernels read. `Items::single` is true if an item gives at most one entry. `count(i)` returns the number
/// of entries of item i. `write(i, place)` writes them from `place` on and returns their number; for a single item it
/// is called only if the item has an entry.
template <class Items>
concept ordered_items = requires(Items const& items, std::int64_t number) {
  { Items::single } -> std::convertible_to<bool>;
  { items.count(number) } -> std::same_as<std::int64_t>;
  { items.write(number, number) } -> std::same_as<std::int64_t>;
};

template <ordered_items Items>
struct write_in_order_kernel {
  Items items;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::int64_t& place, bool final) const {
    if constexpr (Items::single) {
      if (items.count(i) != 0) {
        place += final ? items.write(i, place) : 1;
      }
    } else {
      place += final ? items.write(i, place) : items.count(i);
    }
  }
};

/// Enqueues the writing of the entries of all items in order.
template <execution_space E, ordered_items Items>
void enqueue_in_order(char const* label, E const& exec, std::int64_t size, Items const& items) {
  Kokkos::parallel_scan(label, index_range<E>(exec, 0, size), write_in_order_kernel<Items>{items});
}

/// The same, and waits for `exec`. Returns the number of entries.
template <execution_space E, ordered_items Items>
std::int64_t write_in_order(char const* label, E const& exec, std::int64_t size, Items const& items) {
  return scan_with_total(label, exec, size, write_in_order_kernel<Items>{items});
}

} // namespace oktopk::detail
