// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/integers.hpp>
#include <oktopk/core/options.hpp>
#include <oktopk/exchange/allgatherv.hpp>
#include <oktopk/exchange/concept.hpp>
#include <oktopk/exchange/global_selection.hpp>
#include <oktopk/select/concept.hpp>
#include <oktopk/select/exact.hpp>
#include <oktopk/select/kernel/compact.hpp>
#include <oktopk/sparse/arithmetic.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

namespace oktopk {

namespace detail {

/// What the selections of the last calls foretell of the next k-th magnitude: how far below the last one it will not
/// fall. The same on all ranks; it is computed with patterns of magnitudes, so that no rounding can differ.
template <gradient_value Value>
struct foresight {
  static constexpr signed_bits_of<Value> octave = signed_bits_of<Value>(1) << (std::numeric_limits<Value>::digits - 1);
  static constexpr std::int64_t most_misses = 6;
  static constexpr std::int64_t forgetting = 16; ///< hits that make up for a miss

  Value kth = 0;                             ///< the last k-th magnitude; none yet when 0
  signed_bits_of<Value> drift = 0;           ///< patterns by which it moves from call to call, smoothed
  signed_bits_of<Value> reach = octave / 96; ///< patterns from the floor to where it is expected
  std::int64_t misses = 0;                   ///< gathers that failed of late, up to `most_misses`
  std::int64_t pause = 0;                    ///< calls until a gather is tried again
  std::int64_t hits = 0;                     ///< gathers that did not fail since one did, modulo `forgetting`

  /// Sums that should be gathered beyond k, in multiples of k, while no gather fails. `reach` begins as if numbers of
  /// sums fell with the fourth power of magnitudes.
  static constexpr double extra = 1.0 / 32;

  bool is_sound() const {
    return is_finite_magnitude(kth) && drift >= -octave && drift <= octave && reach >= 0 && reach <= octave &&
           misses >= 0 && misses <= most_misses && pause >= 0 && pause <= (1 << most_misses) && hits >= 0 &&
           hits < forgetting;
  }

  bool is_ready() const { return kth > 0 && pause == 0; }

  /// The pattern of the magnitude that a few more than k sums should reach.
  bits_of<Value> floor() const {
    auto const next = static_cast<signed_bits_of<Value>>(magnitude_bits(kth)) + drift;
    return static_cast<bits_of<Value>>(std::max<signed_bits_of<Value>>(next - reach, 1));
  }

  /// Learns the k-th magnitude of a search; 0 if there were not so many sums.
  void learn_search(Value found) {
    move_to(found);
    pause = std::max<std::int64_t>(pause - 1, 0);
  }

  /// Learns from `gathered` sums, of which this is the k-th: the floor moves to where `extra` times k more are expected,
  /// and more after misses, by how densely these lie.
  void learn_hit(Value found, std::int64_t gathered, std::int64_t k) {
    auto const below = static_cast<double>(magnitude_bits(found)) - static_cast<double>(floor());
    double const wanted = extra * static_cast<double>(1 + misses) * static_cast<double>(k);
    double const surplus = static_cast<double>(std::max<std::int64_t>(gathered - k, 1));
    auto const before = static_cast<double>(reach);
    reach = limited(std::clamp(below * (wanted / surplus), before / 4, before * 4));
    move_to(found);
    hits = (hits + 1) % forgetting;
    misses -= hits == 0 && misses > 0 ? 1 : 0;
  }

  /// Learns that a gather had fewer than k sums, or too many of a rank. The pauses grow while it goes on.
  void learn_miss(bool too_few) {
    misses = std::min(misses + 1, most_misses);
    pause = std::int64_t(1) << (misses - 1);
    hits = 0;
    reach = limited((too_few ? 4.0 : 0.25) * static_cast<double>(reach));
  }

  void list_facts(agreement& terms) const {
    terms.fact("foreseen magnitude", kth).fact("drift", drift).fact("reach", reach);
    terms.fact("misses", misses).fact("pause", pause).fact("hits", hits);
  }

  bool operator==(foresight const&) const = default;

  template <class Foresight, class Visit>
  static void each_part(Foresight& carried, Visit& visit) {
    visit(carried.kth);
    visit(carried.drift);
    visit(carried.reach);
    visit(carried.misses);
    visit(carried.pause);
    visit(carried.hits);
  }

private:
  // A jump tells nothing of the next call.
  void move_to(Value found) {
    auto const moved = static_cast<signed_bits_of<Value>>(magnitude_bits(found)) -
                       static_cast<signed_bits_of<Value>>(magnitude_bits(kth));
    bool const jumps = kth == 0 || found == 0 || moved > octave / 4 || moved < -octave / 4;
    drift = jumps ? 0 : drift + (moved - drift) / 4;
    kth = found;
  }

  static signed_bits_of<Value> limited(double patterns) {
    return static_cast<signed_bits_of<Value>>(std::clamp(patterns, 64.0, static_cast<double>(octave)));
  }
};

} // namespace detail

/// A global selector of exactly the k largest sums, in few messages: what reaches a magnitude a little below the last
/// k-th one is gathered at once, and every rank cuts it to k entries.
///
/// No histogram, sizes or balance: ceil(log2 P) messages in place of about 3 ceil(log2 P), for k/32 more sums in the
/// gather, and a selection from these on every rank. That pays where messages cost more than words: on many ranks. If
/// fewer than k sums arrive, or a rank has more than twice as many as in the last result, all ranks see that, and go on
/// as with `exact`; such a call costs up to 4k words more. After it more sums are gathered for a while, and after several
/// one after the other calls search as `exact` does, up to 32 of them. A call whose regions are made anew does so, too.
/// `last_call().global_reevaluated` tells of a search.
///
/// With a lossy format the k largest are those of the rounded sums.
struct foreseen {
  struct options {};

  template <gradient_value Value>
  struct state {
    detail::search_guess<Value> guess; ///< as `exact` has it
    detail::foresight<Value> next;
    std::vector<std::int64_t> counts{}; ///< of the last result, in each rank's region

    bool is_sound(std::int64_t) const {
      return guess.is_sound() && next.is_sound() && std::ranges::all_of(counts, [](std::int64_t count) {
               return count >= 0 && count <= detail::fault_report::most_detail;
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
      detail::search_guess<Value>::each_part(carried.guess, visit);
      detail::foresight<Value>::each_part(carried.next, visit);
      visit(carried.counts);
    }
  };

  foreseen() : foreseen(options{}) {}
  explicit foreseen(options) {}

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
    detail::exact_search<E, Index, Value, Group> search(context);
    auto const chosen = search.run(source, carried.guess);
    bool const has_all = context.k > 0 && chosen.total() == context.k;
    carried.next.learn_search(has_all ? detail::magnitude_from_bits<Value>(search.threshold()) : Value(0));
    carried.counts.assign(chosen.counts.begin(), chosen.counts.end());
    return chosen;
  }

  /// For one of several selectors, which may be another one: then false, and null.
  static bool gathers_first() { return true; }
  template <gradient_value Value>
  static state<Value>* foreseen_in(state<Value>& carried) {
    return &carried;
  }
};

namespace detail {

/// An allgatherv (Bruck's) whose ranks do not know each other's sizes: each part has the number of its entries before it,
/// in two words, and the fault of its rank in that place. A part of more entries than there is room for has its number,
/// and no entries; there is room for twice as many as the rank had in the last result, and 16.
///
/// A rank forwards parts that follow each other in an order of ranks. That is one in which large parts, by the last
/// result, are far from each other and meet small ones: so messages are about even without a balance. And most of what
/// is sent goes to one of about sqrt(P) ranks with numbers next to each other.
template <execution_space E, communicator Comm, sparse_format Format, class GlobalSelector>
  requires foresees<GlobalSelector, typename Format::value_type>
class foreseen_gather<E, Comm, Format, GlobalSelector> {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using entries_type = entries_of<Format, E>;
  using state_type = typename GlobalSelector::template state<value_type>;
  using result_type = global_result<Format, E>;

  foreseen_gather(GlobalSelector const& selector, Format const& format) : selector_(selector), pieces_(format) {}

  /// Collective. `sums` are of this rank's region; `boundaries` and `state` are the same on all ranks. Gives nothing, on
  /// every rank, if the threshold was not foreseen: then the entries are to be searched and gathered. A fault of a rank
  /// is thrown on every rank. The result is valid until the next run.
  std::optional<result_type> run(call_context<E, Comm>& call, entries_type sums,
                                 std::span<std::int64_t const> boundaries, state_type& state) {
    auto* const known = selector_.foreseen_in(state);
    bool const is_ready = known != nullptr && known->next.is_ready() && call.k > 0 && call.comm.size() > 1 &&
                          !call.statistics.repartitioned && // the counts are of these regions
                          known->counts.size() == static_cast<std::size_t>(call.comm.size()) &&
                          std::accumulate(known->counts.begin(), known->counts.end(), std::int64_t(0)) <= call.length;
    if (!is_ready) {
      return {};
    }
    plan(call, known->counts);
    entries_type const own = own_part(call, sums, known->next.floor());
    bool const fits = gather(call, own);
    std::int64_t const total = std::accumulate(counts_.begin(), counts_.end(), std::int64_t(0));
    if (!fits || total < call.k) {
      known->next.learn_miss(fits);
      return {};
    }
    entries_type const gathered = decoded(call, total);
    stopwatch const timed(call.statistics.select_seconds);
    selection_context<E, index_type, value_type, one_rank> const context{call.exec, call.k, call.iteration, alone_,
                                                                         cut_};
    exact_search<E, index_type, value_type, one_rank> search(context);
    auto const chosen = search.run(candidates<index_type, value_type, typename E::memory_space>(gathered), guess_);
    known->next.learn_hit(magnitude_from_bits<value_type>(search.threshold()), total, call.k);
    known->guess.bracket.learn(search.threshold());
    split_positions<E, index_type>(call.exec, chosen.entries.indices, boundaries, positions_);
    for (std::size_t rank = 0; rank < counts_.size(); ++rank) {
      counts_[rank] = positions_.host()[rank + 1] - positions_.host()[rank];
    }
    known->counts = counts_;
    return result_type{chosen.entries, own_of(call, chosen.entries, own), counts_};
  }

  /// One gather that fails: all the entries for which there is room.
  word_bound bound_words(int ranks, std::int64_t length, std::int64_t k) const {
    if (ranks == 1 || !selector_.gathers_first()) {
      return {};
    }
    std::int64_t const half = k + spare * ranks / 2;
    double const entries = half < length / 2 ? 2.0 * static_cast<double>(half) : static_cast<double>(length);
    double const rounding = Format::exact_size ? ranks - 1 : 0; // 8 bytes for the value of 4
    return {split_words_at_most(pieces_.format(), ranks, entries, {0, length}) + rounding,
            (Format::exact_size ? 2.0 : 4.0) * (ranks - 1), static_cast<double>(ceil_log2(ranks))};
  }

  /// A call in which the threshold is foreseen, with `sums` entries in this rank's region.
  static std::optional<call_cost> expected_cost(GlobalSelector const& selector, Format const& format, int ranks,
                                                double length, double sums, double k) {
    if (!selector.gathers_first()) {
      return {};
    }
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
    std::ranges::rotate(parts_, std::ranges::find(parts_, call.comm.rank(), &part::rank));
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
    fence(call.exec, "oktopk::foreseen_gather::encoded");
    bytes_.put(call.exec, 0, call.header(own.size(), phase::gather));
    std::int64_t const end = exchange(call, own_bytes);
    call.throw_if_faulty();
    bytes_.pull(call.exec, own_bytes, end - own_bytes);
    return std::ranges::all_of(
        parts_, [this](part const& each) { return counts_[static_cast<std::size_t>(each.rank)] <= each.most; });
  }

  // Bruck's algorithm. Returns where the last part ends; every rank has then heard of the same faults.
  std::int64_t exchange(call_context<E, Comm>& call, std::int64_t own_bytes) {
    std::size_t const ranks = parts_.size();
    cancel_on_unwind const guard(call.comm, messages_.requests());
    first_fault heard; // of all ranks: that of a lower rank than one that this rank has heard of may still arrive
    std::int64_t end = find_parts(call, heard, 0, 1, own_bytes);
    for (std::size_t have = 1; have < ranks; have *= 2) {
      std::size_t const moved = std::min(have, ranks - have);
      std::int64_t room = 0;
      for (std::size_t at = have; at < have + moved; ++at) {
        room += parts_[at].room;
      }
      std::int64_t const sent = moved < have ? parts_[moved].offset : end;
      messages_.reset(2);
      messages_.receive(bytes_.wire(end, room), parts_[have].rank, phase::gather);
      messages_.send(bytes_.wire(0, sent), parts_[ranks - have].rank, phase::gather);
      messages_.start(call.exec, call.comm);
      messages_.wait_all(call.comm);
      end = find_parts(call, heard, have, have + moved, end + messages_.bytes(0));
    }
    call.faults = heard;
    return end;
  }

  // Finds the parts [first, last), one after the other, before `end`; returns where the last of them ends.
  std::int64_t find_parts(call_context<E, Comm>& call, first_fault& heard, std::size_t first, std::size_t last,
                          std::int64_t end) {
    std::int64_t offset = first == 0 ? 0 : parts_[first - 1].end();
    for (std::size_t at = first; at < last; ++at) {
      part& each = parts_[at];
      each.offset = offset;
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
    indices_.reserve(call.exec, total);
    values_.reserve(call.exec, total);
    begins_.resize(counts_.size());
    std::exclusive_scan(counts_.begin(), counts_.end(), begins_.begin(), std::int64_t(0));
    for (part const& each : parts_) {
      auto const rank = static_cast<std::size_t>(each.rank);
      if (each.with_entries) {
        pieces_.decode(call.exec, bytes_, each.offset + header_bytes, each.bytes, counts_[rank], {0, call.length},
                       indices_.data() + begins_[rank], values_.data() + begins_[rank]);
      }
    }
    return {indices_.data(), values_.data(), total};
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

  GlobalSelector selector_;
  pieces pieces_;
  message_group<Comm> messages_;
  message_buffer<E> bytes_{"oktopk::foreseen_gather::bytes"};
  buffer<index_type, typename E::memory_space> indices_{"oktopk::foreseen_gather::indices"};
  buffer<value_type, typename E::memory_space> values_{"oktopk::foreseen_gather::values"};
  selection_workspace<index_type, value_type, E> own_;
  selection_workspace<index_type, value_type, E> cut_;
  selection_workspace<index_type, value_type, E> kept_;
  search_guess<value_type> guess_; // the result does not depend on it, so it is no state
  one_rank alone_;
  shared_numbers<std::int64_t, E> positions_{"oktopk::foreseen_gather::positions"};
  std::vector<part> parts_;
  std::vector<std::uint32_t> rows_;
  std::vector<column> columns_;
  std::vector<std::int64_t> counts_; // of all ranks
  std::vector<std::int64_t> begins_; // of their entries
};

} // namespace detail
} // namespace oktopk
