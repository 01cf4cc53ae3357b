// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/base.hpp>
#include <oktopk/algorithm/policies.hpp>
#include <oktopk/comm/message_group.hpp>
#include <oktopk/core/cost.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/select/exact.hpp>
#include <oktopk/sparse/region_sum.hpp>

#include <algorithm>
#include <utility>

namespace oktopk {

namespace detail {

template <gradient_index Index, gradient_value Value, class MemorySpace>
struct residual_overflow_search {
  array_ref<Value const, MemorySpace> accumulator;
  array_ref<Index const, MemorySpace> contributed;
  std::int64_t cleared; ///< number of contributed entries
  sparse_ref<Index, Value, MemorySpace> returned;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::int64_t& lowest) const {
    Index const index = returned.indices(i);
    std::int64_t const place = lower_bound(contributed.data(), cleared, static_cast<std::int64_t>(index));
    bool const is_cleared = place < cleared && contributed(place) == index;
    Value const kept = is_cleared ? Value(0) : accumulator(static_cast<std::int64_t>(index));
    if (magnitude_bits(static_cast<Value>(kept + returned.values(i))) >= infinity_bits<Value> && i < lowest) {
      lowest = i;
    }
  }
};

/// A fault if the residual overflows: the accumulator with the contributed entries cleared, plus the returned entries.
/// Indices of both lists ascend. Waits for `exec`.
template <execution_space E, gradient_index Index, gradient_value Value>
fault_report overflow_of_residual(E const& exec, array_ref<Value const, typename E::memory_space> accumulator,
                                  array_ref<Index const, typename E::memory_space> contributed,
                                  sparse_ref<Index, Value, typename E::memory_space> returned) {
  std::int64_t const size = returned.size();
  residual_overflow_search<Index, Value, typename E::memory_space> const kernel{
      accumulator, contributed, static_cast<std::int64_t>(contributed.extent(0)), returned};
  std::int64_t first = size;
  Kokkos::parallel_reduce("oktopk::overflow_of_residual", index_range<E>(exec, 0, size), kernel,
                          Kokkos::Min<std::int64_t>(first));
  return fault_at<E, Index>(exec, returned.indices, first, fault_subject::returned);
}

/// A binomial tree that sums sparse vectors on the way up, keeps the k largest sums at every node, and sends the root's
/// result down.
///
/// A lossy format rounds the entries of each message on the way up. It rounds the result once, at the root: the other
/// nodes pass its bytes on unchanged. Each node adds the losses of its message to the entries that it dropped.
///
/// At level d = 1, 2, 4, ... rank r with r mod 2d = d sends to r - d, if there is one: any number of ranks. A rank
/// sends once on the way up, at most 2k words, and on the way down to each child. A message has a header of 4 words:
/// the count or a fault, and the faulty rank. A fault travels up to the root and down to all ranks.
template <execution_space E, communicator Comm, sparse_format Format>
class reduction_tree {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using memory_space = typename E::memory_space;
  using entries_type = sparse_ref<index_type, value_type, memory_space>;
  using values_type = array_ref<value_type const, memory_space>;

  static constexpr std::int64_t header_bytes = 2 * message_header_bytes;

  /// The result on one rank; entries are valid until the next call.
  struct result {
    entries_type sums; ///< the root's, the same on all ranks
    /// Partial sums that this rank left out, and the losses of its message; ascending and unique.
    entries_type dropped;
  };

  explicit reduction_tree(Format const& format = {}) : format_(format) {}

  /// Collective; `return_dropped` is the same on all ranks. If it is true, dropped entries go back to the accumulators,
  /// and a residual that overflows by them is a fault. If it is false, `dropped` has only the parts that were rounded
  /// off the entries of the result. Throws the fault of the lowest faulty rank on every rank.
  result run(call_context<E, Comm>& call, entries_type selection, values_type const& accumulator, bool return_dropped) {
    profiling_region const profiled("oktopk::reduction_tree");
    result outcome = reduce(call, selection, accumulator, return_dropped);
    call.throw_if_faulty();
    return outcome;
  }

  /// 2k ceil(log2 P) for entries of two words: half of Table 1's 4k log2 P, which counts both directions.
  word_bound bound_words(int ranks, std::int64_t length, std::int64_t k) const {
    auto const messages = static_cast<double>(ceil_log2(ranks));
    return {messages * static_cast<double>(format_.max_encoded_bytes(k, {0, length})) / 4,
            messages * header_bytes / 4.0, messages};
  }

  /// Up the tree and down again: in each step half of the ranks wait for the other half.
  static detail::call_cost expected_cost(Format const& format, int ranks, double length, double k) {
    double const steps = 2 * doubling_steps(ranks);
    return {.messages = steps,
            .bytes = steps * (expected_bytes(format, k, length) + header_bytes),
            .selected = steps * k,
            .encoded = steps * expected_places(format, k, length),
            .decoded = steps * expected_places(format, k, length),
            .passes = 2 * steps};
  }

private:
  result reduce(call_context<E, Comm>& call, entries_type selection, values_type const& accumulator,
                bool return_dropped) {
    int const rank = call.comm.rank();
    int const ranks = call.comm.size();
    everything_ = {0, call.length};
    result outcome;
    reserve_buffers(call, selection.size());
    cancel_on_unwind const guard(call.comm); // also between its messages

    entries_type kept = cut(call, selection, return_dropped); // a selector may have taken more than k
    int parent_distance = 1;
    for (; parent_distance < ranks && rank % (2 * parent_distance) == 0; parent_distance *= 2) {
      if (rank + parent_distance < ranks) {
        merge(call, rank + parent_distance, kept, return_dropped);
      }
    }
    // The kept entries are sent up; the root sends them down.
    std::int64_t bytes = encode(call, kept);
    outcome.sums = kept;
    // Nothing is dropped on the way down, and a fault can still travel with the message on the way up.
    outcome.dropped = dropped_sum_.extract(call.exec);
    if (return_dropped && !call.faults) {
      call.note(
          overflow_of_residual<E, index_type, value_type>(call.exec, accumulator, selection.indices, outcome.dropped));
    }
    if (rank != 0) {
      send(call, rank - parent_distance, outgoing_, kept.size(), bytes, phase::reduce);
      call.faults.clear(); // the fault that the root reports counts
      outcome.sums = receive(call, rank - parent_distance, phase::gather, bytes);
    } else if (is_lossy(format_) && ranks > 1 && !call.faults) {
      outcome.sums = decode(call, outgoing_, bytes, kept.size());
    }
    for (int distance = parent_distance / 2; distance >= 1; distance /= 2) {
      if (rank + distance < ranks) {
        send(call, rank + distance, rank == 0 ? outgoing_ : incoming_, outcome.sums.size(), bytes, phase::gather);
      }
    }
    if (!return_dropped && is_lossy(format_) && !call.faults) {
      std::int64_t const count =
          outcome.dropped.size() == 0
              ? 0
              : common_entries<E, index_type, value_type>(call.exec, outcome.dropped, outcome.sums.indices,
                                                          losses_.indices.data(), losses_.values.data());
      outcome.dropped = losses_.entries(count);
    }
    return outcome;
  }

  // Reserves all buffers before the first message: each node merges k entries with k, and drops at most k.
  void reserve_buffers(call_context<E, Comm>& call, std::int64_t own_entries) {
    E const& exec = call.exec;
    std::int64_t const k = call.k;
    std::int64_t const merged = std::min(2 * k, everything_.width());
    message_bytes_ = header_bytes + round_up_to_8(format_.max_encoded_bytes(k, everything_));
    incoming_.reserve(exec, call.comm, message_bytes_);
    outgoing_.reserve(exec, call.comm, message_bytes_);
    messages_.reset(1);
    decoded_.reserve(exec, k);
    sum_.open(exec, everything_, merged);
    dropped_.reserve(exec, std::max(own_entries, merged));
    std::int64_t const rounded = is_lossy(format_) ? k : 0;
    dropped_sum_.open(exec, everything_, own_entries + k * ceil_log2(call.comm.size()) + rounded);
    if (rounded > 0) {
      losses_.reserve(exec, own_entries + k * ceil_log2(call.comm.size()) + rounded);
    }
    reserve_for_largest(exec, std::max(own_entries, merged), k, kept_);
  }

  // Adds a child's sums to this node's and keeps the k largest.
  void merge(call_context<E, Comm>& call, int child, entries_type& kept, bool return_dropped) {
    std::int64_t bytes = 0;
    entries_type const theirs = receive(call, child, phase::reduce, bytes);
    if (call.faults) {
      return;
    }
    sum_.open(call.exec, everything_);
    sum_.add(call.exec, kept);
    sum_.add(call.exec, theirs);
    auto const [merged, overflow] = sum_.extract_checked(call.exec);
    call.note(overflow);
    if (!call.faults) {
      kept = cut(call, merged, return_dropped);
    }
  }

  // The k largest entries. The others go to the dropped sums if `return_dropped`; else they are lost.
  entries_type cut(call_context<E, Comm>& call, entries_type entries, bool return_dropped) {
    if (entries.size() <= call.k || call.faults) {
      return entries;
    }
    stopwatch const timed(call.statistics.select_seconds);
    E const& exec = call.exec;
    candidates<index_type, value_type, typename E::memory_space> const from(entries);
    entries_type kept = largest_entries<E, index_type, value_type>(exec, from, call.k, kept_);
    if (!return_dropped) {
      return kept;
    }
    dropped_.reserve(exec, entries.size());
    std::int64_t const count = difference<E, index_type, value_type>(exec, entries, kept.indices,
                                                                     dropped_.indices.data(), dropped_.values.data());
    dropped_sum_.add(exec, {dropped_.indices.data(), dropped_.values.data(), count});
    return kept;
  }

  // Encodes for the way up, or at the root for the way down; notes the losses. Returns the number of bytes.
  std::int64_t encode(call_context<E, Comm>& call, entries_type const& kept) {
    if (call.faults || call.comm.size() == 1) {
      return 0;
    }
    std::int64_t const bytes = format_.encode(call.exec, kept, everything_, outgoing_.data() + header_bytes);
    outgoing_.push(call.exec, header_bytes, bytes);
    if (is_lossy(format_) && kept.size() > 0) {
      entries_type const rounded = decode(call, outgoing_, bytes, kept.size());
      losses_of<E, value_type>(call.exec, kept.values.data(), rounded.values.data(), kept.size(),
                               losses_.values.data());
      dropped_sum_.add(call.exec, {kept.indices.data(), losses_.values.data(), kept.size()});
    }
    return bytes;
  }

  entries_type decode(call_context<E, Comm>& call, message_buffer<E> const& message, std::int64_t bytes,
                      std::int64_t count) {
    format_.decode(call.exec, static_cast<std::byte const*>(message.data() + header_bytes), bytes, count, everything_,
                   decoded_.indices.data(), decoded_.values.data());
    return decoded_.entries(count);
  }

  // Sends encoded entries. They lie in the message behind the room for its header.
  void send(call_context<E, Comm>& call, int to, message_buffer<E>& message, std::int64_t count, std::int64_t bytes,
            phase use) {
    message.put(call.exec, 0, call.header(count, use));
    message.put(call.exec, message_header_bytes, static_cast<std::uint64_t>(call.faults.rank()));
    messages_.reset(1);
    cancel_on_unwind const guard(call.comm, messages_.requests());
    messages_.send(message.wire(0, header_bytes + (call.faults ? 0 : bytes)), to, use);
    messages_.start(call.exec, call.comm, "oktopk::reduction_tree::encoded");
    messages_.wait_all(call.comm);
  }

  // Also sets `bytes` to the bytes of the encoded entries.
  entries_type receive(call_context<E, Comm>& call, int from, phase use, std::int64_t& bytes) {
    messages_.reset(1);
    cancel_on_unwind const guard(call.comm, messages_.requests());
    std::size_t const message = messages_.receive(incoming_.wire(0, message_bytes_), from, use);
    // Ends the reading of the previous message.
    messages_.start(call.exec, call.comm, "oktopk::reduction_tree::decoded");
    messages_.wait_all(call.comm);
    bytes = messages_.bytes(message) - header_bytes;
    auto const header = call.read_header(incoming_.get(call.exec, 0), from, use);
    if (header) {
      call.faults.hear(header, static_cast<int>(incoming_.get(call.exec, message_header_bytes)));
      return {};
    }
    std::int64_t const most = std::min(call.k, everything_.width());
    if (bytes < 0 || header.detail > most) {
      throw error(fault::damaged_message, "reduction_tree: rank " + std::to_string(from) + " sent " +
                                              std::to_string(bytes) + " bytes for " + std::to_string(header.detail) +
                                              " entries, where " + std::to_string(most) + " are the most");
    }
    incoming_.pull(call.exec, header_bytes, bytes);
    return decode(call, incoming_, bytes, header.detail);
  }

  Format format_;
  region everything_;
  std::int64_t message_bytes_ = 0;
  message_group<Comm> messages_;
  message_buffer<E> incoming_{"oktopk::reduction_tree::incoming"};
  message_buffer<E> outgoing_{"oktopk::reduction_tree::outgoing"};
  entries_buffer<index_type, value_type, E> decoded_{"oktopk::gtopk::decoded"};
  entries_buffer<index_type, value_type, E> dropped_{"oktopk::gtopk::dropped"};
  selection_workspace<index_type, value_type, E> kept_;
  entries_buffer<index_type, value_type, E> losses_{"oktopk::gtopk::losses"};
  region_sum<index_type, value_type, E> sum_;
  region_sum<index_type, value_type, E> dropped_sum_;
};

} // namespace detail

/// gTopk (Shi et al., ICDCS'19): a reduction tree whose nodes keep the k largest of their sums, then a broadcast tree.
///
/// The update has k entries. They approximate the top k of the sum of the selections, since a node drops sums that are
/// small in its own part of the tree. In the published form such a partial sum is lost if its entry still reaches the
/// result through another branch. Here each node gives the entries that it drops to its own residual
/// (`update.returned()`), so that nothing is lost, and every selected entry counts as contributed.
/// `return_dropped = false` is the published form. A rank sends at most 2k ceil(log2 P) words in ceil(log2 P) messages
/// and receives as many: together the 4k log2 P and 2 log2 P of Table 1. Each message has a header of 4 words in
/// addition. Any P. Holds two values and two bits per element.
template <class E, class Comm, class Policies = default_policies>
class gtopk : detail::checked_selection<E, Comm, Policies>, public selecting_base<E, Comm, Policies> {
  using base = selecting_base<E, Comm, Policies>;
  using typename base::format_type;

public:
  using typename base::entries_type;
  using typename base::index_type;
  using typename base::update_type;
  using typename base::value_type;

  struct options {
    detail::element_count length = 0;         ///< of the accumulators
    std::optional<detail::element_count> k{}; ///< entries to select, in [0, length]; this or density
    std::optional<double> density{};          ///< k / length, in (0, 1]; k is rounded, and at least 1
    typename Policies::local_selector::options local_select{};
    bool return_dropped = true; ///< give dropped partial sums to the residual of the node that drops them
    format_type format{};       ///< of the entries on the wire

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("return_dropped", how.return_dropped, "return dropped partial sums to the residual");
      visit("format", how.format, "entries on the wire");
      visit("local", how.local_select, "selection of a rank's own entries");
    }
  };

  /// Collective.
  gtopk(E exec, Comm comm, options const& how)
      : base(std::move(exec), std::move(comm), how, "gtopk",
             [&](agreement& terms) { terms.fact("return_dropped", how.return_dropped); }),
        return_dropped_(how.return_dropped), reduction_tree_(how.format) {
    base::name_ = return_dropped_ ? "gtopk" : "gtopk_published";
  }

  /// 2k ceil(log2 P) for entries of two words, half of Table 1's 4k log2 P, which counts both directions; in addition a
  /// header of 4 words in each message.
  double bound_words() const {
    return reduction_tree_.bound_words(base::comm_.size(), base::length_, base::k_).total(base::comm_);
  }

  /// The work of a steady call.
  static detail::call_cost expected_cost(options const& how, int ranks) {
    detail::call_cost const selecting{.selected = static_cast<double>(how.length), .passes = 1};
    return selecting + decltype(reduction_tree_)::expected_cost(how.format, ranks, static_cast<double>(how.length),
                                                                detail::expected_k(how));
  }

  static allreduce_promises promises(options const& how) {
    allreduce_promises all = base::promises(how, allreduce_promises::order::of_tree, how.return_dropped);
    all.conserves = how.return_dropped;
    return all;
  }

  /// As in `gradient_allreduce`.
  void fail(detail::fault_report const& why) { base::fail_in(*this, why); }

  /// One iteration. Collective. The accumulator is only read.
  template <accumulator_input<index_type, value_type, E> Input>
  update_type const& operator()(Input const& accumulator) {
    return base::make_call("oktopk::gtopk", [&](call_context<E, Comm>& call, typename base::state_type& next) {
      entries_type const selection = base::local_selection_.run(call, accumulator, next.local).entries;
      auto const own = detail::as_source<index_type, value_type, E>(accumulator).materialized().values;
      auto const tree = reduction_tree_.run(call, selection, own, return_dropped_);
      // In the published form the dropped sums are lost; the parts that messages rounded off the result are not.
      auto const contributed = return_dropped_
                                   ? selection.indices
                                   : contributed_indices_.run(call.exec, selection.indices, tree.sums.indices);
      return update_type(tree.sums, contributed, tree.dropped);
    });
  }

private:
  bool return_dropped_;
  detail::reduction_tree<E, Comm, format_type> reduction_tree_;
  detail::contributed_indices<E, index_type> contributed_indices_;
};

/// Deduces from options in braces, as `ok_topk` does.
template <class E, class Comm, class Options = typename gtopk<E, Comm>::options>
gtopk(E, Comm, Options const&) -> gtopk<E, Comm>;

} // namespace oktopk
