// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/sparse/region_sum.hpp>

#include <bit>
#include <limits>
#include <utility>

namespace oktopk::detail {

/// Whether a list ascends within [0, length). A CPU looks at the indices of a block together, as in `fault_search`.
template <execution_space E, gradient_index Index>
struct ascent_check {
  static constexpr std::int64_t width = is_device<E> ? 1 : 1024;

  Index const* indices;
  std::int64_t size;
  std::int64_t length;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block, std::int64_t& most) const {
    std::int64_t const begin = block * width;
    std::int64_t const end = begin + width < size ? begin + width : size;
    std::int32_t wrong = begin == 0 && indices[0] < 0 ? 1 : 0;
    wrong |= end == size && static_cast<std::int64_t>(indices[size - 1]) >= length ? 1 : 0;
    for (std::int64_t i = begin > 0 ? begin : 1; i < end; ++i) {
      wrong |= indices[i] <= indices[i - 1] ? 1 : 0;
    }
    most = wrong > most ? wrong : most;
  }
};

/// The first position of a list whose index lies outside, or else the first whose index is not above the one before.
template <gradient_index Index>
struct order_search {
  Index const* indices;
  std::int64_t size;
  std::int64_t length;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::int64_t& least) const {
    auto const index = static_cast<std::int64_t>(indices[i]);
    bool const outside = index < 0 || index >= length;
    bool const descends = i > 0 && indices[i] <= indices[i - 1];
    std::int64_t const found = outside ? i : descends ? size + i : 2 * size;
    least = found < least ? found : least;
  }
};

/// A digit of all keys in stretches, each of one thread: counted, then moved to their places in the same order.
template <gradient_index Index>
struct digit_stretches {
  static constexpr int bits = 8;
  static constexpr std::int64_t digits = std::int64_t(1) << bits;

  Index const* keys;
  Index const* places; ///< null stands for 0, 1, 2, ...
  std::int64_t size;
  std::int64_t stretch;   ///< the keys of one
  std::int64_t stretches; ///< of them
  int shift;
  Index* counts; ///< by digit, then by stretch

  KOKKOS_INLINE_FUNCTION std::int64_t digit_of(Index key) const {
    return (static_cast<std::int64_t>(key) >> shift) & (digits - 1);
  }
};

template <gradient_index Index>
struct digit_counting : digit_stretches<Index> {
  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t which) const {
    for (std::int64_t digit = 0; digit < this->digits; ++digit) {
      this->counts[digit * this->stretches + which] = 0;
    }
    std::int64_t const begin = which * this->stretch;
    std::int64_t const end = begin + this->stretch < this->size ? begin + this->stretch : this->size;
    for (std::int64_t i = begin; i < end; ++i) {
      this->counts[this->digit_of(this->keys[i]) * this->stretches + which] += 1;
    }
  }
};

template <gradient_index Index>
struct exclusive_sum {
  Index* counts;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::int64_t& sum, bool final) const {
    auto const count = static_cast<std::int64_t>(counts[i]);
    if (final) {
      counts[i] = static_cast<Index>(sum);
    }
    sum += count;
  }
};

template <gradient_index Index>
struct digit_moving : digit_stretches<Index> {
  Index* to_keys;
  Index* to_places;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t which) const {
    std::int64_t const begin = which * this->stretch;
    std::int64_t const end = begin + this->stretch < this->size ? begin + this->stretch : this->size;
    for (std::int64_t i = begin; i < end; ++i) {
      Index const key = this->keys[i];
      Index& next = this->counts[this->digit_of(key) * this->stretches + which];
      to_keys[next] = key;
      to_places[next] = this->places == nullptr ? static_cast<Index>(i) : this->places[i];
      next += 1;
    }
  }
};

/// Runs of equal keys, each of which becomes one entry: its values are combined in the order in which they were given.
template <gradient_index Index, wire_value Value, combiner<Value> Combiner, class Width>
struct equal_keys {
  static constexpr bool single = true;

  Index const* keys; ///< ascending
  Index const* places;
  std::int64_t size;
  Value const* given;
  Index* indices;
  Value* values;
  Width width;

  KOKKOS_INLINE_FUNCTION std::int64_t count(std::int64_t i) const { return i == 0 || keys[i] != keys[i - 1] ? 1 : 0; }

  KOKKOS_INLINE_FUNCTION std::int64_t write(std::int64_t i, std::int64_t position) const {
    indices[position] = keys[i];
    for (std::int64_t j = 0; j < width; ++j) {
      Value all = given[static_cast<std::int64_t>(places[i]) * width + j];
      for (std::int64_t next = i + 1; next < size && keys[next] == keys[i]; ++next) {
        all = Combiner::combine(all, given[static_cast<std::int64_t>(places[next]) * width + j]);
      }
      values[position * width + j] = all;
    }
    return 1;
  }
};

/// The least key that is there more than once.
template <gradient_index Index>
struct repeated_search {
  Index const* keys;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::int64_t& least) const {
    auto const key = static_cast<std::int64_t>(keys[i]);
    least = keys[i + 1] == keys[i] && key < least ? key : least;
  }
};

/// What a caller promises of entries that it gives; what is not promised is made so.
struct entry_promises {
  bool unique = false;    ///< no index is there twice
  bool ascending = false; ///< each index is above the one before
};

/// Entries as a program has them, in any order, brought into ascending order, the values of equal indices combined in the
/// order in which they were given.
///
/// Entries that ascend already are read once, their indices alone, and stay where they are. Others are sorted, by a stable
/// radix sort of indices and positions: a pass for each 8 bits of the length. Memory: four arrays of indices, and one
/// list of entries. Sends nothing.
template <execution_space E, gradient_index Index, wire_value Value, combiner<Value> Combiner, class Width>
class given_entries {
public:
  using entries_type = sparse_ref<Index, Value, typename E::memory_space>;

  explicit given_entries(Width values_of_each) : sorted_("oktopk::given_entries::sorted", values_of_each) {}

  /// The entries, valid until the next run and as long as the given ones, and a fault in what was promised. Waits for
  /// `exec`.
  std::pair<entries_type, fault_report> run(E const& exec, entries_type const& given, std::int64_t length,
                                            entry_promises promised) {
    std::int64_t const size = given.size();
    if (size > std::numeric_limits<Index>::max()) {
      return {{}, {fault::index_overflow}};
    }
    using check = ascent_check<E, Index>;
    std::int64_t wrong = 0;
    Kokkos::parallel_reduce("oktopk::given_entries::ascent",
                            index_range<E>(exec, 0, (size + check::width - 1) / check::width),
                            check{given.indices.data(), size, length}, Kokkos::Max<std::int64_t>(wrong));
    if (wrong <= 0) { // the least number there is, where there are no blocks
      return {given, {}};
    }
    std::int64_t found = 2 * size;
    Kokkos::parallel_reduce("oktopk::given_entries::order", index_range<E>(exec, 0, size),
                            order_search<Index>{given.indices.data(), size, length}, Kokkos::Min<std::int64_t>(found));
    if (found < size) {
      return {{}, {fault::index_out_of_range, found}};
    }
    if (promised.ascending) {
      return {{}, {fault::not_ascending, found - size}};
    }
    auto const [keys, places] = sort(exec, given.indices.data(), size, length);
    sorted_.reserve(exec, size);
    std::int64_t const count = write_in_order(
        "oktopk::given_entries::combine", exec, size,
        equal_keys<Index, Value, Combiner, Width>{keys, places, size, given.values.data(), sorted_.indices.data(),
                                                  sorted_.values.data(), sorted_.width});
    if (promised.unique && count < size) {
      return {{}, {fault::repeated_index, first_repeated(exec, keys, size)}};
    }
    return {sorted_.entries(count), {}};
  }

private:
  static constexpr std::int64_t keys_of_device_thread = 256;

  static std::int64_t first_repeated(E const& exec, Index const* keys, std::int64_t size) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    Kokkos::parallel_reduce("oktopk::given_entries::repeated", index_range<E>(exec, 0, size - 1),
                            repeated_search<Index>{keys}, Kokkos::Min<std::int64_t>(least));
    return least;
  }

  // The keys, ascending, and the positions where they were.
  std::pair<Index const*, Index const*> sort(E const& exec, Index const* keys, std::int64_t size, std::int64_t length) {
    std::int64_t const threads = is_device<E> ? (size + keys_of_device_thread - 1) / keys_of_device_thread
                                              : std::int64_t(std::max(1, exec.concurrency()));
    std::int64_t const stretch = (size + threads - 1) / threads;
    for (int which = 0; which < 2; ++which) {
      keys_[which].reserve(exec, size);
      places_[which].reserve(exec, size);
    }
    counts_.reserve(exec, digit_stretches<Index>::digits * threads);
    Index const* places = nullptr;
    auto const key_bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(length - 1)));
    for (int shift = 0, to = 0; shift == 0 || shift < key_bits; shift += digit_stretches<Index>::bits, to = 1 - to) {
      digit_stretches<Index> const all{keys, places, size, stretch, threads, shift, counts_.data()};
      Kokkos::parallel_for("oktopk::given_entries::count", index_range<E>(exec, 0, threads),
                           digit_counting<Index>{all});
      Kokkos::parallel_scan("oktopk::given_entries::places", index_range<E>(exec, 0, all.digits * threads),
                            exclusive_sum<Index>{counts_.data()});
      Kokkos::parallel_for("oktopk::given_entries::move", index_range<E>(exec, 0, threads),
                           digit_moving<Index>{all, keys_[to].data(), places_[to].data()});
      keys = keys_[to].data();
      places = places_[to].data();
    }
    return {keys, places};
  }

  using indices_type = buffer<Index, typename E::memory_space>;

  indices_type keys_[2] = {indices_type("oktopk::given_entries::keys"), indices_type("oktopk::given_entries::keys")};
  indices_type places_[2] = {indices_type("oktopk::given_entries::places"),
                             indices_type("oktopk::given_entries::places")};
  indices_type counts_{"oktopk::given_entries::counts"};
  entries_buffer<Index, Value, E, Width> sorted_;
};

} // namespace oktopk::detail
