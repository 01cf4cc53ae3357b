// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/sparse/arithmetic.hpp>

#include <limits>
#include <optional>

namespace oktopk {

namespace detail {

/// How values with the same index become one. `identity()` changes nothing that it is combined with; `combine(a, b)` is
/// called in a fixed order, so it need not be associative to the bit; `is_fault(x)` is true of a result that the call
/// must not return. Kernels call all three. A combiner of a collective has a `name()` as well, which ranks compare.
template <class C, class Value>
concept combiner = requires(Value value) {
  { C::identity() } -> std::same_as<Value>;
  { C::combine(value, value) } -> std::same_as<Value>;
  { C::is_fault(value) } -> std::same_as<bool>;
};

/// A combiner whose result is `finish(combined, contributors)`, by the number of lists that had the index.
template <class C, class Value>
concept counts_contributors = combiner<C, Value> && requires(Value value, std::int32_t contributors) {
  { C::finish(value, contributors) } -> std::same_as<Value>;
};

/// For a combiner whose results are never a fault: nobody looks for one.
struct no_fault {
  template <wire_value Value>
  KOKKOS_INLINE_FUNCTION static constexpr bool is_fault(Value) {
    return false;
  }
};

} // namespace detail

/// The sum. `Fault` says which results are an error: none, or with `non_finite_fault` those that are not finite, as gradients
/// have it.
template <wire_value Value, class Fault = detail::no_fault>
struct sum_of : Fault {
  static std::string name() { return "sum"; }
  KOKKOS_INLINE_FUNCTION static constexpr Value identity() { return 0; }
  KOKKOS_INLINE_FUNCTION static constexpr Value combine(Value a, Value b) { return static_cast<Value>(a + b); }
};

using detail::non_finite_fault; ///< for a combiner of gradients: a result that is not finite is an error

namespace detail {

/// The touched places of a word of the bitmap, cleared as they are written; on a device it also looks for faults.
template <execution_space E, gradient_index Index, wire_value Value, combiner<Value> Combiner, class Width>
struct touched_items {
  static constexpr bool single = false;
  static constexpr std::int64_t largest_index = std::numeric_limits<std::int64_t>::max();

  Value* sums;
  std::uint64_t* touched;
  std::int64_t begin;
  Index* indices;
  Value* values;
  std::int64_t* noted; ///< `largest_index` less the least index of a fault; 0 if there is none
  Width width;
  std::int32_t* counts; ///< of contributors, if they are counted

  KOKKOS_INLINE_FUNCTION std::int64_t count(std::int64_t word) const { return popcount(touched[word]); }

  KOKKOS_INLINE_FUNCTION std::int64_t write(std::int64_t word, std::int64_t position) const {
    std::int64_t const first = position;
    for (std::uint64_t left = touched[word]; left != 0; left &= left - 1, ++position) {
      std::int64_t const place = word * 64 + lowest_bit(left);
      indices[position] = static_cast<Index>(begin + place);
      for (std::int64_t j = 0; j < width; ++j) {
        Value sum = sums[place * width + j];
        if constexpr (counts_contributors<Combiner, Value>) {
          sum = Combiner::finish(sum, counts[place]);
        }
        values[position * width + j] = sum;
        sums[place * width + j] = Combiner::identity();
        if constexpr (is_device<E>) {
          if (Combiner::is_fault(sum)) {
            Kokkos::atomic_fetch_max(noted, largest_index - (begin + place));
          }
        }
      }
      if constexpr (counts_contributors<Combiner, Value>) {
        counts[place] = 0;
      }
    }
    if (position > first) { // most words are empty, and stay unwritten
      touched[word] = 0;
    }
    return position - first;
  }
};

template <execution_space E, gradient_index Index, wire_value Value, combiner<Value> Combiner, class Width>
struct region_sum_addition {
  static constexpr std::int64_t ahead = 24;

  sparse_ref<Index, Value, typename E::memory_space> entries;
  std::int64_t last;
  std::int64_t begin;
  Value* sums;
  std::uint64_t* touched;
  Width width;
  std::int32_t* counts;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    // The sums are far apart and have left the cache since the last call.
    std::int64_t const later = static_cast<std::int64_t>(entries.indices(i + ahead < last ? i + ahead : last));
    prefetch_for_writing<E>(&sums[(later - begin) * width]);
    std::int64_t const place = static_cast<std::int64_t>(entries.indices(i)) - begin;
    for (std::int64_t j = 0; j < width; ++j) {
      sums[place * width + j] = Combiner::combine(sums[place * width + j], entries.values(i * width + j));
    }
    set_bits<E>(&touched[place / 64], std::uint64_t(1) << (place % 64));
    if constexpr (counts_contributors<Combiner, Value>) {
      counts[place] += 1;
    }
  }
};

/// Adds the values of a list that has every place.
template <wire_value Value, combiner<Value> Combiner>
struct region_sum_full_addition {
  Value const* values;
  Value* sums;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { sums[i] = Combiner::combine(sums[i], values[i]); }
};

/// And marks every place as touched.
struct touch_all {
  std::int64_t places;
  std::uint64_t* touched;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t word) const {
    std::int64_t const left = places - word * 64;
    touched[word] = left >= 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << left) - 1;
  }
};

} // namespace detail

/// The sums of the region that a rank owns, or what another combiner makes of the values of each index. `Width` is the type
/// of the number of values of an entry, each of which is combined by itself.
///
/// A dense array of the region's width and a bitmap of the places that were touched. Only touched places are ever
/// cleared, and only the bitmap (1/64 of the places) is read in full. Additions of one call go to different places, so
/// they need no atomics, and calls are in a fixed order: the sums are the same to the bit in every run.
template <gradient_index Index, wire_value Value, execution_space E,
          detail::combiner<Value> Combiner = sum_of<Value, non_finite_fault>, class Width = detail::width_of_one>
class region_sum {
public:
  using memory_space = typename E::memory_space;
  using entries_type = sparse_ref<Index, Value, memory_space>;

  /// Sums, and the fault of the one with the least index, if any.
  struct checked_sums {
    entries_type sums;
    detail::fault_report fault;
  };

  explicit region_sum(Width values_of_each = Width()) : width_(values_of_each) {}

  /// Starts with an empty region, also after a call that was given up before `extract`. All entries added until
  /// `extract` must lie inside; if no more than `most` are added, `extract` allocates nothing.
  void open(E const& exec, region where, std::int64_t most = 0) {
    if (filled_) { // cleared without memory for the entries, which may be missing
      detail::fill_array("oktopk::region_sum::clear", exec, sums_.data(), where_.width() * width_,
                         Combiner::identity());
      detail::fill_array("oktopk::region_sum::clear", exec, touched_.data(), words(), std::uint64_t(0));
      if constexpr (counts) {
        detail::fill_array("oktopk::region_sum::clear", exec, counts_.data(), where_.width(), std::int32_t(0));
      }
      filled_ = false;
    }
    where_ = where;
    std::int64_t const room = sums_.capacity();
    sums_.reserve(exec, where.width() * width_);
    if (__builtin_bit_cast(detail::bits_of<Value>, Combiner::identity()) != 0 && sums_.capacity() > room) {
      detail::fill_array("oktopk::region_sum::clear", exec, sums_.data(), sums_.capacity(), Combiner::identity());
    }
    touched_.reserve(exec, words());
    if constexpr (counts) {
      counts_.reserve(exec, where.width());
    }
    if constexpr (detail::is_device<E>) {
      noted_.reserve(exec, 1);
    }
    counted_ = 0;
    reserve_entries(exec, most);
  }

  /// Adds entries with unique indices; waits for nothing.
  void add(E const& exec, entries_type entries) {
    counted_ += entries.size();
    filled_ = true;
    // A selection of a gradient never fills a region.
    if constexpr (!std::is_same_v<Width, detail::width_of_one> && !counts) {
      if (entries.size() == where_.width()) {
        add_all(exec, entries.values.data());
        return;
      }
    }
    using addition = detail::region_sum_addition<E, Index, Value, Combiner, Width>;
    Kokkos::parallel_for(
        "oktopk::region_sum::add", detail::index_range<E>(exec, 0, entries.size()),
        addition{entries, entries.size() - 1, where_.begin, sums_.data(), touched_.data(), width_, counts_.data()});
  }

  /// Adds a value for every place of the region; for combiners that do not count contributors.
  void add_all(E const& exec, Value const* values) {
    counted_ = where_.width();
    filled_ = true;
    Kokkos::parallel_for("oktopk::region_sum::add_all",
                         detail::index_range<E>(exec, 0, where_.width() * std::int64_t(width_)),
                         detail::region_sum_full_addition<Value, Combiner>{values, sums_.data()});
    Kokkos::parallel_for("oktopk::region_sum::add_all", detail::index_range<E>(exec, 0, words()),
                         detail::touch_all{where_.width(), touched_.data()});
  }

  /// Writes the touched places, ascending, to arrays valid until the next call, and clears them. Their indices begin at
  /// `begin`, if it is given, in place of the region's begin. Waits for `exec`.
  entries_type extract(E const& exec, std::optional<std::int64_t> begin = {}) {
    reserve_entries(exec, counted_);
    filled_ = false;
    if constexpr (detail::is_device<E>) {
      *noted_.host() = 0;
      noted_.to_device(exec, 1);
    }
    std::int64_t const count =
        detail::write_in_order("oktopk::region_sum::extract", exec, words(),
                               items{sums_.data(), touched_.data(), begin.value_or(where_.begin), indices_.data(),
                                     values_.data(), noted_.device().data(), width_, counts_.data()});
    return {indices_.data(), values_.data(), count, width_};
  }

  /// The same, and looks for a fault: on a device in the same kernel.
  checked_sums extract_checked(E const& exec, std::optional<std::int64_t> begin = {}) {
    using detail::fault_report;
    entries_type const sums = extract(exec, begin);
    if constexpr (std::is_base_of_v<detail::no_fault, Combiner>) {
      return {sums, {}};
    } else if constexpr (detail::is_device<E>) {
      noted_.to_host(exec, 1, "oktopk::region_sum::extract");
      std::int64_t const noted = *noted_.host();
      return {sums,
              noted == 0 ? fault_report() : fault_report{fault::non_finite, items::largest_index - noted, subject}};
    } else {
      std::int64_t const first = detail::first_non_finite<E, Value, Combiner>(exec, sums.values);
      return {sums, detail::fault_at<E, Index>(exec, sums.indices, first / width_, subject)};
    }
  }

private:
  using items = detail::touched_items<E, Index, Value, Combiner, Width>;
  static constexpr detail::fault_subject subject = detail::fault_subject::sum;

  std::int64_t words() const { return (where_.width() + 63) / 64; }

  // Each place is an entry once, however often it was added to.
  void reserve_entries(E const& exec, std::int64_t added) {
    std::int64_t const entries = added < where_.width() ? added : where_.width();
    indices_.reserve(exec, entries);
    values_.reserve(exec, entries * width_);
  }

  static constexpr bool counts = detail::counts_contributors<Combiner, Value>;

  Width width_;
  region where_;
  std::int64_t counted_ = 0;
  bool filled_ = false; // since the last `extract`
  // The identity between calls; growth gives fresh zeros.
  detail::buffer<Value, memory_space> sums_{"oktopk::region_sum::sums", true};
  detail::buffer<std::uint64_t, memory_space> touched_{"oktopk::region_sum::touched", true};
  detail::buffer<std::int32_t, memory_space> counts_{"oktopk::region_sum::counts", true};
  detail::buffer<Index, memory_space> indices_{"oktopk::region_sum::indices"};
  detail::buffer<Value, memory_space> values_{"oktopk::region_sum::values"};
  detail::shared_numbers<std::int64_t, E> noted_{"oktopk::region_sum::noted"};
};

} // namespace oktopk
