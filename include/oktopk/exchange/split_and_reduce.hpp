// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/cancel_on_unwind.hpp>
#include <oktopk/comm/staging.hpp>
#include <oktopk/core/fault_report.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/core/shared_numbers.hpp>
#include <oktopk/exchange/schedule.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/sparse/region_sum.hpp>
#include <oktopk/sparse/split_positions.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace oktopk {

/// The first phase (paper, section 3.1.1; Algorithm 1, line 8): every rank sends each region's share of its selection
/// to the region's owner, who sums what arrives.
///
/// P-1 messages each way, one per peer; a receiver learns the size from the message. At most the selection is sent:
/// 2k(P-1)/P words where it lies evenly over the regions, 2k at worst, and 2 words of header a message. While one
/// bucket's messages are in flight the previous bucket is summed, in the schedule's order.
template <execution_space E, communicator Comm, sparse_format Format, schedule Schedule>
class split_and_reduce {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using entries_type = sparse_ref<index_type, value_type, typename E::memory_space>;

  /// What one rank knows after the phase.
  struct result {
    entries_type reduced;     ///< the sums of this rank's region; valid until the next call
    fault_report first_fault; ///< of the lowest rank that had one; the same on all ranks
    int faulty_rank = 0;
  };

  explicit split_and_reduce(Schedule how) : schedule_(how) {}

  /// Collective. `boundaries` is identical on all ranks, and so is `capacity`: the most entries any rank has selected,
  /// or negative where nobody can tell — then ranks announce their sizes first, in P-1 more messages of 2 words.
  result run(E const& exec, Comm& comm, entries_type selection, std::span<std::int64_t const> boundaries,
             std::int64_t capacity, fault_report mine) {
    int const rank = comm.rank();
    detail::split_positions<E, index_type>(exec, selection.indices, boundaries, positions_);
    region const own{boundaries[at(rank)], boundaries[at(rank) + 1]};
    sum_.open(exec, own);
    sum_.add(exec, share_of(selection, rank));

    result outcome{{}, mine, rank};
    bucket_ = std::clamp(schedule_.bucket(), 1, std::max(comm.size() - 1, 1));
    lengths_.resize(at(comm.size()));
    cancel_on_unwind const guard(comm, receives_, sends_);
    make_room(exec, comm, boundaries, own, capacity);
    int const steps = comm.size() - 1;
    int const bucket = bucket_;
    post(exec, comm, selection, boundaries, mine, 1, std::min(bucket, steps));
    for (int first = 1; first <= steps; first += bucket) {
      int const last = std::min(first + bucket - 1, steps);
      post(exec, comm, selection, boundaries, mine, last + 1, std::min(last + bucket, steps));
      for (int step = first; step <= last; ++step) {
        comm.wait_all(std::span(&receives_[at(step - 1)], 1));
        take(exec, schedule_.source(rank, step, comm.size()), step, own, outcome);
      }
    }
    comm.wait_all(std::span(sends_));
    outcome.reduced = sum_.extract(exec);
    return outcome;
  }

private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  entries_type share_of(entries_type const& selection, int rank) const {
    return selection.slice(positions_.host()[rank], positions_.host()[rank + 1]);
  }

  static std::int64_t message_bytes(std::int64_t count, region where) {
    return message_header_bytes + detail::round_up_to_8(Format::max_encoded_bytes(count, where));
  }

  // Two buckets of receives are in use at a time, and all sends until the end.
  void make_room(E const& exec, Comm& comm, std::span<std::int64_t const> boundaries, region own,
                 std::int64_t capacity) {
    int const ranks = comm.size();
    send_offsets_.assign(at(ranks) + 1, 0);
    for (int step = 1; step < ranks; ++step) {
      int const to = schedule_.destination(comm.rank(), step, ranks);
      std::int64_t const count = positions_.host()[to + 1] - positions_.host()[to];
      send_offsets_[at(step)] =
          send_offsets_[at(step) - 1] + message_bytes(count, {boundaries[at(to)], boundaries[at(to) + 1]});
    }
    most_entries_ = std::min(capacity >= 0 ? capacity : announced_most(comm), own.width());
    slot_bytes_ = message_bytes(most_entries_, own);
    int const slots = std::min(2 * bucket_, ranks - 1);
    outgoing_.reserve(exec, comm, send_offsets_[at(ranks) - 1]);
    incoming_.reserve(exec, comm, slot_bytes_ * slots);
    decoded_indices_.reserve(exec, most_entries_);
    decoded_values_.reserve(exec, most_entries_);
    sends_.resize(at(ranks) - 1);
    receives_.resize(at(ranks) - 1);
  }

  std::int64_t announced_most(Comm& comm) {
    int const ranks = comm.size();
    announced_.assign(2 * at(ranks), 0);
    sends_.resize(at(ranks) - 1);
    receives_.resize(at(ranks) - 1);
    for (int step = 1; step < ranks; ++step) {
      int const from = schedule_.source(comm.rank(), step, ranks);
      receives_[at(step - 1)] =
          comm.irecv(std::as_writable_bytes(std::span(&announced_[at(ranks) + at(from)], 1)), from, phase::control);
    }
    for (int step = 1; step < ranks; ++step) {
      int const to = schedule_.destination(comm.rank(), step, ranks);
      announced_[at(to)] = positions_.host()[to + 1] - positions_.host()[to];
      sends_[at(step - 1)] = comm.isend(std::as_bytes(std::span(&announced_[at(to)], 1)), to, phase::control);
    }
    comm.wait_all(std::span(receives_));
    comm.wait_all(std::span(sends_));
    return *std::max_element(announced_.begin() + ranks, announced_.end());
  }

  std::int64_t slot_offset(int step) const { return (step - 1) % (2 * bucket_) * slot_bytes_; }

  // Encodes and sends the messages of steps first .. last, and makes their receives.
  void post(E const& exec, Comm& comm, entries_type const& selection, std::span<std::int64_t const> boundaries,
            fault_report mine, int first, int last) {
    if (first > last) {
      return;
    }
    int const ranks = comm.size();
    for (int step = first; step <= last; ++step) {
      int const to = schedule_.destination(comm.rank(), step, ranks);
      std::int64_t const offset = send_offsets_[at(step) - 1] + message_header_bytes;
      std::int64_t const bytes = Format::encode(
          exec, share_of(selection, to), region{boundaries[at(to)], boundaries[at(to) + 1]}, outgoing_.data() + offset);
      outgoing_.push(exec, offset, bytes);
      lengths_[at(step)] = bytes;
    }
    // Ends the encoding, and the reading of the slots that are received into again.
    detail::fence(exec, "oktopk::split_and_reduce::encoded");
    for (int step = first; step <= last; ++step) {
      receives_[at(step - 1)] = comm.irecv(incoming_.wire(slot_offset(step), slot_bytes_),
                                           schedule_.source(comm.rank(), step, ranks), phase::reduce);
    }
    for (int step = first; step <= last; ++step) {
      int const to = schedule_.destination(comm.rank(), step, ranks);
      fault_report const header = mine ? mine : fault_report{fault::none, share_of(selection, to).size()};
      outgoing_.put(exec, send_offsets_[at(step) - 1], header.packed());
      sends_[at(step - 1)] = comm.isend(
          outgoing_.wire(send_offsets_[at(step) - 1], message_header_bytes + lengths_[at(step)]), to, phase::reduce);
    }
  }

  void take(E const& exec, int from, int step, region own, result& outcome) {
    std::int64_t const offset = slot_offset(step);
    auto const header = fault_report::unpacked(incoming_.get(exec, offset));
    if (header) {
      if (!outcome.first_fault || from < outcome.faulty_rank) {
        outcome.first_fault = header;
        outcome.faulty_rank = from;
      }
      return;
    }
    std::int64_t const bytes = static_cast<std::int64_t>(receives_[at(step - 1)].bytes()) - message_header_bytes;
    incoming_.pull(exec, offset + message_header_bytes, bytes);
    Format::decode(exec, static_cast<std::byte const*>(incoming_.data() + offset + message_header_bytes), bytes,
                   header.detail, own, decoded_indices_.data(), decoded_values_.data());
    sum_.add(exec, {decoded_indices_.data(), decoded_values_.data(), header.detail});
  }

  Schedule schedule_;
  region_sum<index_type, value_type, E> sum_;
  shared_numbers<std::int64_t, E> positions_{"oktopk::split_and_reduce::positions"};
  message_buffer<E> outgoing_{"oktopk::split_and_reduce::outgoing"};
  message_buffer<E> incoming_{"oktopk::split_and_reduce::incoming"};
  buffer<index_type, typename E::memory_space> decoded_indices_{"oktopk::split_and_reduce::decoded_indices"};
  buffer<value_type, typename E::memory_space> decoded_values_{"oktopk::split_and_reduce::decoded_values"};
  std::vector<std::int64_t> send_offsets_;
  std::vector<std::int64_t> lengths_;
  std::vector<std::int64_t> announced_;
  std::vector<typename Comm::request> sends_;
  std::vector<typename Comm::request> receives_;
  int bucket_ = 1; // no wider than there are steps
  std::int64_t most_entries_ = 0;
  std::int64_t slot_bytes_ = 0;
};

} // namespace oktopk
