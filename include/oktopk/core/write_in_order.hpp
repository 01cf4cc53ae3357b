// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/core/kokkos_ext/warp.hpp>
#include <oktopk/core/workspace.hpp>

// Each item gives entries. They are written one after the other, in the order of the items. A CPU uses one scan of
// Kokkos. On a device that takes hundreds of instructions per item, so there are two launches and one wait instead.
namespace oktopk::detail {

/// The numbers that the kernels of `write_in_order` share with each other, and the host. All zero before and after a
/// call.
struct order_record {
  std::int64_t arrived = 0; ///< teams of the running kernel
  std::int64_t total = 0;   ///< entries
  std::int64_t noted = 0;   ///< free for the items, for example for a maximum
};

/// Rows of items of one warp. Few, so that a small number of items still makes many warps.
inline constexpr int ordered_rows = 4;

/// The warp of the kernels that write: the named one, else that of a device; void on a CPU if none is named.
template <class Named, class E>
using writing_warp = std::conditional_t<std::is_void_v<Named> && is_device<E>, warp_of<E>, Named>;

/// The buffers of `write_in_order`, used again in each call. Empty if there is no device.
template <execution_space E>
struct order_workspace {
  buffer<std::int64_t, typename E::memory_space> numbers{"oktopk::write_in_order::numbers"};
  buffer<std::uint64_t, typename E::memory_space> masks{"oktopk::write_in_order::masks"};
  buffer<order_record, typename E::memory_space> record{"oktopk::write_in_order::record", true};
  shared_numbers<order_record, E> host_copy{"oktopk::write_in_order::told"};

  std::int64_t* noted() const { return record.data() == nullptr ? nullptr : &record.data()->noted; }

  /// Makes room for `items` items; to be called before each call. Does nothing on a CPU, unless a warp is named.
  template <class Named = void>
  void reserve(E const& exec, std::int64_t items) {
    using warp = writing_warp<Named, E>;
    if constexpr (!std::is_void_v<warp>) {
      std::int64_t const rows = items / warp::lanes + 2 * ordered_rows;
      numbers.reserve(exec, rows / ordered_rows);
      masks.reserve(exec, rows);
      record.reserve(exec, 1);
      host_copy.reserve(exec, 1);
    }
  }
};

/// Items that kernels read. `Items::single` is true if an item gives at most one entry. `count(i)` returns the number
/// of entries of item i. `write(i, place)` writes them from `place` on and returns their number; for a single item it
/// is called only if the item has an entry.
template <class Items>
concept ordered_items = requires(Items const& items, std::int64_t number) {
  { Items::single } -> std::convertible_to<bool>;
  { items.count(number) } -> std::same_as<std::int64_t>;
  { items.write(number, number) } -> std::same_as<std::int64_t>;
};

/// Items that are looked up in a sorted list. For neighbouring items the list may be narrowed to the part that they
/// need, which two lookups find: `lookup(i)` returns a position, which ascends with i, and `narrow(first, last)` keeps
/// only the part between two of them.
template <class Items>
concept narrowed_items = ordered_items<Items> && requires(Items items, std::int64_t number) {
  { items.lookup(number) } -> std::same_as<std::int64_t>;
  { items.narrow(number, number) } -> std::same_as<void>;
};

/// The kernel on a CPU.
template <ordered_items Items>
struct scan_in_order_kernel {
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

/// The items, narrowed if possible for those at [first, last).
template <class Warp, ordered_items Items>
KOKKOS_INLINE_FUNCTION Items narrowed(Warp const& warp, Items items, std::int64_t first, std::int64_t last) {
  if constexpr (narrowed_items<Items>) {
    std::int64_t const low = warp.broadcast([&] { return items.lookup(first); });
    std::int64_t const high = warp.broadcast([&] { return items.lookup(last - 1); });
    items.narrow(low, high);
  }
  return items;
}

/// Counts the entries of the items of each warp; the last team scans the counts.
template <class Warp, execution_space E, ordered_items Items>
struct count_in_order_kernel {
  Items items;
  std::int64_t size;
  std::int64_t runs; ///< runs of items, one for each warp
  std::int64_t* numbers;
  std::uint64_t* masks; ///< of single items, one for each row
  order_record* record;

  KOKKOS_INLINE_FUNCTION void operator()(team_of<E> const& team) const {
    Warp const warp = warp_in<Warp>(team);
    std::int64_t const run = warp_number_in_league<Warp>(team);
    if (run < runs) {
      std::int64_t const begin = run * ordered_rows * Warp::lanes;
      std::int64_t const end = begin + ordered_rows * Warp::lanes < size ? begin + ordered_rows * Warp::lanes : size;
      Items const mine = narrowed(warp, items, begin, end);
      std::int64_t found = 0;
      typename Warp::template per_lane<std::int64_t> counts;
      warp.each([&](int lane) { counts[lane] = 0; });
      for (int row = 0; row < ordered_rows; ++row) {
        std::int64_t const first = begin + row * Warp::lanes;
        if constexpr (Items::single) {
          auto const mask = warp.ballot([&](int lane) { return first + lane < end && mine.count(first + lane) != 0; });
          warp.once([&] { masks[run * ordered_rows + row] = mask; });
          found += popcount(mask);
        } else {
          warp.each([&](int lane) { counts[lane] += first + lane < end ? mine.count(first + lane) : 0; });
        }
      }
      if constexpr (!Items::single) {
        found = warp.exclusive_scan(counts);
      }
      warp.once([&] { numbers[run] = found; });
    }
    if (is_last_team(team, &record->arrived)) {
      auto* const scratch = shared_in<std::int64_t>(team, numbers_to_scan<Warp>);
      std::int64_t const total = exclusive_scan<Warp>(team, numbers, runs, scratch);
      if (team.team_rank() == 0) {
        record->total = total;
      }
    }
  }
};

/// Writes; the last team copies the record for the host, and clears it.
template <class Warp, execution_space E, ordered_items Items>
struct write_in_order_kernel {
  Items items;
  std::int64_t size;
  std::int64_t runs;
  std::int64_t const* numbers;
  std::uint64_t const* masks;
  order_record* record;
  order_record* host_copy;

  KOKKOS_INLINE_FUNCTION void operator()(team_of<E> const& team) const {
    Warp const warp = warp_in<Warp>(team);
    std::int64_t const run = warp_number_in_league<Warp>(team);
    if (run < runs) {
      std::int64_t place = warp.broadcast([&] { return numbers[run]; });
      for (int row = 0; row < ordered_rows; ++row) {
        std::int64_t const first = (run * ordered_rows + row) * Warp::lanes;
        if constexpr (Items::single) {
          auto const mask =
              static_cast<lane_mask<Warp::lanes>>(warp.broadcast([&] { return masks[run * ordered_rows + row]; }));
          warp.each([&](int lane) {
            if ((mask >> lane & 1) != 0) {
              items.write(first + lane, place + rank_in<Warp::lanes>(mask, lane));
            }
          });
          place += popcount(mask);
        } else {
          typename Warp::template per_lane<std::int64_t> before;
          warp.each([&](int lane) { before[lane] = first + lane < size ? items.count(first + lane) : 0; });
          std::int64_t const total = warp.exclusive_scan(before);
          warp.each([&](int lane) {
            if (first + lane < size) {
              items.write(first + lane, place + before[lane]);
            }
          });
          place += total;
        }
      }
    }
    if (is_last_team(team, &record->arrived) && team.team_rank() == 0) {
      *host_copy = *record;
      *record = order_record();
    }
  }
};

/// Enqueues the writing of the entries of all items in order.
template <class Named = void, execution_space E, ordered_items Items>
void enqueue_in_order(char const* label, E const& exec, std::int64_t size, Items const& items,
                      [[maybe_unused]] order_workspace<E>& workspace) {
  using warp = writing_warp<Named, E>;
  if constexpr (std::is_void_v<warp>) {
    Kokkos::parallel_scan(label, index_range<E>(exec, 0, size), scan_in_order_kernel<Items>{items});
  } else {
    std::int64_t const each = std::int64_t(ordered_rows) * warp::lanes;
    std::int64_t const runs = (size + each - 1) / each;
    std::int64_t const teams = teams_of_warps<warp>(runs);
    for_teams<warp>(label, exec, teams, bytes_to_scan<warp>,
                    count_in_order_kernel<warp, E, Items>{items, size, runs, workspace.numbers.data(),
                                                          workspace.masks.data(), workspace.record.data()});
    for_teams<warp>(label, exec, teams, 0,
                    write_in_order_kernel<warp, E, Items>{items, size, runs, workspace.numbers.data(),
                                                          workspace.masks.data(), workspace.record.data(),
                                                          workspace.host_copy.device().data()});
  }
}

/// The same, and waits for `exec`. Returns the number of entries and, if warps write, the noted number.
template <class Named = void, execution_space E, ordered_items Items>
order_record write_in_order(char const* label, E const& exec, std::int64_t size, Items const& items,
                            [[maybe_unused]] order_workspace<E>& workspace) {
  order_record written;
  if constexpr (std::is_void_v<writing_warp<Named, E>>) {
    Kokkos::parallel_scan(label, index_range<E>(exec, 0, size), scan_in_order_kernel<Items>{items}, written.total);
  } else if (size > 0) {
    enqueue_in_order<Named>(label, exec, size, items, workspace);
    workspace.host_copy.to_host(exec, 1, label);
    written = *workspace.host_copy.host();
  }
  return written;
}

} // namespace oktopk::detail
