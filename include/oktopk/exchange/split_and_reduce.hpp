// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/comm/message_group.hpp>
#include <oktopk/comm/revocation.hpp>
#include <oktopk/core/cost.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/core/options.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/exchange/concept.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/sparse/arithmetic.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

namespace oktopk {

/// Rotated destinations in buckets (paper, Fig. 2b): in each step every rank receives one message, so none is a hot
/// spot.
struct rotated {
  struct options {
    int bucket = 4; ///< messages each way in flight together, at least 1

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("bucket", how.bucket, "messages each way in flight together", at_least(1));
    }
  };

  rotated() : rotated(options{}) {}
  explicit rotated(options how) : options_(how) {}

  static int destination(int rank, int step, int ranks) { return (rank + step) % ranks; }
  static int source(int rank, int step, int ranks) { return (rank + ranks - step) % ranks; }
  int bucket() const { return options_.bucket; }
  std::string describe() const { return detail::describe_options("rotated", options_); }
  std::string problem() const { return detail::fault_of_options("rotated", options_); }

private:
  options options_;
};

namespace detail {

/// The result of split and reduce on one rank; valid until its next call.
template <sparse_format Format, execution_space E>
struct split_and_reduce_result {
  entries_of<Format, E> sums; ///< of this rank's region
  /// The losses of this rank's selection in messages: one entry for each selected entry. Empty if the format loses
  /// nothing.
  entries_of<Format, E> losses;
  std::int64_t own_first = 0; ///< the selected entries [own_first, own_last) lie in this rank's region: none was sent
  std::int64_t own_last = 0;
};

/// The first phase (paper, section 3.1.1; Algorithm 1, line 8): every rank sends each region's share of its selection
/// to the region's owner, who sums what arrives.
///
/// P-1 messages each way, one per peer, each with a header of 2 words: the number of its entries, or the sender's
/// fault. At most the selection is sent: 2k(P-1)/P words in COO where it lies evenly over the regions, 2k at worst.
/// While one bucket's messages are in flight the previous bucket is summed, in the schedule's order; if messages are
/// ordered among the kernels of the instance, one bucket follows the other.
template <execution_space E, communicator Comm, sparse_format Format, schedule Schedule>
class split_and_reduce {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using entries_type = sparse_ref<index_type, value_type, typename E::memory_space>;

  using result_type = split_and_reduce_result<Format, E>;

  explicit split_and_reduce(Schedule how, Format const& format = {}) : schedule_(how), format_(format) {}

  /// Collective. Throws the fault of the lowest faulty rank on every rank; a sum that overflows is noted in the call.
  /// `boundaries` is identical on all ranks, and so is `most_selected`: the most entries that any rank has selected, or
  /// nothing if that is not known. Then ranks announce their sizes first, in P-1 more messages of 2 words.
  result_type run(call_context<E, Comm>& call, entries_type selection, std::span<std::int64_t const> boundaries,
                  std::optional<std::int64_t> most_selected) {
    profiling_region const profiled("oktopk::split_and_reduce");
    int const rank = call.comm.rank();
    split_positions<E, index_type>(call.exec, selection.indices, boundaries, positions_);
    region const own{boundaries[at(rank)], boundaries[at(rank) + 1]};
    sum_.open(call.exec, own);
    sum_.add(call.exec, share_of(selection, rank));
    exchange(call, selection, boundaries, own, most_selected);
    call.throw_if_faulty();
    result_type result;
    result.own_first = positions_.host()[rank];
    result.own_last = positions_.host()[rank + 1];
    if (is_lossy(format_)) {
      note_losses(call.exec, selection, 0, result.own_first);
      note_losses(call.exec, selection, result.own_last, selection.size());
      result.losses = {selection.indices.data(), sent_values_.data(), selection.size()};
    }
    result.sums = sum_.extract_sums(call);
    return result;
  }

  /// Upper bound if a rank sends at most `to_others` entries. `announced` is true if ranks announce their sizes first,
  /// because nothing bounds a selection.
  word_bound bound_words(int ranks, std::int64_t length, double to_others, bool announced) const {
    return {split_words_at_most(format_, ranks - 1, to_others, {0, length}), (announced ? 4.0 : 2.0) * (ranks - 1),
            ranks - 1.0};
  }

  /// For selections of k in regions that split them evenly.
  static detail::call_cost expected_cost(Format const& format, int ranks, double length, double k) {
    double const others = ranks - 1;
    double const part = expected_places(format, k / ranks, length / ranks);
    int const bucket = std::max(Schedule(typename Schedule::options{}).bucket(), 1);
    int const rounds = (ranks - 2 + bucket) / bucket;
    return {.messages = 1.0 * rounds,
            .beside = others - rounds,
            .bytes = others * (expected_bytes(format, k / ranks, length / ranks) + message_header_bytes),
            .encoded = others * part,
            .decoded = ranks * part,
            .passes = others + ranks};
  }

private:
  // Turns the values that the owners will have into the losses.
  void note_losses(E const& exec, entries_type const& selection, std::int64_t first, std::int64_t last) {
    value_type* const sent = sent_values_.data() + first;
    losses_of<E, value_type>(exec, selection.values.data() + first, sent, last - first, sent);
  }

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  // Exchanges the messages. After that every rank has heard of the same faults.
  void exchange(call_context<E, Comm>& call, entries_type const& selection, std::span<std::int64_t const> boundaries,
                region own, std::optional<std::int64_t> most_selected) {
    first_fault const mine = call.faults; // faults that others report must not go into this rank's messages
    int const steps = call.comm.size() - 1;
    bucket_ = std::clamp(schedule_.bucket(), 1, std::max(steps, 1));
    receives_.resize(at(steps) + 1);
    lengths_.resize(at(steps) + 1);
    messages_.reset(2 * at(steps));
    cancel_on_unwind const guard(call.comm, messages_.requests(), announcements_);
    reserve_buffers(call, selection, boundaries, own, most_selected);
    int posted = 0;
    auto const post_until = [&](int last) {
      post(call, selection, boundaries, mine, posted + 1, std::min(last, steps));
      posted = std::min(last, steps);
    };
    for (int first = 1; first <= steps; first += bucket_) {
      int const last = std::min(first + bucket_ - 1, steps);
      post_until(last);
      // If messages are ordered by the instance, a wait for a kernel would also wait for the next bucket, without a
      // time limit.
      if (!ordered_by_instance(call.comm)) {
        post_until(last + bucket_);
      }
      for (int step = first; step <= last; ++step) {
        messages_.wait(call.comm, receives_[at(step)]);
        receive_one(call, schedule_.source(call.comm.rank(), step, call.comm.size()), step, own);
      }
    }
    messages_.wait_all(call.comm);
  }

  entries_type share_of(entries_type const& selection, int rank) const {
    return selection.slice(positions_.host()[rank], positions_.host()[rank + 1]);
  }

  std::int64_t message_bytes(std::int64_t count, region where) const {
    return message_header_bytes + round_up_to_8(format_.max_encoded_bytes(count, where));
  }

  // At most two buckets of receives are in use at a time, and all sends until the end.
  void reserve_buffers(call_context<E, Comm>& call, entries_type const& selection,
                       std::span<std::int64_t const> boundaries, region own,
                       std::optional<std::int64_t> most_selected) {
    int const ranks = call.comm.size();
    if (is_lossy(format_)) {
      sent_indices_.reserve(call.exec, selection.size());
      sent_values_.reserve(call.exec, selection.size());
    }
    send_offsets_.assign(at(ranks) + 1, 0);
    for (int step = 1; step < ranks; ++step) {
      int const to = schedule_.destination(call.comm.rank(), step, ranks);
      send_offsets_[at(step)] =
          send_offsets_[at(step) - 1] +
          message_bytes(share_of(selection, to).size(), {boundaries[at(to)], boundaries[at(to) + 1]});
    }
    most_received_ = std::min(most_selected ? *most_selected : announced_most(call.comm), own.width());
    slot_bytes_ = message_bytes(most_received_, own);
    outgoing_.reserve(call.exec, call.comm, send_offsets_[at(ranks) - 1]);
    incoming_.reserve(call.exec, call.comm, slot_bytes_ * std::min(2 * bucket_, ranks - 1));
    decoded_indices_.reserve(call.exec, most_received_);
    decoded_values_.reserve(call.exec, most_received_);
  }

  // The most entries that another rank has for this one's region.
  std::int64_t announced_most(Comm& comm) {
    int const ranks = comm.size();
    announced_.assign(2 * at(ranks), 0);
    announcements_.clear();
    for (int step = 1; step < ranks; ++step) {
      int const from = schedule_.source(comm.rank(), step, ranks);
      std::span<std::int64_t> const theirs(&announced_[at(ranks) + at(from)], 1);
      announcements_.push_back(comm.irecv(std::as_writable_bytes(theirs), from, phase::control));
    }
    for (int step = 1; step < ranks; ++step) {
      int const to = schedule_.destination(comm.rank(), step, ranks);
      announced_[at(to)] = positions_.host()[to + 1] - positions_.host()[to];
      std::span<std::int64_t const> const mine(&announced_[at(to)], 1);
      announcements_.push_back(comm.isend(std::as_bytes(mine), to, phase::control));
    }
    comm.wait_all(std::span(announcements_));
    return *std::max_element(announced_.begin() + ranks, announced_.end());
  }

  std::int64_t slot_offset(int step) const { return (step - 1) % (2 * bucket_) * slot_bytes_; }

  // Encodes the messages of steps first .. last, and starts them and their receives.
  void post(call_context<E, Comm>& call, entries_type const& selection, std::span<std::int64_t const> boundaries,
            first_fault const& mine, int first, int last) {
    int const ranks = call.comm.size();
    for (int step = first; step <= last; ++step) {
      receives_[at(step)] = messages_.receive(incoming_.wire(slot_offset(step), slot_bytes_),
                                              schedule_.source(call.comm.rank(), step, ranks), phase::reduce);
      int const to = schedule_.destination(call.comm.rank(), step, ranks);
      std::int64_t const body = send_offsets_[at(step) - 1] + message_header_bytes;
      region const theirs{boundaries[at(to)], boundaries[at(to) + 1]};
      entries_type const share = share_of(selection, to);
      lengths_[at(step)] = format_.encode(call.exec, share, theirs, outgoing_.data() + body);
      outgoing_.push(call.exec, body, lengths_[at(step)]);
      if (is_lossy(format_) && share.size() > 0) { // the values that the owner will have
        std::int64_t const position = positions_.host()[to];
        format_.decode(call.exec, static_cast<std::byte const*>(outgoing_.data() + body), lengths_[at(step)],
                       share.size(), theirs, sent_indices_.data() + position, sent_values_.data() + position);
      }
    }
    for (int step = first; step <= last; ++step) {
      int const to = schedule_.destination(call.comm.rank(), step, ranks);
      std::int64_t const header = send_offsets_[at(step) - 1];
      outgoing_.put(call.exec, header, call.header(mine, share_of(selection, to).size(), phase::reduce));
      messages_.send(outgoing_.wire(header, message_header_bytes + lengths_[at(step)]), to, phase::reduce);
    }
    if (first <= last) {
      // Waits for the encoding, and for the reading of the slots that are received into again.
      messages_.start(call.exec, call.comm, "oktopk::split_and_reduce::encoded");
    }
  }

  void receive_one(call_context<E, Comm>& call, int from, int step, region own) {
    std::int64_t const offset = slot_offset(step);
    auto const header = call.read_header(incoming_.get(call.exec, offset), from, phase::reduce);
    if (header) {
      call.faults.hear(header, from);
      return;
    }
    std::int64_t const bytes = messages_.bytes(receives_[at(step)]) - message_header_bytes;
    if (bytes < 0 || header.detail > most_received_) {
      throw error(fault::damaged_message, "split_and_reduce: rank " + std::to_string(from) + " sent " +
                                              std::to_string(bytes) + " bytes for " + std::to_string(header.detail) +
                                              " entries, where " + std::to_string(most_received_) +
                                              " are the most that it can have here");
    }
    incoming_.pull(call.exec, offset + message_header_bytes, bytes);
    format_.decode(call.exec, static_cast<std::byte const*>(incoming_.data() + offset + message_header_bytes), bytes,
                   header.detail, own, decoded_indices_.data(), decoded_values_.data());
    sum_.add(call.exec, {decoded_indices_.data(), decoded_values_.data(), header.detail});
  }

  Schedule schedule_;
  Format format_;
  region_sum<index_type, value_type, E> sum_;
  message_group<Comm> messages_;
  shared_numbers<std::int64_t, E> positions_{"oktopk::split_and_reduce::positions"};
  message_buffer<E> outgoing_{"oktopk::split_and_reduce::outgoing"};
  message_buffer<E> incoming_{"oktopk::split_and_reduce::incoming"};
  buffer<index_type, typename E::memory_space> decoded_indices_{"oktopk::split_and_reduce::decoded_indices"};
  buffer<value_type, typename E::memory_space> decoded_values_{"oktopk::split_and_reduce::decoded_values"};
  buffer<index_type, typename E::memory_space> sent_indices_{"oktopk::split_and_reduce::sent_indices"};
  buffer<value_type, typename E::memory_space> sent_values_{"oktopk::split_and_reduce::sent_values"};
  std::vector<std::int64_t> send_offsets_;
  std::vector<std::int64_t> lengths_;
  std::vector<std::int64_t> announced_;
  std::int64_t most_received_ = 0;    // entries that the decoded arrays have room for
  std::vector<std::size_t> receives_; // the message of each step
  std::vector<typename Comm::request> announcements_;
  int bucket_ = 1; // no wider than there are steps
  std::int64_t slot_bytes_ = 0;
};

template <gradient_index Index, gradient_value Value>
struct own_rounding_losses {
  Index const* from;
  Value const* exact;
  Value const* rounded;
  Index* indices;
  Value* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    indices[i] = from[i];
    values[i] = exact[i] - rounded[i];
  }
};

/// Entries that return to this rank's residual if a format is lossy: the losses of its own messages.
///
/// These are the losses of two kinds of entries: those that it sent to the owners of their regions and that are in the
/// result, and the sums of its own region that it sent to all. Every rounding is done by one rank, and returns there
/// once. Sends nothing.
template <execution_space E, sparse_format Format>
class rounding_losses {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using entries_type = entries_of<Format, E>;

  explicit rounding_losses(Format const& format = {}) : is_lossy_(is_lossy(format)) {}

  /// Ascending, unique and valid until the next run; empty where the format loses nothing. `sums` are this rank's part
  /// of the result before they were encoded, `result` is the whole, decoded, with `counts` entries of each rank.
  template <communicator Comm>
  entries_type run(call_context<E, Comm>& call, split_and_reduce_result<Format, E> const& sent,
                   entries_type const& sums, entries_type const& result, std::span<std::int64_t const> counts) {
    if (!is_lossy_ || (sent.losses.values.extent(0) == 0 && sums.size() == 0)) {
      return {};
    }
    E const& exec = call.exec;
    indices_.reserve(exec, sent.losses.size() + sums.size());
    values_.reserve(exec, sent.losses.size() + sums.size());
    std::int64_t count =
        add_contributed(exec, sent.losses.slice(0, sent.own_first), result.indices, indices_.data(), values_.data());
    own_rounding_losses<index_type, value_type> const kernel{sums.indices.data(), sums.values.data(),
                                                             own_values(call, result, counts), indices_.data() + count,
                                                             values_.data() + count};
    Kokkos::parallel_for("oktopk::rounding_losses::add_own", index_range<E>(exec, 0, sums.size()), kernel);
    count += sums.size();
    count += add_contributed(exec, sent.losses.slice(sent.own_last, sent.losses.size()), result.indices,
                             indices_.data() + count, values_.data() + count);
    return {indices_.data(), values_.data(), count};
  }

  /// The same if a rank sent `entries` to all and nothing else.
  template <communicator Comm>
  entries_type run(call_context<E, Comm>& call, entries_type const& entries, entries_type const& result,
                   std::span<std::int64_t const> counts) {
    if (!is_lossy_) {
      return {};
    }
    values_.reserve(call.exec, entries.size());
    losses_of<E, value_type>(call.exec, entries.values.data(), own_values(call, result, counts), entries.size(),
                             values_.data());
    return {entries.indices.data(), values_.data(), entries.size()};
  }

private:
  // The values of this rank's part of the result, as the others have them.
  template <communicator Comm>
  static value_type const* own_values(call_context<E, Comm>& call, entries_type const& result,
                                      std::span<std::int64_t const> counts) {
    return result.values.data() + std::accumulate(counts.begin(), counts.begin() + call.comm.rank(), std::int64_t(0));
  }

  static std::int64_t add_contributed(E const& exec, entries_type const& losses,
                                      array_ref<index_type const, typename E::memory_space> result, index_type* indices,
                                      value_type* values) {
    return losses.size() == 0 ? 0 : common_entries<E, index_type, value_type>(exec, losses, result, indices, values);
  }

  bool is_lossy_;
  buffer<index_type, typename E::memory_space> indices_{"oktopk::rounding_losses::indices"};
  buffer<value_type, typename E::memory_space> values_{"oktopk::rounding_losses::values"};
};

} // namespace detail
} // namespace oktopk
