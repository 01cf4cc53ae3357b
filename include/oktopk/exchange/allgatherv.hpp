// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/comm/collectives.hpp>
#include <oktopk/comm/message_group.hpp>
#include <oktopk/comm/revocation.hpp>
#include <oktopk/core/cost.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/core/options.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/exchange/balance.hpp>
#include <oktopk/exchange/concept.hpp>
#include <oktopk/format/concept.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace oktopk {

namespace detail {

/// Entries that a rank sends in an allgatherv of parts with these sizes: Bruck's algorithm forwards the parts that
/// follow its own, so a large part is sent up to ceil(log2 P) times.
inline std::int64_t allgatherv_entries_sent(std::span<std::int64_t const> sizes, std::size_t rank) {
  std::int64_t sent = 0;
  for (std::size_t have = 1; have < sizes.size(); have *= 2) {
    for (std::size_t part = 0; part < std::min(have, sizes.size() - have); ++part) {
      sent += sizes[(rank + part) % sizes.size()];
    }
  }
  return sent;
}

/// Entries on the critical path of an allgatherv of parts with these sizes: the sum of the largest message of each
/// step.
inline std::int64_t allgatherv_critical_entries(std::span<std::int64_t const> sizes) {
  std::int64_t critical = 0;
  for (std::size_t have = 1; have < sizes.size(); have *= 2) {
    std::size_t const moved = std::min(have, sizes.size() - have);
    std::int64_t window =
        std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(moved), std::int64_t(0));
    std::int64_t largest = window;
    for (std::size_t rank = 1; rank < sizes.size(); ++rank) {
      window += sizes[(rank + moved - 1) % sizes.size()] - sizes[rank - 1];
      largest = std::max(largest, window);
    }
    critical += largest;
  }
  return critical;
}

/// Throws `damaged_message` if a rank reports more entries than the vector has; no memory is reserved for them.
inline void check_counts(std::span<std::int64_t const> counts, std::int64_t length) {
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    if (counts[rank] < 0 || counts[rank] > length) {
      throw error(fault::damaged_message, "rank " + std::to_string(rank) + " reports " + std::to_string(counts[rank]) +
                                              " entries of a vector of length " + std::to_string(length) +
                                              ": the message was damaged");
    }
  }
}

/// The number of entries of each rank, on all ranks.
///
/// 2(P-1) words in ceil(log2 P) messages. A fault that a rank has noted travels in the place of its number; then the
/// fault of the lowest faulty rank is thrown on every rank.
template <communicator Comm>
class count_gathering {
public:
  /// Collective. The counts, in rank order, are the same on all ranks and valid until the next run. Throws
  /// `damaged_message` if a count is more than the length of the call, so that no memory is reserved for it.
  template <execution_space E>
  std::span<std::int64_t const> run(call_context<E, Comm>& call, std::int64_t count, phase use = phase::control) {
    auto const mine = static_cast<std::int64_t>(call.header(count, use));
    counts_.resize(static_cast<std::size_t>(call.comm.size()));
    allgather(call.comm, std::span<std::int64_t const>(&mine, 1), std::span<std::int64_t>(counts_), use, collective_);
    call.hear_all(counts_, 1, use);
    check_counts(counts_, call.length);
    return counts_;
  }

  /// The same, and beside its count a few numbers of each rank, as many on all of them: they follow in `rows`, by rank.
  template <execution_space E>
  std::span<std::int64_t const> run_with(call_context<E, Comm>& call, std::int64_t count,
                                         std::span<std::int64_t const> numbers, std::vector<std::int64_t>& rows) {
    constexpr phase use = phase::control;
    auto const ranks = static_cast<std::size_t>(call.comm.size());
    std::size_t const width = numbers.size() + 1;
    row_.assign(1, static_cast<std::int64_t>(call.header(count, use)));
    row_.insert(row_.end(), numbers.begin(), numbers.end());
    rows.resize(ranks * width);
    allgather(call.comm, std::span<std::int64_t const>(row_), std::span<std::int64_t>(rows), use, collective_);
    call.hear_all(rows, width, use);
    counts_.resize(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      counts_[rank] = rows[rank * width];
      std::copy_n(&rows[rank * width + 1], numbers.size(), &rows[rank * numbers.size()]);
    }
    rows.resize(ranks * numbers.size());
    check_counts(counts_, call.length);
    return counts_;
  }

  /// Compares which call the ranks make, in as many words. Their faults are heard later: the lowest faulty rank may not
  /// know its own yet. Collective.
  template <execution_space E>
  void compare_calls(call_context<E, Comm>& call) {
    first_fault const known = std::exchange(call.faults, {});
    run(call, 0);
    call.faults = known;
  }

  static word_bound bound_words(int ranks) { return {0, 2.0 * (ranks - 1)}; }

private:
  std::vector<std::int64_t> counts_;
  std::vector<std::int64_t> row_;
  collective_workspace collective_;
};

/// Bruck's allgather for any P, in ceil(log2 P) messages: each brings as many parts as the rank has, and the last one those
/// that are left.
///
/// Parts lie one after the other in `bytes`, in an order of ranks that is the same on all of them up to a rotation: each has
/// its own part first, so that the parts to forward are always at the front. `parts` tells of them: `rank_at(place)`;
/// `begin(place)`, the begin of a part, and of the first that is not there; `room(first, last)`, the most bytes of several,
/// where 0 says that all ranks know that they are empty, and then no message is sent; `arrived(first, last, end)`, which
/// finds the begins of those that have come, before `end`. The own part is there.
template <execution_space E, communicator Comm, class Parts>
void bruck_allgather(call_context<E, Comm>& call, message_group<Comm>& messages, message_buffer<E> const& bytes,
                     message_size size, Parts&& parts) {
  cancel_on_unwind const guard(call.comm, messages.requests());
  int const ranks = call.comm.size();
  for (int have = 1; have < ranks; have *= 2) {
    int const moved = std::min(have, ranks - have);
    std::int64_t const begin = parts.begin(have);
    std::int64_t const room = parts.room(have, have + moved);
    messages.reset(2);
    if (room > 0) {
      messages.receive(bytes.wire(begin, room), parts.rank_at(have), phase::gather, size);
    }
    if (parts.begin(moved) > 0) {
      messages.send(bytes.wire(0, parts.begin(moved)), parts.rank_at(ranks - have), phase::gather, size);
    }
    messages.start(call.exec, call.comm);
    messages.wait_all(call.comm);
    parts.arrived(have, have + moved, begin + (room > 0 ? messages.bytes(0) : 0));
  }
}

} // namespace detail

/// Brings every rank's entries to every rank, in rank order (paper, section 3.1.2: allgatherv by recursive doubling,
/// which for any P is Bruck's algorithm).
///
/// ceil(log2 P) messages; 2k(P-1)/P words in COO where the parts are of one size, `allgatherv_entries_sent` in general.
/// Entries are encoded once, by the rank that has them, and forwarded as they are. If the format does not fix the
/// encoded sizes, they travel with the entries, 2 words each.
template <execution_space E, communicator Comm, sparse_format Format>
class encoded_allgatherv {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using entries_type = sparse_ref<index_type, value_type, typename E::memory_space>;

  explicit encoded_allgatherv(Format const& format = {})
      : pieces_(format), balance_(format),
        entries_("oktopk::allgatherv::entries", detail::width_of<Format>(format.width())) {}

  /// Collective. `sizes` are the entries of each rank, identical on all ranks. The result is valid until the next call.
  /// This rank's own entries in it are decoded, too, so they equal those on the other ranks.
  entries_type run(call_context<E, Comm>& call, entries_type mine, std::span<std::int64_t const> sizes) {
    region const everything{0, call.length};
    return run(call, mine, sizes, [everything](std::size_t) { return everything; });
  }

  /// The same for parts that lie in narrower regions, `where(rank)`, the same on all ranks; formats can make use of it.
  template <class Where>
  entries_type run(call_context<E, Comm>& call, entries_type mine, std::span<std::int64_t const> sizes,
                   Where const& where) {
    detail::unbalanced_scheme(sizes, scheme_);
    return run(call, mine, std::span<detail::transfer const>(scheme_), where);
  }

  /// The same, but first moves the pieces of a scheme to other ranks, so that parts are even.
  template <class Where>
  entries_type run(call_context<E, Comm>& call, entries_type mine, std::span<detail::transfer const> scheme,
                   Where const& where) {
    detail::profiling_region const profiled("oktopk::allgatherv");
    std::int64_t const total = reserve_buffers(call, scheme, where);
    std::int64_t const own_bytes = balance_.run(call, mine, scheme, where, parts_);
    detail::fence(call.exec, "oktopk::allgatherv::encoded");
    bool const own_alone = find_pieces(call, scheme, where, 0, 1, own_bytes);
    // All ranks know which parts have entries.
    struct {
      encoded_allgatherv& of;
      call_context<E, Comm>& call;
      std::span<detail::transfer const> scheme;
      Where const& where;

      int rank_at(int place) const { return (call.comm.rank() + place) % call.comm.size(); }
      std::int64_t begin(int place) const { return of.offsets_[static_cast<std::size_t>(place)]; }
      std::int64_t room(int first, int last) const {
        std::int64_t all = 0;
        for (int place = first; place < last; ++place) {
          all += of.capacities_[static_cast<std::size_t>(rank_at(place))];
        }
        return all;
      }
      void arrived(int first, int last, std::int64_t end) {
        of.find_pieces(call, scheme, where, static_cast<std::size_t>(first), static_cast<std::size_t>(last), end);
      }
    } parts{*this, call, scheme, where};
    detail::bruck_allgather(call, messages_, parts_, size_of_message, parts);
    std::int64_t const known = own_alone ? own_bytes : 0;
    parts_.pull(call.exec, known, offsets_.back() - known);
    for (std::size_t i = 0; i < scheme.size(); ++i) {
      detail::transfer const& piece = scheme[i];
      pieces_.decode(call.exec, parts_, places_[i].offset, places_[i].bytes, piece.last - piece.first,
                     where(static_cast<std::size_t>(piece.from)), entries_.indices.data() + piece.first,
                     entries_.values_at(piece.first));
    }
    return entries_.entries(total);
  }

  /// Reserves room for parts of `total` entries together; see `balance::reserve_buffers`.
  void reserve_to_balance(call_context<E, Comm>& call, std::int64_t total) { balance_.reserve_buffers(call, total); }

  /// Upper bound if each part has at most `entries_of_part` entries of the region `where`.
  word_bound bound_words(int ranks, std::int64_t entries_of_part, region where) const {
    auto const part =
        static_cast<double>(detail::round_up_to_8(pieces_.format().max_encoded_bytes(entries_of_part, where)));
    return with_sizes((ranks - 1) * part / 4, ranks, ranks - 1);
  }

  /// Upper bound if a rank forwards at most `forwarded` entries of all parts together, in at most `pieces` pieces.
  word_bound bound_words(int ranks, std::int64_t length, double forwarded, int pieces) const {
    // A part is forwarded at most once in each step, and balanced once before.
    std::int64_t const times = detail::ceil_log2(ranks) + 1;
    std::int64_t const places = std::min(length, std::numeric_limits<std::int64_t>::max() / times) * times;
    constexpr bool whole_words = (sizeof(index_type) + sizeof(value_type)) % 8 == 0;
    double const rounding = whole_words ? 0 : ranks - 1;
    return with_sizes(detail::split_words_at_most(pieces_.format(), pieces, forwarded, {0, places}) + rounding, ranks,
                      pieces);
  }

  /// For parts of `entries` entries, each in a region of `places` indices.
  static detail::call_cost expected_cost(Format const& format, int ranks, double places, double entries) {
    return {.messages = detail::doubling_steps(ranks),
            .bytes = (ranks - 1) * detail::expected_bytes(format, entries, places),
            .encoded = detail::expected_places(format, entries, places),
            .decoded = detail::expected_places(format, entries, places) * ranks,
            .passes = 1.0 + ranks};
  }

private:
  static constexpr auto size_of_message =
      Format::exact_size ? detail::message_size::known : detail::message_size::unknown;

  // Adds the sizes of pieces and of their messages.
  static word_bound with_sizes(double entries, int ranks, int pieces) {
    return Format::exact_size ? word_bound{entries}
                              : word_bound{entries, 2.0 * pieces, static_cast<double>(detail::ceil_log2(ranks))};
  }

  // Of a piece of the scheme.
  struct place {
    std::int64_t offset;
    std::int64_t bytes;
  };

  // Returns the number of all entries.
  template <class Where>
  std::int64_t reserve_buffers(call_context<E, Comm>& call, std::span<detail::transfer const> scheme,
                               Where const& where) {
    auto const ranks = static_cast<std::size_t>(call.comm.size());
    std::int64_t const total = scheme.empty() ? 0 : scheme.back().last;
    std::int64_t most = 0;
    capacities_.assign(ranks, 0);
    for (detail::transfer const& piece : scheme) {
      std::int64_t const capacity =
          pieces_.capacity(piece.last - piece.first, where(static_cast<std::size_t>(piece.from)));
      capacities_[static_cast<std::size_t>(piece.to)] += capacity;
      most += capacity;
    }
    entries_.reserve(call.exec, total);
    parts_.reserve(call.exec, call.comm, most);
    offsets_.assign(ranks + 1, 0);
    places_.reserve(2 * ranks);
    places_.resize(scheme.size());
    messages_.reset(2);
    return total;
  }

  // Finds the pieces of the parts [first, last) that have arrived, in the bytes before `end`. True if they are a single
  // piece that the rank of its part has encoded.
  template <class Where>
  bool find_pieces(call_context<E, Comm>& call, std::span<detail::transfer const> scheme, Where const& where,
                   std::size_t first, std::size_t last, std::int64_t end) {
    auto const ranks = static_cast<std::size_t>(call.comm.size());
    std::size_t pieces = 0;
    for (std::size_t step = first; step < last; ++step) {
      auto const part = static_cast<int>((static_cast<std::size_t>(call.comm.rank()) + step) % ranks);
      std::int64_t offset = offsets_[step];
      auto piece = std::lower_bound(scheme.begin(), scheme.end(), part,
                                    [](detail::transfer const& each, int to) { return each.to < to; });
      for (; piece != scheme.end() && piece->to == part; ++piece) {
        std::int64_t const bytes =
            pieces_.encoded_bytes(call.exec, piece->last - piece->first, where(static_cast<std::size_t>(piece->from)),
                                  parts_, offset, end - offset);
        places_[static_cast<std::size_t>(piece - scheme.begin())] = {offset, bytes};
        offset += detail::encoded_pieces<E, Format>::header_bytes + detail::round_up_to_8(bytes);
        pieces += piece->from == part ? 1U : 2U; // kernels cannot see a piece of another rank yet
      }
      offsets_[step + 1] = offset;
    }
    return pieces == 1;
  }

  detail::encoded_pieces<E, Format> pieces_;
  detail::balance<E, Comm, Format> balance_;
  detail::message_group<Comm> messages_;
  detail::message_buffer<E> parts_{"oktopk::allgatherv::parts"};
  detail::entries_buffer<index_type, value_type, E, detail::width_of<Format>> entries_;
  std::vector<detail::transfer> scheme_;
  std::vector<place> places_;            // of the pieces
  std::vector<std::int64_t> capacities_; // of the parts
  std::vector<std::int64_t> offsets_;    // of the parts, rotated
};

/// The second phase (paper, section 3.1.2; Algorithm 1, line 13): balance where it is needed, then allgatherv.
///
/// The paper balances when the largest part exceeds 4 x the mean. That cannot happen for P <= 4, and a large part below
/// that limit is still forwarded up to ceil(log2 P) times. So by default this policy also balances when some rank would
/// send more than twice the cost of balanced parts; every rank can compute that from the sizes. Then the phase sends at
/// most 4k(P-1)/P words a rank, whatever the parts are, as in the paper's equation (2), up to P-1 entries of rounding.
///
/// It also balances if that is quicker: each step of the allgatherv takes as long as its largest message, and balancing
/// takes about one part and a few messages, which is little beside the steps of many ranks. It also balances if the
/// rank that sends most would send 15 % more than with balanced parts, and balancing saves at least a quarter of
/// `message_entries`: parts drift apart until regions are made anew, and then all ranks save a few words in about the
/// same time.
struct balanced_allgatherv {
  struct options {
    double ratio = 4;       ///< of the largest part to the mean, above which to balance; at least 1
    bool bound_sent = true; ///< also balance when a rank would send more than twice 2k(P-1)/P words
    /// Also balance when each message of balancing saves the time of more than this many entries; about latency times
    /// bandwidth, which is near 2000 entries on slow networks and fast ones. If negative, the gather balances neither
    /// for that nor to send a few entries fewer.
    std::int64_t message_entries = 2048;

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("ratio", how.ratio, "largest part to mean above which the gather balances", at_least(1));
      visit("bound_sent", how.bound_sent, "balance also where a rank would send over the bound");
      visit("message_entries", how.message_entries, "entries whose time a message of balancing may cost");
    }
  };

  balanced_allgatherv() : balanced_allgatherv(options{}) {}
  explicit balanced_allgatherv(options how) : options_(how) {}

  std::string describe() const { return detail::describe_options("balanced_allgatherv", options_); }

  std::string problem() const {
    return options_.ratio >= 1 ? std::string() : "the ratio of balanced_allgatherv is below 1";
  }

  /// Decides whether parts of these sizes are to be balanced first, and leaves the scheme of the pieces in `scheme`;
  /// the same on every rank.
  ///
  /// If all parts together should have `expected` entries, they are also balanced when a rank would send more than 8/5
  /// of the cost of `expected` balanced entries. So the bound holds even if a threshold selects 50 % more entries, in
  /// regions that have drifted.
  bool plan(std::span<std::int64_t const> sizes, std::vector<detail::transfer>& scheme,
            std::int64_t expected = 0) const {
    detail::balancing_scheme(sizes, scheme);
    if (wants(sizes, detail::cost_of(scheme), expected)) {
      return true;
    }
    detail::unbalanced_scheme(sizes, scheme);
    return false;
  }

  template <execution_space E, communicator Comm, sparse_format Format>
  class step;

private:
  // `cost`: of balancing.
  bool wants(std::span<std::int64_t const> sizes, detail::balancing_cost const& cost, std::int64_t expected) const {
    auto const ranks = static_cast<std::int64_t>(sizes.size());
    auto const others = static_cast<double>(ranks - 1);
    std::int64_t const total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0));
    double const mean = static_cast<double>(total) / static_cast<double>(ranks);
    auto const message_entries = static_cast<double>(options_.message_entries); // no option is too large for it
    // The most entries that a rank sends in an allgatherv of balanced parts.
    std::int64_t const even = (total + ranks - 1) / ranks * (ranks - 1);
    std::int64_t const sooner = detail::allgatherv_critical_entries(sizes) - even;
    bool const quicker = message_entries >= 0 && sooner > 0 &&
                         static_cast<double>(sooner) >
                             static_cast<double>(cost.entries) + static_cast<double>(cost.messages) * message_entries;
    if (static_cast<double>(*std::max_element(sizes.begin(), sizes.end())) > options_.ratio * mean || quicker) {
      return true;
    }
    if (!options_.bound_sent) {
      return false;
    }
    std::int64_t sent = 0; // by the rank that sends most unless parts are balanced
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      sent = std::max(sent, detail::allgatherv_entries_sent(sizes, rank));
    }
    double most = 2 * mean * others;
    if (expected > 0) {
      most = std::min(most, 1.6 * static_cast<double>(expected) * others / static_cast<double>(ranks));
    }
    std::int64_t const saved = sent - even - cost.entries;
    bool const sends_less = message_entries >= 0 && static_cast<double>(sent) > 1.15 * static_cast<double>(even) &&
                            saved > 0 && static_cast<double>(saved) >= message_entries / 4;
    return static_cast<double>(sent) > most || sends_less;
  }

  options options_;
};

/// The gather at work; see `gather_policy`.
template <execution_space E, communicator Comm, sparse_format Format>
class balanced_allgatherv::step {
public:
  explicit step(balanced_allgatherv const& how, Format const& format = {}) : policy_(how), allgatherv_(format) {}

  gathered<Format, E> run(call_context<E, Comm>& call, entries_of<Format, E> mine,
                          std::span<std::int64_t const> sizes) {
    allgatherv_.reserve_to_balance(call, std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0)));
    scheme_.reserve(2 * sizes.size());
    bool const balances = policy_.plan(sizes, scheme_, call.k);
    region const everything{0, call.length};
    auto const where = [everything](std::size_t) { return everything; };
    return {allgatherv_.run(call, mine, std::span<detail::transfer const>(scheme_), where), balances};
  }

  /// 2(P-1)/P of the entries whatever the parts are: P parts are cut into 2P-1 pieces at most. Unless `bound_sent`, the
  /// entries of uneven parts below `ratio` times the mean in each step, if they are more.
  word_bound bound_words(int ranks, std::int64_t length, std::int64_t entries) const {
    if (ranks == 1) {
      return {};
    }
    double const all = static_cast<double>(entries);
    double forwarded = 2 * all * (ranks - 1.0) / ranks;
    if (!policy_.options_.bound_sent) {
      double uneven = 0;
      for (int have = 1; have < ranks; have *= 2) {
        uneven += all * std::min(1.0, policy_.options_.ratio * std::min(have, ranks - have) / ranks);
      }
      forwarded = std::max(forwarded + (ranks - 1), uneven); // balanced parts differ by an entry
    }
    int const pieces = (ranks - 1) * (detail::ceil_log2(ranks) + 2);
    return allgatherv_.bound_words(ranks, length, forwarded, pieces) +
           word_bound{0, 0, Format::exact_size ? 0 : ranks - 1.0};
  }

  /// Parts of entries/P, which need no balancing.
  static detail::call_cost expected_cost(balanced_allgatherv const&, Format const& format, int ranks, double length,
                                         double entries) {
    return encoded_allgatherv<E, Comm, Format>::expected_cost(format, ranks, length / ranks, entries / ranks);
  }

private:
  balanced_allgatherv policy_;
  encoded_allgatherv<E, Comm, Format> allgatherv_;
  std::vector<detail::transfer> scheme_;
};

} // namespace oktopk
