// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/core/write_in_order.hpp>

#include <algorithm>
#include <span>

// Set operations on the indices of sparse vectors, and the search for values that are not finite. No communication.
namespace oktopk::detail {

/// The first position of an ascending array whose value is not below `value`; for kernels. `Sorted` is a pointer to
/// indices or a rank-1 view of them.
template <class Sorted>
KOKKOS_INLINE_FUNCTION std::int64_t lower_bound(Sorted const& sorted, std::int64_t size, std::int64_t value) {
  std::int64_t low = 0;
  std::int64_t high = size;
  while (low < high) {
    std::int64_t const middle = low + (high - low) / 2;
    bool const is_below = static_cast<std::int64_t>(sorted[middle]) < value;
    low = is_below ? middle + 1 : low;
    high = is_below ? high : middle;
  }
  return low;
}

template <gradient_index Index>
struct boundary_search {
  Index const* sorted;
  std::int64_t size;
  std::int64_t* found; ///< before the search: the boundaries

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t r) const { found[r] = lower_bound(sorted, size, found[r]); }
};

/// For each boundary the position of the first selected index that is not below it, on the host.
template <execution_space E, gradient_index Index>
void split_positions(E const& exec, array_ref<Index const, typename E::memory_space> selected,
                     std::span<std::int64_t const> boundaries, shared_numbers<std::int64_t, E>& numbers) {
  auto const count = static_cast<std::int64_t>(boundaries.size());
  numbers.reserve(exec, count);
  std::copy(boundaries.begin(), boundaries.end(), numbers.host());
  numbers.to_device(exec, count);
  Kokkos::parallel_for(
      "oktopk::partition::split_positions", index_range<E>(exec, 0, count),
      boundary_search<Index>{selected.data(), static_cast<std::int64_t>(selected.extent(0)), numbers.device().data()});
  numbers.to_host(exec, count, "oktopk::partition::split_positions");
}

/// The fault of a value that is NaN or infinite.
struct non_finite_fault {
  template <gradient_value Value>
  KOKKOS_INLINE_FUNCTION static constexpr bool is_fault(Value x) {
    return magnitude_bits(x) >= infinity_bits<Value>;
  }
};

/// A device looks at one value a thread. A CPU looks at all values of a block together, which takes a few vector
/// instructions, and searches the block if one of them is a fault.
template <execution_space E, wire_value Value, class Fault>
struct fault_search {
  static constexpr std::int64_t width = is_device<E> ? 1 : 1024;

  Value const* values;
  std::int64_t size;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block, std::int64_t& lowest) const {
    std::int64_t const begin = block * width;
    std::int64_t const end = begin + width < size ? begin + width : size;
    bits_of<Value> any = 0; // as wide as the values, for vectors
    for (std::int64_t i = begin; i < end; ++i) {
      any |= Fault::is_fault(values[i]) ? 1U : 0U;
    }
    if (any != 0) {
      std::int64_t i = begin;
      while (!Fault::is_fault(values[i])) {
        i += 1;
      }
      lowest = i < lowest ? i : lowest;
    }
  }
};

/// The position of the first value that is NaN or infinite, or another `Fault`; the number of values if there is none.
///
/// Reads the values once. Waits for `exec`.
template <execution_space E, wire_value Value, class Fault = non_finite_fault>
std::int64_t first_non_finite(E const& exec, array_ref<Value const, typename E::memory_space> values) {
  using search = fault_search<E, Value, Fault>;
  auto const size = static_cast<std::int64_t>(values.extent(0));
  std::int64_t first = size;
  Kokkos::parallel_reduce("oktopk::select::first_non_finite",
                          index_range<E>(exec, 0, (size + search::width - 1) / search::width),
                          search{values.data(), size}, Kokkos::Min<std::int64_t>(first));
  return first < size ? first : size;
}

/// A fault at the entry at a position of a list; none if the position is behind its end. Waits for `exec`.
template <execution_space E, gradient_index Index>
fault_report fault_at(E const& exec, array_ref<Index const, typename E::memory_space> indices, std::int64_t position,
                      fault_subject subject) {
  if (position >= static_cast<std::int64_t>(indices.extent(0))) {
    return {};
  }
  Index index = 0;
  enqueue_copy<Kokkos::HostSpace, typename E::memory_space>(exec, &index, indices.data() + position, 1);
  fence(exec, "oktopk::index_at");
  return {fault::non_finite, index, subject};
}

/// A fault if some entry is not finite: for values the input is wrong, for sums they overflowed. Waits for `exec`.
template <execution_space E, gradient_index Index, gradient_value Value>
fault_report non_finite_in(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries,
                           fault_subject subject) {
  return fault_at<E, Index>(exec, entries.indices, first_non_finite<E, Value>(exec, entries.values), subject);
}

// Set operations on ascending index lists. No communication; they wait for `exec`.

/// The way in which a common index is written. `none`: it is only counted. `exact`: only common indices are written.
/// `free`: other indices are written, too, and the next common one overwrites them; only if no other thread writes to
/// the array.
enum class writing : std::uint8_t { none, exact, free };

/// The indices that one table of bits covers: 4 KiB of them.
inline constexpr std::int64_t table_reach = std::int64_t(1) << 15;

/// Writes the indices that are in both of two ascending lists without repetitions, and returns their number; on one
/// thread of a CPU. A table of bits moves along both lists: one list marks its indices in it, the other looks them up.
/// No branch depends on a comparison of two indices, so only the ends of a table are mispredicted. These are many if
/// indices are far apart, but then the indices are few.
template <writing How, gradient_index Index>
KOKKOS_INLINE_FUNCTION std::int64_t common_indices(Index const* these, Index const* these_end, Index const* those,
                                                   Index const* those_end, Index* out) {
  using place_type = std::make_unsigned_t<Index>;
  constexpr auto reach = static_cast<place_type>(table_reach);
  std::uint64_t table[table_reach / 64] = {};
  std::int64_t count = 0;
  while (these < these_end && those < those_end) {
    Index const first = *these;
    auto const place_of = [first](Index index) { return static_cast<place_type>(index - first); };
    while (those < those_end && *those < first) {
      those += 1;
    }
    Index const* const marked = those;
    for (; those < those_end && place_of(*those) < reach; ++those) {
      table[place_of(*those) / 64] |= std::uint64_t(1) << (place_of(*those) % 64);
    }
    for (; these < these_end && place_of(*these) < reach; ++these) {
      bool const is_common = ((table[place_of(*these) / 64] >> (place_of(*these) % 64)) & 1) != 0;
      if (How == writing::free || (How == writing::exact && is_common)) {
        out[count] = *these; // no branch for `free`, because it could not be predicted
      }
      count += is_common ? 1 : 0;
    }
    for (Index const* each = marked; each < those; ++each) {
      table[place_of(*each) / 64] = 0;
    }
  }
  return count;
}

/// On a device: those of one list that are in the other, one a lane.
template <gradient_index Index>
struct common_items {
  static constexpr bool single = true;
  static constexpr std::int64_t width = 1;

  Index const* these;
  std::int64_t these_size;
  Index const* those;
  std::int64_t those_size;
  Index* out;

  KOKKOS_INLINE_FUNCTION std::int64_t count(std::int64_t at) const {
    std::int64_t const other = lower_bound(those, those_size, static_cast<std::int64_t>(these[at]));
    return other < those_size && those[other] == these[at] ? 1 : 0;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t write(std::int64_t at, std::int64_t place) const {
    out[place] = these[at];
    return 1;
  }
};

/// On a CPU: a thread takes a stretch of one list and the corresponding stretch of the other.
template <execution_space E, gradient_index Index>
struct common_stretches {
  static constexpr bool single = false;
  static constexpr std::int64_t width = 2048;

  Index const* these;
  std::int64_t these_size;
  Index const* those;
  std::int64_t those_size;
  Index* out;

  template <writing How>
  KOKKOS_INLINE_FUNCTION std::int64_t common(std::int64_t stretch, Index* to) const {
    std::int64_t const begin = stretch * width;
    std::int64_t const end = begin + width < these_size ? begin + width : these_size;
    std::int64_t const other = lower_bound(those, those_size, static_cast<std::int64_t>(these[begin]));
    return common_indices<How>(these + begin, these + end, those + other, those + those_size, to);
  }
  KOKKOS_INLINE_FUNCTION std::int64_t count(std::int64_t stretch) const { return common<writing::none>(stretch, out); }
  KOKKOS_INLINE_FUNCTION std::int64_t write(std::int64_t stretch, std::int64_t place) const {
    // With several threads, a thread must not write to another's place.
    constexpr writing how = is_one_thread<E> ? writing::free : writing::exact;
    return common<how>(stretch, out + place);
  }
};

template <bool Among, execution_space E, gradient_index Index, wire_value Value>
struct membership_selection {
  /// Number of neighbours that share one search: a CPU continues from the last position; on a device each has a search
  /// of its own.
  static constexpr std::int64_t width = is_device<E> ? 1 : 256;

  sparse_ref<Index, Value, typename E::memory_space> entries;
  array_ref<Index const, typename E::memory_space> those;
  std::int64_t size;
  Index* indices;
  Value* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block, std::int64_t& position, bool final) const {
    Index const* const mine = entries.indices.data();
    Index const* const theirs = those.data();
    auto const those_size = static_cast<std::int64_t>(those.extent(0));
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
        values[position] = entries.values.data()[at];
      }
      position += 1;
    }
  }
};

template <class Kernel, execution_space E>
std::int64_t write_by_membership(char const* label, E const& exec, Kernel const& kernel) {
  return scan_with_total(label, exec, (kernel.size + kernel.width - 1) / kernel.width, kernel);
}

/// Writes the entries with indices among `those`, ascending, to arrays with room for all; gives their number.
template <execution_space E, gradient_index Index, wire_value Value>
std::int64_t common_entries(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries,
                            array_ref<Index const, typename E::memory_space> those, Index* indices, Value* values) {
  return write_by_membership(
      "oktopk::common_entries", exec,
      membership_selection<true, E, Index, Value>{entries, those, entries.size(), indices, values});
}

/// The same for the entries whose indices are not among `those`.
template <execution_space E, gradient_index Index, wire_value Value>
std::int64_t difference(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries,
                        array_ref<Index const, typename E::memory_space> those, Index* indices, Value* values) {
  return write_by_membership(
      "oktopk::difference", exec,
      membership_selection<false, E, Index, Value>{entries, those, entries.size(), indices, values});
}

/// Writes those of `these` that are among `those`, ascending, to `out`, which has room for all; gives their number.
template <execution_space E, gradient_index Index>
std::int64_t intersection(E const& exec, array_ref<Index const, typename E::memory_space> these,
                          array_ref<Index const, typename E::memory_space> those, Index* out) {
  using items = std::conditional_t<is_device<E>, common_items<Index>, common_stretches<E, Index>>;
  auto const size = static_cast<std::int64_t>(these.extent(0));
  return write_in_order("oktopk::intersection", exec, (size + items::width - 1) / items::width,
                        items{these.data(), size, those.data(), static_cast<std::int64_t>(those.extent(0)), out});
}

/// Indices that a rank selected and that are in the result (Algorithm 1, line 14).
template <execution_space E, gradient_index Index>
class contributed_indices {
public:
  using indices_type = array_ref<Index const, typename E::memory_space>;

  /// Both lists ascend; so does the result, which is valid until the next run.
  indices_type run(E const& exec, indices_type const& selected, indices_type const& result) {
    found_.reserve(exec, static_cast<std::int64_t>(selected.extent(0)));
    std::int64_t const count = intersection<E, Index>(exec, selected, result, found_.data());
    return indices_type(found_.data(), static_cast<std::size_t>(count));
  }

private:
  buffer<Index, typename E::memory_space> found_{"oktopk::contributed"};
};

} // namespace oktopk::detail
