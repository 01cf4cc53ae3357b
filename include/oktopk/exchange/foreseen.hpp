// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/integers.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/exchange/allgatherv.hpp>
#include <oktopk/exchange/concept.hpp>
#include <oktopk/exchange/deliver.hpp>
#include <oktopk/exchange/foresight.hpp>
#include <oktopk/select/concept.hpp>
#include <oktopk/select/exact.hpp>
#include <oktopk/select/kernel/compact.hpp>
#include <oktopk/sparse/arithmetic.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

namespace oktopk {

template <class Gather>
struct foreseen;

namespace detail {

/// The search of calls whose threshold is not foreseen, which learns for the next ones.
struct foreseen_search : selector_base {
  struct options {};

  template <class Gather>
  using deliverer = foreseen<Gather>;

  template <gradient_value Value>
  struct state {
    search_guess<Value> guess; ///< as `exact` has it
    foresight<Value> next;
    std::vector<std::int64_t> counts{}; ///< of the last result, in each rank's region

    bool is_sound(std::int64_t) const {
      return guess.is_sound() && next.is_sound() && std::ranges::all_of(counts, [](std::int64_t count) {
               return count >= 0 && count <= fault_report::most_detail;
             });
    }

    void list_facts(agreement& terms) const {
      guess.list_facts(terms);
      next.list_facts(terms);
      for (std::int64_t const count : counts) {
        terms.fact("entries of a region", count);
      }
    }

    bool operator==(state const&) const = default;

    /// For `save` and `load`.
    template <class State, class Visit>
    static void each_part(State& carried, Visit& visit) {
      search_guess<Value>::each_part(carried.guess, visit);
      foresight<Value>::each_part(carried.next, visit);
      visit(carried.counts);
    }
  };

  foreseen_search() = default;
  explicit foreseen_search(options) {}

  static std::string name() { return "foreseen"; }
  static std::string describe() { return name(); }
  static std::string problem() { return {}; }
  static bool bounded() { return true; }
  static selection_promises promises() {
    return {.rule = name(), .low = 1, .high = 1, .largest = true, .as_sent = true};
  }
  static std::int64_t capacity(std::int64_t k, std::int64_t) { return k; }

  template <execution_space E, gradient_index Index, gradient_value Value, selection_group Group,
            selection_source Source>
  selection<Index, Value, typename E::memory_space> select(selection_context<E, Index, Value, Group> const& context,
                                                           Source const& source, state<Value>& carried) const {
    exact_search<E, Index, Value, Group> search(context);
    auto const chosen = search.run(source, carried.guess);
    bool const has_all = context.k > 0 && chosen.total() == context.k;
    carried.next.learn_search(has_all ? magnitude_from_bits<Value>(search.threshold()) : Value(0));
    carried.counts.assign(chosen.counts.begin(), chosen.counts.end());
    return chosen;
  }
};

/// An allgatherv (Bruck's) whose ranks do not know each other's sizes: each part has the number of its entries before it,
/// in two words, and the fault of its rank in that place. A part of more entries than there is room for has its number,
/// and no entries; there is room for twice as many as the rank had in the last result, and 16.
///
/// A rank forwards parts that follow each other in an order of ranks. That is one in which large parts, by the last
/// result, are far from each other and meet small ones: so messages are about even without a balance. And most of what
/// is sent goes to one of about sqrt(P) ranks with numbers next to each other.
template <execution_space E, communicator Comm, sparse_format Format>
class foreseen_allgatherv {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using entries_type = entries_of<Format, E>;
  using state_type = foreseen_search::state<value_type>;
  using result_type = delivered<Format, E>;

  explicit foreseen_allgatherv(Format const& format) : pieces_(format) {}

  /// Collective. `sums` are of this rank's region; `owned` and `known` are the same on all ranks. Gives nothing, on
  /// every rank, if the threshold was not foreseen: then the entries are to be searched and gathered. A fault of a rank
  /// is thrown on every rank. The result is valid until the next run.
  std::optional<result_type> run(call_context<E, Comm>& call, entries_type sums, regions<E> const& owned,
                                 state_type& known) {
    bool const is_ready = known.next.is_ready() && call.k > 0 && call.comm.size() > 1 &&
                          !owned.are_new() && // the counts are of these regions
                          known.counts.size() == static_cast<std::size_t>(call.comm.size()) &&
                          std::accumulate(known.counts.begin(), known.counts.end(), std::int64_t(0)) <= call.length;
    if (!is_ready) {
      return {};
    }
    plan(call, known.counts);
    entries_type const own = own_part(call, sums, known.next.floor());
    bool const fits = gather(call, own);
    std::int64_t const total = std::accumulate(counts_.begin(), counts_.end(), std::int64_t(0));
    if (!fits || total < call.k) {
      known.next.learn_miss(fits);
      return {};
    }
    entries_type const gathered = decoded(call, total);
    stopwatch const timed(call.statistics.select_seconds);
    selection_context<E, index_type, value_type, one_rank> const context{call.exec, call.k, call.iteration, alone_,
                                                                         cut_};
    exact_search<E, index_type, value_type, one_rank> search(context);
    auto const chosen = search.run(candidates<index_type, value_type, typename E::memory_space>(gathered), guess_);
    known.next.learn_hit(magnitude_from_bits<value_type>(search.threshold()), total, call.k);
    known.guess.bracket.learn(search.threshold());
    split_positions<E, index_type>(call.exec, chosen.entries.indices, owned.boundaries(), positions_);
    for (std::size_t rank = 0; rank < counts_.size(); ++rank) {
      counts_[rank] = positions_.host()[rank + 1] - positions_.host()[rank];
    }
    known.counts = counts_;
    return result_type{chosen.entries, own_of(call, chosen.entries, own), counts_};
  }

  /// One gather that fails: all the entries for which there is room.
  word_bound bound_words(int ranks, std::int64_t length, std::int64_t k) const {
    if (ranks == 1) {
      return {};
    }
    std::int64_t const half = k + spare * ranks / 2;
    double const entries = half < length / 2 ? 2.0 * static_cast<double>(half) : static_cast<double>(length);
    double const rounding = Format::exact_size ? ranks - 1 : 0; // 8 bytes for the value of 4
    return {split_words_at_most(pieces_.format(), ranks, entries, {0, length}) + rounding,
            (Format::exact_size ? 2.0 : 4.0) * (ranks - 1), static_cast<double>(ceil_log2(ranks))};
  }

  /// A call in which the threshold is foreseen, with `sums` entries in this rank's region.
  static call_cost expected_cost(Format const& format, int ranks, double length, double sums, double k) {
    double const total = k * (1 + foresight<value_type>::extra);
    return call_cost{.selected = sums + total, .passes = 2} +
           encoded_allgatherv<E, Comm, Format>::expected_cost(format, ranks, length / ranks, total / ranks);
  }

private:
  using pieces = encoded_pieces<E, Format>;

  static std::uint32_t reversed_bits(std::uint32_t bits) {
    std::uint32_t reversed = 0;
    for (int i = 0; i < 32; ++i) {
      reversed |= (bits >> i & 1U) << (31 - i);
    }
    return reversed;
  }

  static constexpr std::int64_t header_bytes = message_header_bytes;
  static constexpr std::int64_t spare = 16; // entries of a part whose rank had none

  // The order of ranks, and the room of each part; both the same on all ranks.
  void plan(call_context<E, Comm>& call, std::span<std::int64_t const> last) {
    order_parts(last);
    std::rotate(parts_.begin(), std::ranges::find(parts_, call.comm.rank(), &part::rank), parts_.end());
    region const everything{0, call.length};
    std::int64_t room = 0;
    for (part& each : parts_) {
      each.most = std::min(2 * last[static_cast<std::size_t>(each.rank)] + spare, call.length);
      each.room = header_bytes + pieces_.capacity(each.most, everything);
      room += each.room;
    }
    messages_.reset(2);
    bytes_.reserve(call.exec, call.comm, room);
    counts_.assign(last.size(), 0);
  }

  // A table of ranks: a row for each of about sqrt(P) groups of as many ranks that follow each other, column by column
  // in the order. A step that carries little goes down a column, to another group, and one that carries much goes to
  // another column, within a group. In a row the largest part comes to the column that has least.
  void order_parts(std::span<std::int64_t const> last) {
    std::size_t const ranks = last.size();
    std::size_t width = 1;
    while (width * width < ranks) {
      width *= 2;
    }
    std::size_t const rows = (ranks + width - 1) / width;
    // Each far from those before it: 0, P/2, P/4, 3P/4, ...
    rows_.resize(rows);
    std::iota(rows_.begin(), rows_.end(), 0U);
    std::ranges::sort(rows_, {}, reversed_bits);
    columns_.resize(width);
    for (std::size_t i = 0; i < width; ++i) {
      columns_[i] = {0, reversed_bits(static_cast<std::uint32_t>(i)), i};
    }
    parts_.assign(ranks, {});
    for (std::size_t row = 0; row < rows; ++row) {
      std::size_t const first = rows_[row] * width;
      std::span const group = std::span(parts_).subspan(first, std::min(width, ranks - first));
      for (std::size_t i = 0; i < group.size(); ++i) {
        group[i].rank = static_cast<int>(first + i);
      }
      auto const size_of = [&](part const& each) { return last[static_cast<std::size_t>(each.rank)]; };
      std::ranges::sort(group, {}, [&](part const& each) { return std::pair(-size_of(each), each.rank); });
      std::ranges::sort(columns_);
      for (std::size_t i = 0; i < group.size(); ++i) {
        group[i].place = columns_[i].at * rows + row;
        columns_[i].entries += size_of(group[i]);
      }
    }
    std::ranges::sort(parts_, {}, &part::place);
  }

  // The sums that reach the floor; in a call with a fault none, for nobody will use them.
  entries_type own_part(call_context<E, Comm>& call, entries_type sums, bits_of<value_type> floor) {
    if (call.faults) {
      return {};
    }
    stopwatch const timed(call.statistics.select_seconds);
    own_.reserve(call.exec, sums.size());
    candidates<index_type, value_type, typename E::memory_space> const from(sums);
    return own_.entries(compact(call.exec, from, floor, own_));
  }

  // False if a part has more entries than there is room for. The counts of all ranks are in `counts_`.
  bool gather(call_context<E, Comm>& call, entries_type own) {
    profiling_region const profiled("oktopk::foreseen_gather");
    std::int64_t own_bytes = header_bytes;
    if (own.size() <= parts_[0].most) {
      own_bytes += pieces_.encode(call.exec, own, {0, call.length}, bytes_, header_bytes);
    }
    fence(call.exec, "oktopk::foreseen::encoded");
    bytes_.put(call.exec, 0, call.header(own.size(), phase::gather));
    std::int64_t const end = exchange(call, own_bytes);
    call.throw_if_faulty();
    bytes_.pull(call.exec, own_bytes, end - own_bytes);
    return std::ranges::all_of(
        parts_, [this](part const& each) { return counts_[static_cast<std::size_t>(each.rank)] <= each.most; });
  }

  // Returns where the last part ends; every rank has then heard of the same faults.
  std::int64_t exchange(call_context<E, Comm>& call, std::int64_t own_bytes) {
    first_fault heard; // of all ranks: that of a lower rank than one that this rank has heard of may still arrive
    // No rank knows which parts have entries.
    struct {
      foreseen_allgatherv& of;
      call_context<E, Comm>& call;
      first_fault& heard;
      std::int64_t end;

      part const& at(int place) const { return of.parts_[static_cast<std::size_t>(place)]; }
      int rank_at(int place) const { return at(place).rank; }
      std::int64_t begin(int place) const { return at(place).is_here ? at(place).offset : end; }
      std::int64_t room(int first, int last) const {
        std::int64_t all = 0;
        for (int place = first; place < last; ++place) {
          all += at(place).room;
        }
        return all;
      }
      void arrived(int first, int last, std::int64_t to) {
        end = of.find_parts(call, heard, static_cast<std::size_t>(first), static_cast<std::size_t>(last), to);
      }
    } parts{*this, call, heard, 0};
    parts.arrived(0, 1, own_bytes);
    bruck_allgather(call, messages_, bytes_, message_size::unknown, parts);
    call.faults = heard;
    return parts.end;
  }

  // Finds the parts [first, last), one after the other, before `end`; returns where the last of them ends.
  std::int64_t find_parts(call_context<E, Comm>& call, first_fault& heard, std::size_t first, std::size_t last,
                          std::int64_t end) {
    std::int64_t offset = first == 0 ? 0 : parts_[first - 1].end();
    for (std::size_t at = first; at < last; ++at) {
      part& each = parts_[at];
      each.offset = offset;
      each.is_here = true;
      if (end - offset < header_bytes) {
        throw error(fault::damaged_message, "a message ends before the part of rank " + std::to_string(each.rank));
      }
      fault_report const header = call.read_header(bytes_.get(call.exec, offset), each.rank, phase::gather);
      heard.hear(header, each.rank);
      std::int64_t const count = header ? 0 : header.detail;
      counts_[static_cast<std::size_t>(each.rank)] = count;
      if (count > 0 && count <= each.most) {
        each.bytes = pieces_.encoded_bytes(call.exec, count, {0, call.length}, bytes_, offset + header_bytes,
                                           end - offset - header_bytes);
        each.with_entries = true;
      }
      offset = each.end();
    }
    return offset;
  }

  entries_type decoded(call_context<E, Comm>& call, std::int64_t total) {
    gathered_.reserve(call.exec, total);
    begins_.resize(counts_.size());
    std::exclusive_scan(counts_.begin(), counts_.end(), begins_.begin(), std::int64_t(0));
    for (part const& each : parts_) {
      auto const rank = static_cast<std::size_t>(each.rank);
      if (each.with_entries) {
        pieces_.decode(call.exec, bytes_, each.offset + header_bytes, each.bytes, counts_[rank], {0, call.length},
                       gathered_.indices.data() + begins_[rank], gathered_.values.data() + begins_[rank]);
      }
    }
    return gathered_.entries(total);
  }

  // Those of this rank's entries that are in the result; only a lossy format needs them.
  entries_type own_of(call_context<E, Comm>& call, entries_type all, entries_type own) {
    if (!is_lossy(pieces_.format()) || own.size() == 0) {
      return {};
    }
    kept_.reserve(call.exec, own.size());
    return kept_.entries(common_entries<E, index_type, value_type>(call.exec, own, all.indices, kept_.indices.data(),
                                                                   kept_.values.data()));
  }

  // What a rank contributes, in the order of ranks, from this rank on.
  struct part {
    int rank = 0;
    std::size_t place = 0; ///< in the order
    std::int64_t most = 0; ///< entries
    std::int64_t room = 0; ///< for these
    std::int64_t offset = 0;
    std::int64_t bytes = 0; ///< of the encoded entries
    bool is_here = false;
    bool with_entries = false;

    std::int64_t end() const {
      return offset + header_bytes + (with_entries ? pieces::header_bytes + round_up_to_8(bytes) : 0);
    }
  };

  struct column {
    std::int64_t entries = 0;
    std::uint32_t priority = 0; ///< the lower one first
    std::size_t at = 0;

    auto operator<=>(column const&) const = default;
  };

  pieces pieces_;
  message_group<Comm> messages_;
  message_buffer<E> bytes_{"oktopk::foreseen::bytes"};
  entries_buffer<index_type, value_type, E> gathered_{"oktopk::foreseen::gathered"};
  selection_workspace<index_type, value_type, E> own_;
  selection_workspace<index_type, value_type, E> cut_;
  entries_buffer<index_type, value_type, E> kept_{"oktopk::foreseen::kept"};
  search_guess<value_type> guess_; // the result does not depend on it, so it is no state
  one_rank alone_;
  shared_numbers<std::int64_t, E> positions_{"oktopk::foreseen::positions"};
  std::vector<part> parts_;
  std::vector<std::uint32_t> rows_;
  std::vector<column> columns_;
  std::vector<std::int64_t> counts_; // of all ranks
  std::vector<std::int64_t> begins_; // of their entries
};

} // namespace detail

/// A deliverer of exactly the k largest sums to all ranks, in few messages: what reaches a magnitude a little below the last
/// k-th one is gathered at once, and every rank cuts it to k entries.
///
/// No histogram, sizes or balance: ceil(log2 P) messages in place of about 3 ceil(log2 P), for k/32 more sums in the
/// gather, and a selection from these on every rank. That pays where messages cost more than words: on many ranks. If
/// fewer than k sums arrive, or a rank has more than twice as many as in the last result, all ranks see that, and go on
/// as with `exact`; such a call costs up to 4k words more. After a miss the gather takes more sums. After repeated misses
/// it pauses for 1, 2, 4, ... 32 calls, which search as `exact` does. A call whose regions are made anew does so, too.
/// `last_call().global_reevaluated` tells of a search.
///
/// With a lossy format the k largest are those of the rounded sums.
template <class Gather = balanced_allgatherv>
struct foreseen : search_and_gather<detail::foreseen_search, Gather> {
  using search = search_and_gather<detail::foreseen_search, Gather>;
  using search::search;

  template <execution_space E, communicator Comm, sparse_format Format>
  class step {
  public:
    step(foreseen const& how, Format const& format) : first_(format), search_(how, format) {}

    detail::delivered<Format, E> run(call_context<E, Comm>& call, detail::reduced<Format, E> const& mine,
                                     regions<E> const& owned,
                                     typename search::template state<typename Format::value_type>& carried) {
      auto const found = first_.run(call, mine.sums, owned, carried);
      return found ? *found : search_.run(call, mine, owned, carried);
    }

    word_bound bound_words(detail::call_size const& of) const {
      return first_.bound_words(of.ranks, of.length, of.k) + search_.bound_words(of);
    }

    static detail::call_cost expected_cost(foreseen const&, Format const& format, int ranks, double length, double sums,
                                           double k) {
      return decltype(first_)::expected_cost(format, ranks, length, sums, k);
    }

  private:
    detail::foreseen_allgatherv<E, Comm, Format> first_;
    typename search::template step<E, Comm, Format> search_;
  };
};

} // namespace oktopk
