// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/kernels.hpp>
#include <oktopk/core/kokkos_ext/memory.hpp>
#include <oktopk/core/kokkos_ext/processor.hpp>
#include <oktopk/core/sparse.hpp>
#include <oktopk/core/write_in_order.hpp>
#include <oktopk/sparse/common_indices.hpp>
#include <oktopk/sparse/lower_bound.hpp>

#include <cstdint>

// Set operations on ascending index lists. No communication; they wait for `exec`.
namespace oktopk {

namespace detail {

/// Neighbours that one search serves: a CPU goes on from where the last one was, on a device each thread has its own.
template <execution_space E>
inline constexpr std::int64_t search_block = is_device<E> ? 1 : 256;

/// On a device: those of one list that are in the other, one a lane.
template <gradient_index Index>
struct common_items {
  static constexpr bool single = true;

  Index const* these;
  Index const* those;
  std::int64_t those_size;
  Index* out;

  KOKKOS_INLINE_FUNCTION std::int64_t lookup(std::int64_t at) const {
    return lower_bound(those, those_size, static_cast<std::int64_t>(these[at]));
  }
  KOKKOS_INLINE_FUNCTION void narrow(std::int64_t first, std::int64_t last) {
    those_size = (last < those_size ? last + 1 : last) - first; // the last one may be common, too
    those += first;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t count(std::int64_t at) const {
    std::int64_t const other = lookup(at);
    return other < those_size && those[other] == these[at] ? 1 : 0;
  }
  KOKKOS_INLINE_FUNCTION void write(std::int64_t at, std::int64_t place) const { out[place] = these[at]; }
};

/// On a CPU: a stretch of one list and its like of the other a thread at a time.
template <execution_space E, gradient_index Index>
std::int64_t intersection_on_host(E const& exec, array_ref<Index const, typename E::memory_space> these,
                                  array_ref<Index const, typename E::memory_space> those, Index* out) {
  constexpr std::int64_t width = 2048;
  constexpr writing written = is_one_thread<E> ? writing::free : writing::exact; // another's place is left alone
  auto const size = static_cast<std::int64_t>(these.extent(0));
  auto const those_size = static_cast<std::int64_t>(those.extent(0));
  Index const* const mine = these.data();
  Index const* const theirs = those.data();
  std::int64_t count = 0;
  Kokkos::parallel_scan(
      "oktopk::intersection", index_range<E>(exec, 0, (size + width - 1) / width),
      [=](std::int64_t block, std::int64_t& position, bool final) {
        std::int64_t const begin = block * width;
        sorted_part<Index> const part{mine, begin, begin + width < size ? begin + width : size};
        sorted_part<Index> const other{theirs, lower_bound(theirs, those_size, static_cast<std::int64_t>(mine[begin])),
                                       those_size};
        position += final ? common_indices<written>(part, other, out + position)
                          : common_indices<writing::none>(part, other, out);
      },
      count);
  return count;
}

} // namespace detail

/// Writes those of `these` that are among `those`, ascending, to `out`, which has room for all; gives their number.
/// `room` is used again in the next call, on a device.
template <execution_space E, gradient_index Index>
std::int64_t intersection(E const& exec, array_ref<Index const, typename E::memory_space> these,
                          array_ref<Index const, typename E::memory_space> those, Index* out,
                          [[maybe_unused]] detail::order_room<E>& room) {
  if constexpr (detail::is_device<E>) {
    using warp = detail::warp_of<E>;
    auto const size = static_cast<std::int64_t>(these.extent(0));
    room.template reserve<warp>(exec, size);
    detail::common_items<Index> const common{these.data(), those.data(), static_cast<std::int64_t>(those.extent(0)),
                                             out};
    return detail::write_in_order<warp>("oktopk::intersection", exec, size, common, room).total;
  } else {
    return detail::intersection_on_host<E, Index>(exec, these, those, out);
  }
}

/// The same, for once: allocates on a device.
template <execution_space E, gradient_index Index>
std::int64_t intersection(E const& exec, array_ref<Index const, typename E::memory_space> these,
                          array_ref<Index const, typename E::memory_space> those, Index* out) {
  detail::order_room<E> room;
  return intersection<E, Index>(exec, these, those, out, room);
}

namespace detail {

template <bool Among, execution_space E, gradient_index Index, gradient_value Value>
struct membership_selection {
  static constexpr std::int64_t width = search_block<E>;

  std::int64_t size;
  std::int64_t those_size;
  Index const* mine;
  Value const* my_values;
  Index const* theirs;
  Index* indices;
  Value* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block, std::int64_t& position, bool final) const {
    std::int64_t const end = (block + 1) * width < size ? (block + 1) * width : size;
    std::int64_t other = lower_bound(theirs, those_size, static_cast<std::int64_t>(mine[block * width]));
    for (std::int64_t at = block * width; at < end; ++at) {
      while (other < those_size && theirs[other] < mine[at]) {
        other += 1;
      }
      if ((other < those_size && theirs[other] == mine[at]) != Among) {
        continue;
      }
      if (final) {
        indices[position] = mine[at];
        values[position] = my_values[at];
      }
      position += 1;
    }
  }
};

/// Writes the entries whose indices are among `those`, or are not, ascending; gives their number.
template <bool Among, execution_space E, gradient_index Index, gradient_value Value>
std::int64_t entries_by_membership(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries,
                                   array_ref<Index const, typename E::memory_space> those, Index* indices,
                                   Value* values) {
  using membership = membership_selection<Among, E, Index, Value>;
  membership const kernel{entries.size(),
                          static_cast<std::int64_t>(those.extent(0)),
                          entries.indices.data(),
                          entries.values.data(),
                          those.data(),
                          indices,
                          values};
  std::int64_t const blocks = (kernel.size + membership::width - 1) / membership::width;
  std::int64_t count = 0;
  Kokkos::parallel_scan(Among ? "oktopk::common_entries" : "oktopk::difference", index_range<E>(exec, 0, blocks),
                        kernel, count);
  return count;
}

} // namespace detail

/// Writes the entries whose indices are not among `those`, ascending, to arrays with room for all; gives their number.
template <execution_space E, gradient_index Index, gradient_value Value>
std::int64_t difference(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries,
                        array_ref<Index const, typename E::memory_space> those, Index* indices, Value* values) {
  return detail::entries_by_membership<false, E, Index, Value>(exec, entries, those, indices, values);
}

/// Writes the entries whose indices are among `those`, in the same way.
template <execution_space E, gradient_index Index, gradient_value Value>
std::int64_t common_entries(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries,
                            array_ref<Index const, typename E::memory_space> those, Index* indices, Value* values) {
  return detail::entries_by_membership<true, E, Index, Value>(exec, entries, those, indices, values);
}

} // namespace oktopk
