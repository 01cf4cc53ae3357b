// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/options.hpp>
#include <oktopk/core/write_in_order.hpp>
#include <oktopk/select/concept.hpp>
#include <oktopk/select/exact.hpp>
#include <oktopk/select/kernel/source.hpp>

#include <algorithm>
#include <bit>

namespace oktopk {

namespace detail {

/// A permutation of [0, size) that two numbers determine: a Feistel network (Luby and Rackoff 1988) over the next power
/// of two, walked until it is back inside (Black and Rogaway 2002), twice at most on the average.
struct index_shuffle {
  static constexpr int rounds = 8;

  std::uint64_t size;
  int low_width;
  std::uint64_t low_mask;
  std::uint64_t high_mask;
  std::uint64_t keys[rounds]{};

  index_shuffle(std::int64_t count, std::int64_t seed, std::int64_t draw) : size(static_cast<std::uint64_t>(count)) {
    int const width = std::max(static_cast<int>(std::bit_width(size - 1)), 2);
    low_width = (width + 1) / 2;
    low_mask = (std::uint64_t(1) << low_width) - 1;
    high_mask = (std::uint64_t(1) << (width - low_width)) - 1;
    std::uint64_t state = mixed(static_cast<std::uint64_t>(seed) + mixed(static_cast<std::uint64_t>(draw) + 1));
    for (std::uint64_t& key : keys) {
      state += 0x9e3779b97f4a7c15U;
      key = mixed(state);
    }
  }

  /// The image of a place.
  KOKKOS_INLINE_FUNCTION std::uint64_t operator()(std::uint64_t place) const {
    do {
      std::uint64_t low = place & low_mask;
      std::uint64_t high = place >> low_width;
      for (int round = 0; round < rounds; round += 2) {
        high ^= mixed(low ^ keys[round]) & high_mask;
        low ^= mixed(high ^ keys[round + 1]) & low_mask;
      }
      place = high << low_width | low;
    } while (place >= size);
    return place;
  }

private:
  /// The last step of splitmix64, which spreads each bit over all bits.
  KOKKOS_INLINE_FUNCTION static std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
  }
};

/// Marks the places to which the first k numbers are mapped, as bits in words of 64.
struct mark_shuffled {
  index_shuffle shuffle;
  std::int64_t* words;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    std::uint64_t const place = shuffle(static_cast<std::uint64_t>(i));
    auto const bit = static_cast<std::int64_t>(std::uint64_t(1) << (place & 63));
    Kokkos::atomic_fetch_add(&words[place >> 6], bit); // each is added once
  }
};

/// The entries at the marked places.
template <gradient_index Index, gradient_value Value, class MemorySpace>
struct marked_entries {
  static constexpr bool single = false;

  std::int64_t const* words;
  candidates<Index, Value, MemorySpace> from;
  Index* indices;
  Value* values;

  KOKKOS_INLINE_FUNCTION std::int64_t count(std::int64_t word) const {
    return popcount(static_cast<std::uint64_t>(words[word]));
  }

  KOKKOS_INLINE_FUNCTION std::int64_t write(std::int64_t word, std::int64_t place) const {
    for (auto ones = static_cast<std::uint64_t>(words[word]); ones != 0; ones &= ones - 1) {
      std::int64_t const i = 64 * word + lowest_bit(ones);
      indices[place] = from.index(i);
      values[place] = from.values.data()[i];
      place += 1;
    }
    return count(word);
  }
};

} // namespace detail

/// Random-k (Stich et al. 2018, "Sparsified SGD with memory"): exactly k entries at pseudo-random places, uniform and
/// without replacement, whatever the values are. The baseline that a selection by magnitude is compared with.
///
/// The places depend only on the seed, the iteration, k and the number of values. These are the same on all ranks, so
/// all ranks select the same indices and their sums stay k entries. They are also the same after a state was saved and
/// loaded, because the algorithm's state has the iteration. Values that are not finite are found wherever they are:
/// then the k largest are selected.
///
/// Reads the values once, to find those that are not finite, and one bit for each; all other work is proportional to k.
/// Carries nothing from call to call. For local selections.
struct random_k : selector_base {
  struct options {
    std::int64_t seed = 0; ///< other places for another seed

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("seed", how.seed, "of the places that are drawn, any integer");
    }
  };

  template <gradient_value Value>
  using state = detail::no_state;

  random_k() : random_k(options{}) {}
  explicit random_k(options how) : options_(how) {}

  static std::string name() { return "random_k"; }
  std::string describe() const { return detail::describe_options(name(), options_); }
  std::string problem() const { return {}; }
  bool bounded() const { return true; }
  selection_promises promises() const { return {.rule = describe(), .low = 1, .high = 1}; }
  std::int64_t capacity(std::int64_t k, std::int64_t length) const { return std::min(k, length); }

  template <execution_space E, gradient_index Index, gradient_value Value, selection_group Group,
            selection_source Source>
  selection<Index, Value, typename E::memory_space> select(selection_context<E, Index, Value, Group> const& context,
                                                           Source const& source, state<Value>&) const {
    auto const& [exec, k, iteration, group, workspace] = context;
    source.materialize(exec);
    auto const from = source.materialized();
    std::int64_t const count = capacity(k, from.size());
    if (count > 0 && detail::first_non_finite<E, Value>(exec, from.values) < from.size()) {
      auto const largest = detail::largest_entries<E, Index, Value>(exec, from, count, workspace);
      return {largest, group.gather_counts(count)};
    }
    if (count > 0) {
      std::int64_t const words = (from.size() + 63) / 64;
      workspace.reserve(exec, count);
      workspace.chunk_counts.reserve(exec, words);
      std::int64_t* const marks = workspace.chunk_counts.data();
      detail::fill_array("oktopk::select::clear_marks", exec, marks, words, 0);
      Kokkos::parallel_for("oktopk::select::mark_places", detail::index_range<E>(exec, 0, count),
                           detail::mark_shuffled{{from.size(), options_.seed, iteration}, marks});
      detail::write_in_order("oktopk::select::write_marked", exec, words,
                             detail::marked_entries<Index, Value, typename E::memory_space>{
                                 marks, from, workspace.indices.data(), workspace.values.data()});
    }
    return {workspace.entries(count), group.gather_counts(count), false, true};
  }

private:
  options options_;
};

} // namespace oktopk
