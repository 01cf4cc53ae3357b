// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/collectives.hpp>
#include <oktopk/comm/staging.hpp>
#include <oktopk/core/fault_report.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/select/kernel/overflow.hpp>
#include <oktopk/select/search/one_rank_search.hpp>
#include <oktopk/sparse/region_sum.hpp>
#include <oktopk/sparse/sorted_sets.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace oktopk {

/// Sums of sparse vectors up a binomial tree, cut to the k largest at every node, and the root's result down again.
///
/// At level d = 1, 2, 4, ... rank r with r mod 2d = d sends to r - d, if there is one: any number of ranks. A rank
/// sends once on the way up, at most 2k words, and on the way down to each child. A message has a header of 4 words:
/// the count or a fault, and the faulty rank; a fault travels up and comes down to everybody.
template <execution_space E, communicator Comm, sparse_format Format>
class reduction_tree {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using memory_space = typename E::memory_space;
  using entries_type = sparse_ref<index_type, value_type, memory_space>;

  /// What one rank knows afterwards; entries are valid until the next call.
  struct result {
    entries_type sums;    ///< the root's, the same on all ranks
    entries_type dropped; ///< partial sums that this rank left out, with ascending and unique indices
    fault_report fault;   ///< the same on all ranks
    int faulty_rank = 0;
    double select_seconds = 0; ///< spent on choosing at the nodes
  };

  /// Collective; k, the length of the accumulators and whether what is dropped goes back to them are the same on all
  /// ranks. Where it does, a residual that overflows by it is a fault of this rank.
  result run(E const& exec, Comm& comm, array_ref<value_type const, memory_space> accumulator, entries_type selection,
             std::int64_t k, std::int64_t length, bool return_dropped, fault_report mine) {
    rank_ = comm.rank();
    everything_ = {0, length};
    result outcome;
    outcome.fault = mine;
    outcome.faulty_rank = rank_;
    make_room(exec, comm, selection.size(), k);
    cancel_on_unwind const guard(comm); // also between its messages

    entries_type kept = cut(exec, selection, k,
                            outcome); // a selector may have taken more than k
    int parent_distance = 1;
    for (; parent_distance < comm.size() && rank_ % (2 * parent_distance) == 0; parent_distance *= 2) {
      if (rank_ + parent_distance < comm.size()) {
        merge(exec, comm, rank_ + parent_distance, k, kept, outcome);
      }
    }
    outcome.sums = kept;
    // Nothing is dropped on the way down, and a fault can still travel with the message on the way up.
    outcome.dropped = dropped_sum_.extract(exec);
    if (return_dropped && !outcome.fault) {
      outcome.fault = detail::overflow_of_residual<E, index_type, value_type>(exec, accumulator, selection.indices,
                                                                              outcome.dropped);
    }
    if (rank_ != 0) {
      send(exec, comm, rank_ - parent_distance, kept, outcome, phase::reduce);
      outcome.fault = {}; // the root's word counts
      outcome.sums = receive(exec, comm, rank_ - parent_distance, phase::gather, outcome);
    }
    for (int distance = parent_distance / 2; distance >= 1; distance /= 2) {
      if (rank_ + distance < comm.size()) {
        send(exec, comm, rank_ + distance, outcome.sums, outcome, phase::gather);
      }
    }
    return outcome;
  }

private:
  static constexpr std::int64_t header_bytes = 2 * message_header_bytes;

  // All that merging takes, before the first message: k entries meet k at each node, and no more than k are dropped.
  void make_room(E const& exec, Comm& comm, std::int64_t own_entries, std::int64_t k) {
    std::int64_t const merged = std::min(2 * k, everything_.width());
    message_bytes_ = header_bytes + detail::round_up_to_8(Format::max_encoded_bytes(k, everything_));
    incoming_.reserve(exec, comm, message_bytes_);
    outgoing_.reserve(exec, comm, message_bytes_);
    decoded_.reserve(exec, k);
    sum_.open(exec, everything_, merged);
    dropped_.reserve(exec, std::max(own_entries, merged));
    dropped_sum_.open(exec, everything_, own_entries + k * detail::ceil_log2(comm.size()));
    kept_.reserve(exec, k);
    if (kept_.histograms.capacity() == 0) { // a selection of nothing makes room for those to come
      detail::largest_entries<E, index_type, value_type>(exec, {}, 1, kept_);
    }
  }

  // Adds a child's sums to this node's and keeps the k largest.
  void merge(E const& exec, Comm& comm, int child, std::int64_t k, entries_type& kept, result& outcome) {
    entries_type const theirs = receive(exec, comm, child, phase::reduce, outcome);
    if (outcome.fault) {
      return;
    }
    sum_.open(exec, everything_);
    sum_.add(exec, kept);
    sum_.add(exec, theirs);
    entries_type const merged = sum_.extract(exec);
    if (auto const overflow = detail::non_finite_in(exec, merged, fault_subject::sum)) {
      outcome.fault = overflow;
      outcome.faulty_rank = rank_;
      return;
    }
    kept = cut(exec, merged, k, outcome);
  }

  // The k largest; what is left goes to the dropped sums.
  entries_type cut(E const& exec, entries_type entries, std::int64_t k, result& outcome) {
    if (entries.size() <= k || outcome.fault) {
      return entries;
    }
    auto const start = std::chrono::steady_clock::now();
    entries_type const kept = detail::largest_entries<E, index_type, value_type>(exec, entries, k, kept_);
    dropped_.reserve(exec, entries.size());
    std::int64_t const count = difference<E, index_type, value_type>(exec, entries, kept.indices,
                                                                     dropped_.indices.data(), dropped_.values.data());
    dropped_sum_.add(exec, {dropped_.indices.data(), dropped_.values.data(), count});
    outcome.select_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return kept;
  }

  void send(E const& exec, Comm& comm, int to, entries_type entries, result const& outcome, phase use) {
    std::int64_t bytes = 0;
    if (!outcome.fault) {
      bytes = Format::encode(exec, entries, everything_, outgoing_.data() + header_bytes);
      outgoing_.push(exec, header_bytes, bytes);
    }
    detail::fence(exec, "oktopk::reduction_tree::encoded");
    fault_report const header = outcome.fault ? outcome.fault : fault_report{fault::none, entries.size()};
    outgoing_.put(exec, 0, header.packed());
    outgoing_.put(exec, message_header_bytes, static_cast<std::uint64_t>(outcome.faulty_rank));
    typename Comm::request request;
    cancel_on_unwind const guard(comm, request);
    request = comm.isend(outgoing_.wire(0, header_bytes + bytes), to, use);
    comm.wait_all(std::span(&request, 1));
  }

  entries_type receive(E const& exec, Comm& comm, int from, phase use, result& outcome) {
    detail::fence(exec,
                  "oktopk::reduction_tree::decoded"); // ends the reading of the message before
    typename Comm::request request;
    cancel_on_unwind const guard(comm, request);
    request = comm.irecv(incoming_.wire(0, message_bytes_), from, use);
    comm.wait_all(std::span(&request, 1));
    auto const header = fault_report::unpacked(incoming_.get(exec, 0));
    if (header) {
      auto const rank = static_cast<int>(incoming_.get(exec, message_header_bytes));
      if (!outcome.fault || rank < outcome.faulty_rank) {
        outcome.fault = header;
        outcome.faulty_rank = rank;
      }
      return {};
    }
    std::int64_t const bytes = static_cast<std::int64_t>(request.bytes()) - header_bytes;
    incoming_.pull(exec, header_bytes, bytes);
    Format::decode(exec, static_cast<std::byte const*>(incoming_.data() + header_bytes), bytes, header.detail,
                   everything_, decoded_.indices.data(), decoded_.values.data());
    return decoded_.entries(header.detail);
  }

  int rank_ = 0;
  region everything_;
  std::int64_t message_bytes_ = 0;
  message_buffer<E> incoming_{"oktopk::reduction_tree::incoming"};
  message_buffer<E> outgoing_{"oktopk::reduction_tree::outgoing"};
  selection_workspace<index_type, value_type, E> decoded_;
  selection_workspace<index_type, value_type, E> dropped_;
  selection_workspace<index_type, value_type, E> kept_;
  region_sum<index_type, value_type, E> sum_;
  region_sum<index_type, value_type, E> dropped_sum_;
};

} // namespace oktopk
