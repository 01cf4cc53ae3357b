// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/collective_base.hpp>
#include <oktopk/algorithm/policies.hpp>
#include <oktopk/core/cost.hpp>
#include <oktopk/exchange/allgatherv.hpp>
#include <oktopk/exchange/split_and_reduce.hpp>
#include <oktopk/format/gap8.hpp>
#include <oktopk/partition/splitters.hpp>
#include <oktopk/sparse/combiners.hpp>
#include <oktopk/sparse/given_entries.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace oktopk {

namespace detail {

/// The numbers that make a value: itself, or the two parts of a complex number, each of which is summed by itself.
template <class Value>
struct numbers_of {
  using type = Value;
  static constexpr std::int64_t count = 1;
};

template <class Part>
struct numbers_of<Kokkos::complex<Part>> {
  using type = Part;
  static constexpr std::int64_t count = 2;
};

template <class Value>
concept summed_value = wire_value<typename numbers_of<Value>::type>;

/// "float32", "complex of float64"
template <summed_value Value>
std::string summed_value_name() {
  return (numbers_of<Value>::count == 2 ? "complex of " : "") + value_name<typename numbers_of<Value>::type>();
}

/// The same format for entries of so many numbers; a format that has no rows stays as it is.
template <sparse_format Format>
Format of_width(Format const& format, std::int64_t width) {
  if constexpr (std::is_constructible_v<Format, std::int64_t>) {
    return Format(width);
  } else {
    return format;
  }
}

/// A view of the indices, or of the values, of entries: of one dimension, or values as rows of a matrix in row-major order.
template <class V, class T, class E>
concept view_of_entries = bool(Kokkos::is_view<V>::value) && same_value_type<V, T> && accessible_from<V, E>;

/// What a rank gives to a call, as rows of the numbers that its values are made of; no entries where it has a fault.
template <execution_space E, gradient_index Index, summed_value Value>
struct given_or_fault {
  sparse_ref<Index, typename numbers_of<Value>::type, typename E::memory_space> entries;
  fault_report problem;
};

template <execution_space E, class Indices, class Values>
auto given_by(Indices const& indices, Values const& values, std::int64_t width) {
  static_assert(Indices::rank == 1 && (Values::rank == 1 || Values::rank == 2),
                "oktopk: indices have one dimension; values have one, or two as rows");
  static_assert(Values::rank == 1 || std::is_same_v<typename Values::array_layout, Kokkos::LayoutRight>,
                "oktopk: the rows of values lie one after the other: LayoutRight");
  using value = typename Values::non_const_value_type;
  using numbers = numbers_of<value>;
  given_or_fault<E, typename Indices::non_const_value_type, value> given;
  auto const count = static_cast<std::int64_t>(indices.extent(0));
  auto const size = static_cast<std::int64_t>(values.size());
  if (size != count * width) {
    given.problem = {fault::size_mismatch, size};
  } else if (!indices.span_is_contiguous() || !values.span_is_contiguous()) {
    given.problem = {fault::not_contiguous};
  }
  given.entries = {indices.data(), reinterpret_cast<typename numbers::type const*>(values.data()),
                   given.problem ? 0 : count, width * numbers::count};
  return given;
}

} // namespace detail

/// The types and policies of a sum of sparse vectors. For another one, derive and name it.
///
/// Values are float, double, integers of 32 or 64 bits, or `Kokkos::complex` of float or double.
template <detail::summed_value Value = float, gradient_index Index = std::int32_t>
struct sum_policies {
  using value_type = Value;
  using format = gap8<typename detail::numbers_of<Value>::type, Index>; ///< entries on the wire
  using combiner = sum_of<typename detail::numbers_of<Value>::type>;    ///< what becomes of equal indices
  using partitioner = splitters;                                        ///< who sums which indices
  using schedule = rotated;                                             ///< how entries reach these ranks
  using deliverer = everything;                                         ///< who gets what of the sums
};

/// Entries of a sparse vector that a collective gives: all views lie in its workspace, in the memory of its execution
/// space, and are valid until its next call.
template <gradient_index Index, class Value, class MemorySpace>
class sparse_entries {
public:
  using indices_type = array_ref<Index const, MemorySpace>;
  using values_type = array_ref<Value const, MemorySpace>;

  sparse_entries() = default;
  sparse_entries(indices_type const& indices, values_type const& values, region where)
      : indices_(indices), values_(values), region_(where) {}

  /// The number of entries.
  std::int64_t size() const { return static_cast<std::int64_t>(indices_.extent(0)); }
  /// Ascending and unique.
  indices_type const& indices() const { return indices_; }
  /// `width()` of the collective for each index, one after the other.
  values_type const& values() const { return values_; }
  /// The indices whose sums this rank has formed in the call; every index is in the region of one rank.
  region const& own_region() const { return region_; }

private:
  indices_type indices_;
  values_type values_;
  region region_;
};

/// The sum of vectors that are sparse already: each rank gives the entries that it has, and every rank gets all sums.
///
///     oktopk::sparse_sum sum(exec, comm, {.length = n});
///     auto const& all = sum(indices, values); // collective; indices in any order, also several times
///     all.indices();                          // ascending, the same on all ranks
///     all.values();                           // and their sums, to the bit
///
/// Sizes differ from rank to rank and from call to call, and may be 0. An entry is an index and a row of `width` values.
/// Entries need not ascend, and an index may be there several times: then its values are added up first, in the order in
/// which they are given. The result has every index that some rank has given, also where values add up to 0; it is
/// lossless. A value that is not finite is data like others, unless `finite` asks for an error.
///
/// **Order of sums.** Each rank owns a region of the indices, by what is there in the call (`boundaries`). It adds to 0
/// what itself has for an index, then what the rank before it has, and so on downwards, from rank 0 on to the last one.
/// So the same input gives the same bits in every run, on all ranks. With the schedule `radix` it adds sums of several
/// ranks.
///
/// **Cost** of a call and rank, for m entries here, M the most of any rank, S in the result, in P ranks, L = ceil(log2 P):
/// 2(P-1) words of sizes and 2(s+1)(P-1) of samples in L messages each (`splitters`), at most m entries in P-1 messages
/// to the ranks that sum them, S(P-1)/P sums in L messages to all, and 6(P-1) words of headers and sizes. An entry of
/// `gap8` takes its values and a byte or two, and where all ranks have the whole vector a call sends what a dense
/// reduce-scatter and allgather send. Memory: a dense array of the region that this rank sums, cleared as a whole when it is made
/// and where it is touched later, and room for min(M, its width) entries from each of up to 8 ranks.
///
/// All ranks make the object together, with the same options and policies, or get the same error. The object keeps a copy of
/// the communicator and of the instance, and its buffers from call to call; a call in steady state allocates nothing.
/// Source: split_allgather of SparCML (Renggli et al. 2019), with regions by regular sampling (Shi and Schaeffer 1992).
template <class E, class Comm, class Policies = sum_policies<>>
class sparse_sum
    : detail::checked_ranks<E, Comm>,
      public detail::collective_base<E, Comm, detail::call_state,
                                     sparse_entries<typename Policies::format::index_type,
                                                    typename Policies::value_type, typename E::memory_space>> {
  using base = typename sparse_sum::collective_base;
  using number = typename detail::numbers_of<typename Policies::value_type>::type;
  using format_type = typename Policies::format;
  using partitioner_type = typename Policies::partitioner;
  using schedule_type = typename Policies::schedule;
  using deliverer_type = typename Policies::deliverer;
  using combiner_type = typename Policies::combiner;
  static constexpr std::int64_t numbers = detail::numbers_of<typename Policies::value_type>::count;

  static_assert(sparse_format<format_type> && detail::encodes_on<format_type, E>,
                "oktopk: P::format is no sparse_format that encodes on this execution space");
  static_assert(format_type::lossless, "oktopk: sums of sparse vectors are lossless: P::format is not");
  static_assert(std::same_as<typename format_type::value_type, number>,
                "oktopk: P::format has another value type than P::value_type, whose parts it takes if that is complex");
  static_assert(detail::combiner<combiner_type, number>, "oktopk: P::combiner is no combiner of these values");
  static_assert(!detail::counts_contributors<combiner_type, number> || !schedule_type::has_stages,
                "oktopk: P::combiner counts contributors, which the stages of P::schedule do not pass on");
  static_assert(partitioner<partitioner_type, E, Comm>, "oktopk: P::partitioner is no partitioner");
  static_assert(schedule<schedule_type>, "oktopk: P::schedule is no schedule");
  static_assert(deliverer<deliverer_type, E, Comm, format_type>, "oktopk: P::deliverer is no deliverer");

public:
  using index_type = typename format_type::index_type;
  using value_type = typename Policies::value_type;
  using entries_type = sparse_entries<index_type, value_type, typename E::memory_space>;

  /// Only `length` is needed. `unique`, `ascending` and `finite` are this rank's own; the others are the same on all ranks.
  struct options {
    detail::element_count length = 0; ///< of the vectors: indices lie in [0, length)
    detail::element_count width = 1;  ///< values of each index, a row; at least 1
    bool unique = false;    ///< a promise that no index is given twice in a call; an error on all ranks if it is broken
    bool ascending = false; ///< a promise that each index is above the one before; likewise
    bool finite = false;    ///< a value that is NaN or infinite is an error on all ranks
    typename partitioner_type::options partition{}; ///< who sums which indices
    typename schedule_type::options schedule{};     ///< how entries reach these ranks
    typename deliverer_type::options deliver{};     ///< who gets what of the sums
    format_type format{};                           ///< of the entries on the wire; its width is that above

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("format", how.format, "entries on the wire");
      visit("unique", how.unique, "promises that no index is given twice");
      visit("ascending", how.ascending, "promises that indices ascend");
      visit("finite", how.finite, "refuses values that are not finite");
      visit("partition", how.partition, "regions of the ranks");
      visit("reduce", how.schedule, "how entries reach the owners of their regions");
    }
  };

  /// Collective. Throws an `error`, the same on every rank: `option_out_of_range`, `index_overflow` (a length that the
  /// index type cannot count), `ranks_disagree`.
  sparse_sum(E exec, Comm comm, options const& how) : sparse_sum(std::move(exec), std::move(comm), how, "sparse_sum") {}

  /// Values of an entry.
  std::int64_t width() const { return width_; }

  /// Who has summed which indices in the last call, the same on all ranks: P+1 boundaries, from 0 to the length.
  std::span<std::int64_t const> boundaries() const { return regions_.boundaries(); }

  /// The most words that this rank has sent in its last call, for the sizes that it had.
  double bound_words() const {
    detail::call_size const& last = last_;
    detail::call_size unknown = last; // sums: `deliver_` knows how many there were
    unknown.brought = 0;
    unknown.selected.reset();
    double const of_pairs = 2.0 * (last.ranks - 1) * static_cast<double>(receivers_.size());
    return of_pairs +
           (counts_.bound_words(last.ranks) + reduce_.bound_words(last) + deliver_.bound_words(unknown))
               .total(base::comm_) +
           partitioner_.bound_words(last.ranks, last.k, true);
  }

  /// The work of a call of `entries` entries on each rank, which lie anywhere.
  static detail::call_cost expected_cost(options const& how, int ranks, double entries) {
    auto const n = static_cast<double>(static_cast<std::int64_t>(how.length));
    format_type const format = detail::of_width(how.format, how.width * numbers);
    double const rounds = detail::doubling_steps(ranks);
    return detail::call_cost{
               .messages = 2 * rounds,
               .bytes =
                   8.0 * (ranks - 1) +
                   4 * partitioner_type(how.partition).bound_words(ranks, static_cast<std::int64_t>(entries), true),
               .selected = entries,
               .passes = 1} +
           decltype(reduce_)::expected_cost(format, schedule_type(how.schedule), ranks, how.length, entries) +
           decltype(deliver_)::expected_cost(deliverer_type(how.deliver), format, ranks, n,
                                             detail::expected_union(ranks, entries, n) / ranks, entries);
  }

  /// The sum of what all ranks give. Collective. Reads the views, which kernels of `E` reach: indices of `index_type`, and
  /// `width()` values for each, in one dimension or as the rows of a matrix in row-major order. Both are contiguous.
  ///
  /// Errors on all ranks, of the lowest rank that has one, before an entry is sent: `size_mismatch`, `not_contiguous`,
  /// `index_out_of_range`, `not_ascending`, `repeated_index` and `non_finite` for what was promised.
  template <detail::view_of_entries<index_type, E> Indices, detail::view_of_entries<value_type, E> Values>
  entries_type const& operator()(Indices const& indices, Values const& values) {
    return sum_given(detail::given_by<E>(indices, values, width_));
  }

protected:
  [[gnu::cold]] sparse_sum(E exec, Comm comm, options const& how, char const* name)
      : base(std::move(exec), std::move(comm), how.length, name), width_(how.width),
        format_(detail::of_width(how.format, std::max<std::int64_t>(how.width, 1) * numbers)),
        promised_{how.unique, how.ascending}, finite_(how.finite), partitioner_(how.partition),
        given_(static_cast<width_type>(format_.width())), partition_(partitioner_),
        reduce_(schedule_type(how.schedule), format_), deliver_(deliverer_type(how.deliver), format_),
        restored_("oktopk::sparse_sum::restored", width_type(format_.width())) {
    agreement terms(name);
    detail::check_length<index_type>(how.length, terms);
    if (width_ < 1 || format_.width() != width_ * numbers) {
      terms.note(fault::option_out_of_range,
                 "width = " + std::to_string(width_) +
                     (width_ < 1 ? " is not positive"
                                 : " is more than the format " + std::string(format_.name()) + " takes, with " +
                                       std::to_string(numbers) + " numbers a value"));
    }
    if constexpr (requires { how.deliver.root; }) {
      if (how.deliver.root >= base::comm_.size()) {
        terms.note(fault::option_out_of_range, "root = " + std::to_string(how.deliver.root) + " is none of the ranks");
      }
    }
    terms.fact("length", base::length_).fact("width", width_).fact("format", format_.name());
    terms.fact("values", detail::summed_value_name<value_type>()).fact("combiner", combiner_type::name());
    detail::check_policy("partitioner", partitioner_, terms);
    detail::check_policy("schedule", schedule_type(how.schedule), terms);
    detail::check_policy("deliverer", deliverer_type(how.deliver), terms);
    terms.check_on(base::comm_);
    last_.ranks = base::comm_.size();
    last_.length = base::length_;
  }

  // A call whose views are known as pointers.
  entries_type const& sum_given(detail::given_or_fault<E, index_type, value_type> const& given) {
    return base::make_call("oktopk::sparse_sum", 0, [&](call_context<E, Comm>& call, detail::call_state&) {
      auto const mine = source(call, given.entries, given.problem);
      detail::rank_pairs pairs;
      auto const counts = count(call, mine, pairs); // throws the faults of all ranks
      std::int64_t const most = *std::max_element(counts.begin(), counts.end());
      // What a schedule plans by: the same on all ranks, and mostly that of the last call.
      call.k = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(most)));
      last_.k = call.k;
      last_.brought = mine.size();
      last_.selected = most;
      last_.to_others = static_cast<double>(mine.size());
      if constexpr (!partitioner_type::is_known_before) {
        make_regions(call, mine);
      }
      auto const reduced = reduce_.run(call, {mine, most, pairs}, regions_);
      auto const result = deliver_.run(call, reduced, regions_, none_);
      return as_entries(regions_.restored(call.exec, result.all, restored_), regions_.region_of(call.comm.rank()));
    });
  }

private:
  using given_type = sparse_ref<index_type, number, typename E::memory_space>;
  using width_type = detail::width_of<format_type>;

  // The entries of this rank, ascending and unique; none if it has a fault.
  given_type source(call_context<E, Comm>& call, given_type const& given, detail::fault_report const& problem) {
    detail::profiling_region const profiled("oktopk::given_entries");
    detail::stopwatch const timed(call.statistics.select_seconds);
    call.note(problem);
    auto const [entries, broken] = given_.run(call.exec, given, call.length, promised_);
    call.note(broken);
    if constexpr (std::is_floating_point_v<number>) {
      if (finite_ && !call.faults) {
        std::int64_t const bad = detail::first_non_finite<E, number>(call.exec, given.values);
        if (bad < static_cast<std::int64_t>(given.values.extent(0))) {
          call.note(detail::fault_at<E, index_type>(call.exec, given.indices, bad / format_.width(),
                                                    detail::fault_subject::value));
        }
      }
    }
    call.statistics.local_selected = call.faults ? 0 : entries.size();
    return call.faults ? given_type() : entries;
  }

  void make_regions(call_context<E, Comm>& call, given_type const& mine) {
    constexpr double any_load = std::numeric_limits<double>::infinity();
    regions_.assign(call.exec, partition_.run(call, mine.indices, false), partitioner_.blocks(), any_load, true);
  }

  // The number of entries of each rank; and, where that can be known now, which ranks have some for which others.
  std::span<std::int64_t const> count(call_context<E, Comm>& call, given_type const& mine,
                                      [[maybe_unused]] detail::rank_pairs& pairs) {
    if constexpr (partitioner_type::is_known_before) {
      make_regions(call, mine);
      detail::split_positions<E, index_type>(call.exec, mine.indices, regions_.boundaries(), positions_);
      auto const ranks = static_cast<std::size_t>(call.comm.size());
      receivers_.assign((ranks + 63) / 64, 0);
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        bool const has = positions_.host()[rank + 1] > positions_.host()[rank];
        receivers_[rank / 64] |= static_cast<std::int64_t>(std::uint64_t(has ? 1 : 0) << (rank % 64));
      }
      auto const counts = counts_.run_with(call, mine.size(), receivers_, pairs_);
      pairs = {pairs_, receivers_.size()};
      return counts;
    } else {
      return counts_.run(call, mine.size());
    }
  }

  static entries_type as_entries(given_type const& sums, region own) {
    using values_type = typename entries_type::values_type;
    return {sums.indices,
            values_type(reinterpret_cast<value_type const*>(sums.values.data()), sums.values.extent(0) / numbers), own};
  }

  std::int64_t width_;
  format_type format_;
  detail::entry_promises promised_;
  bool finite_;
  partitioner_type partitioner_;
  detail::given_entries<E, index_type, number, combiner_type, width_type> given_;
  detail::count_gathering<Comm> counts_;
  typename partitioner_type::template step<E, Comm> partition_;
  regions<E> regions_;
  detail::shared_numbers<std::int64_t, E> positions_{"oktopk::sparse_sum::positions"}; // of regions in the entries
  std::vector<std::int64_t> receivers_;                                                // bits: ranks that get entries
  std::vector<std::int64_t> pairs_;                                                    // the same of all ranks
  detail::split_and_reduce<E, Comm, format_type, schedule_type, combiner_type> reduce_;
  typename deliverer_type::template step<E, Comm, format_type> deliver_;
  detail::entries_buffer<index_type, number, E, width_type> restored_;
  detail::no_state none_;
  detail::call_size last_;
};

/// Deduces from options in braces, as `ok_topk` does.
template <class E, class Comm, class Options = typename sparse_sum<E, Comm>::options>
sparse_sum(E, Comm, Options const&) -> sparse_sum<E, Comm>;

} // namespace oktopk
