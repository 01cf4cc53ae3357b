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
#include <oktopk/partition/region_order.hpp>
#include <oktopk/select/concept.hpp>
#include <oktopk/sparse/region_sum.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <vector>

namespace oktopk {

/// Rotated destinations in buckets (paper, Fig. 2b): in each step every rank receives one message, so none is a hot
/// spot. Each share goes straight to its owner, in P-1 messages.
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
  /// The losses of this rank in messages: an entry for each entry sent, of indices below this rank's region and above
  /// it. The lists ascend, one after the other. None if the format loses nothing.
  std::span<entries_of<Format, E> const> losses_below;
  std::span<entries_of<Format, E> const> losses_above;
};

/// Ranks [first, last) of an order of all ranks.
struct rank_range {
  int first = 0;
  int last = 0;

  int size() const { return last - first; }

  /// One of several groups that it is cut into, as even as can be.
  rank_range group(int which, int groups) const {
    return {first + static_cast<int>(even_boundary(size(), groups, which)),
            first + static_cast<int>(even_boundary(size(), groups, which + 1))};
  }

  /// Ranks whose entries a rank of a group adds up at most, its own included: one of each group, and those that have no
  /// counterpart, since their groups are larger by a rank; these are spread over the ranks of the smaller groups.
  int most_summed(int groups) const {
    int const size_of_smaller = size() / groups;
    return groups + (size() % groups + size_of_smaller - 1) / size_of_smaller;
  }

  region regions(std::span<std::int64_t const> boundaries) const {
    return {boundaries[static_cast<std::size_t>(first)], boundaries[static_cast<std::size_t>(last)]};
  }
};

/// The number of groups that a schedule cuts a range of ranks into, for each size of a range; all of one rank if it has
/// no such function.
template <class Schedule>
std::vector<int> groups_of(Schedule const& how, int ranks, std::int64_t length, std::int64_t k) {
  if constexpr (requires { how.groups(ranks, length, k); }) {
    return how.groups(ranks, length, k);
  }
  std::vector<int> all(static_cast<std::size_t>(ranks) + 1);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// The first phase (paper, section 3.1.1; Algorithm 1, line 8): every rank sends each region's share of its selection
/// to the region's owner, who sums what arrives.
///
/// In one stage, unless the schedule cuts the ranks into groups (`radix`): P-1 messages each way, one per peer, each
/// with a header of 2 words: the number of its entries, or the sender's fault. At most the selection is sent: 2k(P-1)/P
/// words in COO where it lies evenly over the regions, 2k at worst. A later stage has a message for each other group
/// and headers of 4 words, which name the faulty rank, too; the selection is then brought into the order of the groups
/// first, in one pass, and so are the losses of a lossy format afterwards. While one bucket's messages are in flight the
/// previous bucket is summed, in the schedule's order; if messages are ordered among the kernels of the instance, one
/// bucket follows the other.
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
  /// nothing if that is not known. Then ranks announce their sizes first, in as many more messages of 2 words.
  result_type run(call_context<E, Comm>& call, entries_type selection, std::span<std::int64_t const> boundaries,
                  std::optional<std::int64_t> most_selected) {
    profiling_region const profiled("oktopk::split_and_reduce");
    plan(call);
    std::int64_t const begin = boundaries[at(call.comm.rank())]; // of the own region
    std::span<std::int64_t const> const by_rank = boundaries;
    if constexpr (may_have_stages) {
      if (in_stages()) {
        boundaries = boundaries_in_order(call.exec, by_rank);
        selection = regions_.arranged(call.exec, selection, arranged_);
      }
    }
    entries_type held = selection; // for the regions of `range`
    rank_range range{0, call.comm.size()};
    first_fault overflow; // goes out with the next exchange of all ranks: no rank may know more than others do
    below_.clear();
    above_.clear();
    for (std::size_t stage = 0; stage == 0 || range.size() > 1; ++stage) {
      split_positions<E, index_type>(call.exec, held.indices, boundaries, positions_);
      enter(range, stage == 0);
      range = own_;
      region const own = own_.regions(boundaries);
      sum_.open(call.exec, own);
      sum_.add(call.exec, share_of(held, own_));
      exchange(call, held, boundaries, own, most_selected);
      note_losses(call, held, stage);
      if (range.size() > 1) {
        held = call.faults ? entries_type{} : sums_to_pass_on(call, overflow);
        if (most_selected) { // of the ranks that are summed
          bool const is_all = *most_selected > call.length / (most_arrivals_ + 1);
          most_selected = is_all ? call.length : *most_selected * (most_arrivals_ + 1);
        }
      }
    }
    call.throw_if_faulty();
    auto const [sums, found] = sum_.extract_checked(call.exec, begin);
    call.note(found);
    result_type result{sums, below_, {}};
    call.note(overflow.report());
    std::reverse(above_.begin(), above_.end());
    if constexpr (may_have_stages) {
      if (in_stages() && is_lossy(format_)) {
        losses_by_rank(call, by_rank);
      }
    }
    result.losses_below = below_;
    result.losses_above = above_;
    return result;
  }

  /// Upper bound if a rank selects at most `selected` entries, nothing if no number bounds a selection, and sends at
  /// most `to_others` in the first stage. In a later one it sends no more than the ranks have selected whose entries it
  /// has summed.
  word_bound bound_words(int ranks, std::int64_t length, std::int64_t k, double to_others,
                         std::optional<std::int64_t> selected) const {
    word_bound all;
    std::vector<int> const cuts = groups_of(schedule_, ranks, length, k);
    double most = to_others;
    double summed = 1; // ranks
    for (rank_range range{0, ranks}; range.size() > 1;) {
      int const groups = cuts[at(range.size())];
      double const header = (range.size() == ranks ? 2.0 : 4.0) + (selected ? 0.0 : 2.0);
      all = all + word_bound{split_words_at_most(format_, groups - 1, most, {0, length}), header * (groups - 1),
                             groups - 1.0};
      summed *= range.most_summed(groups);
      most = std::min(static_cast<double>(selected.value_or(length)) * summed, static_cast<double>(length));
      range = range.group(0, groups);
    }
    return all;
  }

  /// For selections of k in regions that split them evenly.
  static detail::call_cost expected_cost(Format const& format, Schedule const& how, int ranks, std::int64_t length,
                                         double k) {
    detail::call_cost all{.decoded = ranks == 1 ? expected_places(format, k, static_cast<double>(length)) : 0,
                          .passes = ranks == 1 ? 1.0 : 0.0};
    std::vector<int> const cuts = groups_of(how, ranks, length, static_cast<std::int64_t>(k));
    for (rank_range range{0, ranks}; range.size() > 1;) {
      int const groups = cuts[at(range.size())];
      double const share = 1.0 * range.size() / groups / ranks; // of all regions
      double const held = expected_similar_union(ranks / range.size(), k, static_cast<double>(length));
      double const width = static_cast<double>(length) * share;
      double const others = groups - 1;
      int const bucket = std::clamp(how.bucket(), 1, groups - 1);
      int const rounds = (groups - 2 + bucket) / bucket;
      double const header = message_header_bytes * (range.size() == ranks ? 1.0 : 2.0);
      all = all + call_cost{.messages = 1.0 * rounds,
                            .beside = others - rounds,
                            .bytes = others * (expected_bytes(format, held * share, width) + header),
                            .encoded = others * expected_places(format, held * share, width),
                            .decoded = groups * expected_places(format, held * share, width),
                            .passes = others + groups};
      range = range.group(0, groups);
    }
    return all;
  }

private:
  // A message of a stage that arrives here.
  struct arrival {
    int step;
    int from;
    std::size_t message;
  };

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  // The cuts depend on the sizes alone, and a schedule may take its time to choose them.
  void plan(call_context<E, Comm> const& call) {
    std::array<std::int64_t, 3> const sizes{call.comm.size(), call.length, call.k};
    if (sizes == planned_) {
      return;
    }
    planned_ = sizes;
    groups_ = groups_of(schedule_, call.comm.size(), call.length, call.k);
    order_.resize(groups_.size() - 1);
    order(rank_range{0, call.comm.size()}, 0, 1);
    ordered_.clear();
    own_place_ = static_cast<int>(std::ranges::find(order_, call.comm.rank()) - order_.begin());
    auto const stages = static_cast<std::size_t>(ceil_log2(call.comm.size())) + 1; // no more than these
    sent_.resize(stages);
    below_.reserve(stages);
    above_.reserve(stages);
  }

  static constexpr bool may_have_stages =
      requires(Schedule const& how) { how.groups(1, std::int64_t(1), std::int64_t(1)); };

  bool in_stages() const { return groups_.back() < static_cast<int>(order_.size()); }

  // The order of ranks in which each group of each stage is a range. Numbers of ranks that are in one place of the
  // groups of the first stage follow each other, so that these are near each other: what travels far are sums.
  void order(rank_range places, int first, int stride) {
    if (places.size() == 1) {
      order_[at(places.first)] = first;
      return;
    }
    int const groups = groups_[at(places.size())];
    for (int group = 0; group < groups; ++group) {
      order(places.group(group, groups), first + group * stride, groups * stride);
    }
  }

  std::span<std::int64_t const> boundaries_in_order(E const& exec, std::span<std::int64_t const> by_rank) {
    if (!std::ranges::equal(by_rank, ordered_)) {
      ordered_.assign(by_rank.begin(), by_rank.end());
      regions_.plan(
          exec, std::ssize(order_), [&](std::int64_t rank) { return by_rank[static_cast<std::size_t>(rank)]; },
          [&](std::int64_t place) { return order_[static_cast<std::size_t>(place)]; });
    }
    return regions_.begins();
  }

  // Begins a stage: who sends to whom.
  void enter(rank_range range, bool is_first) {
    int const rank = own_place_;
    header_bytes_ = is_first ? message_header_bytes : 2 * message_header_bytes;
    int const groups = groups_[at(range.size())];
    int which = 0;
    while (range.group(which, groups).last <= rank) {
      which += 1;
    }
    own_ = range.group(which, groups);
    int const place = rank - own_.first;
    targets_.clear();
    arrivals_.clear();
    for (int step = 1; step < groups; ++step) {
      targets_.push_back(range.group(schedule_.destination(which, step, groups), groups));
      int const source = schedule_.source(which, step, groups);
      rank_range const from = range.group(source, groups);
      if (place < from.size()) {
        arrivals_.push_back({step, order_[at(from.first + place)], 0});
      }
      if (from.size() > own_.size() && place == source % own_.size()) { // the last one has no counterpart
        arrivals_.push_back({step, order_[at(from.last - 1)], 0});
      }
    }
    place_ = place;
    place_of_last_ = which;
    most_arrivals_ = range.most_summed(groups) - 1;
  }

  int peer_in(rank_range group) const {
    return order_[at(group.first + (place_ < group.size() ? place_ : place_of_last_ % group.size()))];
  }

  entries_type share_of(entries_type const& held, rank_range of) const {
    return held.slice(positions_.host()[of.first], positions_.host()[of.last]);
  }

  // The sums of a stage that another one follows. Sums that are not finite are not encoded.
  entries_type sums_to_pass_on(call_context<E, Comm>& call, first_fault& overflow) {
    auto [sums, found] = sum_.extract_checked(call.exec);
    found.detail = found ? regions_.restored(found.detail) : 0;
    overflow.hear(found, call.comm.rank());
    return overflow ? entries_type{} : sums;
  }

  // Turns the values that receivers have into the losses.
  void note_losses(call_context<E, Comm>& call, entries_type const& held, std::size_t stage) {
    if (!is_lossy(format_) || call.faults) {
      return;
    }
    std::int64_t const first = positions_.host()[own_.first];
    std::int64_t const last = positions_.host()[own_.last];
    auto const subtract = [&](std::int64_t begin, std::int64_t end) {
      value_type* const sent = sent_[stage].values.data() + begin;
      losses_of<E, value_type>(call.exec, held.values.data() + begin, sent, end - begin, sent);
    };
    subtract(0, first);
    subtract(last, held.size());
    entries_type const all{sent_[stage].indices.data(), sent_[stage].values.data(), held.size()};
    below_.push_back(all.slice(0, first));
    above_.push_back(all.slice(last, held.size()));
  }

  // Brings the losses of all stages into the order of indices.
  void losses_by_rank(call_context<E, Comm>& call, std::span<std::int64_t const> by_rank) {
    std::int64_t count = 0;
    for (auto const* const lists : {&below_, &above_}) {
      for (entries_type const& each : *lists) {
        count += each.size();
      }
    }
    losses_.reserve(call.exec, count);
    count = 0;
    using space = typename E::memory_space;
    for (auto* const lists : {&below_, &above_}) {
      for (entries_type const& each : *lists) {
        enqueue_copy<space, space>(call.exec, losses_.indices.data() + count, each.indices.data(), each.size());
        enqueue_copy<space, space>(call.exec, losses_.values.data() + count, each.values.data(), each.size());
        count += each.size();
      }
      lists->clear();
    }
    entries_type const all = regions_.restored(call.exec, losses_.entries(count), arranged_);
    split_positions<E, index_type>(call.exec, all.indices, by_rank, positions_);
    std::int64_t const own = positions_.host()[call.comm.rank()];
    below_.push_back(all.slice(0, own));
    above_.push_back(all.slice(own, count));
  }

  // Exchanges the messages of a stage. After the last one every rank has heard of the same faults.
  void exchange(call_context<E, Comm>& call, entries_type const& held, std::span<std::int64_t const> boundaries,
                region own, std::optional<std::int64_t> most_held) {
    first_fault const mine = call.faults; // faults that others report in this stage must not go into its messages
    int const steps = static_cast<int>(targets_.size());
    bucket_ = std::clamp(schedule_.bucket(), 1, std::max(steps, 1));
    lengths_.resize(at(steps) + 1);
    messages_.reset(targets_.size() + arrivals_.size());
    cancel_on_unwind const guard(call.comm, messages_.requests(), announcements_);
    reserve_buffers(call, held, boundaries, own, most_held);
    int posted = 0;
    next_arrival_ = 0;
    auto const post_until = [&](int last) {
      post(call, held, boundaries, mine, posted + 1, std::min(last, steps));
      posted = std::min(last, steps);
    };
    std::size_t summed = 0;
    for (int first = 1; first <= steps; first += bucket_) {
      int const last = std::min(first + bucket_ - 1, steps);
      post_until(last);
      // If messages are ordered by the instance, a wait for a kernel would also wait for the next bucket, without a
      // time limit.
      if (!call.comm.ordered_by_instance()) {
        post_until(last + bucket_);
      }
      for (; summed < arrivals_.size() && arrivals_[summed].step <= last; ++summed) {
        messages_.wait(call.comm, arrivals_[summed].message);
        receive_one(call, summed, own);
      }
    }
    messages_.wait_all(call.comm);
  }

  std::int64_t message_bytes(std::int64_t count, region where) const {
    return header_bytes_ + round_up_to_8(format_.max_encoded_bytes(count, where));
  }

  // At most two buckets of receives are in use at a time, and all sends until the end.
  void reserve_buffers(call_context<E, Comm>& call, entries_type const& held, std::span<std::int64_t const> boundaries,
                       region own, std::optional<std::int64_t> most_held) {
    if (is_lossy(format_)) {
      sent_[below_.size()].reserve(call.exec, held.size());
    }
    send_offsets_.assign(targets_.size() + 1, 0);
    for (std::size_t step = 0; step < targets_.size(); ++step) {
      send_offsets_[step + 1] = send_offsets_[step] + message_bytes(share_of(held, targets_[step]).size(),
                                                                    targets_[step].regions(boundaries));
    }
    most_received_ = std::min(most_held ? *most_held : announced_most(call.comm), own.width());
    slot_bytes_ = message_bytes(most_received_, own);
    int const steps = static_cast<int>(targets_.size());
    int const in_flight = std::min(2 * bucket_, steps) * (most_arrivals_ > steps ? 2 : 1);
    slots_ = std::max<std::int64_t>(std::min<std::int64_t>(in_flight, std::ssize(arrivals_)), 1);
    outgoing_.reserve(call.exec, call.comm, send_offsets_.back());
    incoming_.reserve(call.exec, call.comm, targets_.empty() ? 0 : slot_bytes_ * slots_);
    decoded_.reserve(call.exec, most_received_);
  }

  // The most entries that another rank has for this one's group.
  std::int64_t announced_most(Comm& comm) {
    std::size_t const sends = targets_.size();
    announced_.assign(sends + arrivals_.size() + 1, 0);
    announcements_.clear();
    for (std::size_t i = 0; i < arrivals_.size(); ++i) {
      std::span<std::int64_t> const theirs(&announced_[sends + i], 1);
      announcements_.push_back(comm.irecv(std::as_writable_bytes(theirs), arrivals_[i].from, phase::control));
    }
    for (std::size_t step = 0; step < sends; ++step) {
      rank_range const to = targets_[step];
      announced_[step] = positions_.host()[to.last] - positions_.host()[to.first];
      std::span<std::int64_t const> const mine(&announced_[step], 1);
      announcements_.push_back(comm.isend(std::as_bytes(mine), peer_in(to), phase::control));
    }
    comm.wait_all(std::span(announcements_));
    return *std::max_element(announced_.begin() + static_cast<std::ptrdiff_t>(sends), announced_.end());
  }

  std::int64_t slot_offset(std::size_t which) const { return static_cast<std::int64_t>(which) % slots_ * slot_bytes_; }

  // Encodes the messages of steps first .. last, and starts them and their receives.
  void post(call_context<E, Comm>& call, entries_type const& held, std::span<std::int64_t const> boundaries,
            first_fault const& mine, int first, int last) {
    for (int step = first; step <= last; ++step) {
      for (; next_arrival_ < arrivals_.size() && arrivals_[next_arrival_].step == step; ++next_arrival_) {
        arrival& each = arrivals_[next_arrival_];
        each.message =
            messages_.receive(incoming_.wire(slot_offset(next_arrival_), slot_bytes_), each.from, phase::reduce);
      }
      rank_range const to = targets_[at(step) - 1];
      std::int64_t const body = send_offsets_[at(step) - 1] + header_bytes_;
      region const theirs = to.regions(boundaries);
      entries_type const share = share_of(held, to);
      lengths_[at(step)] = format_.encode(call.exec, share, theirs, outgoing_.data() + body);
      outgoing_.push(call.exec, body, lengths_[at(step)]);
      if (is_lossy(format_) && share.size() > 0) { // the values that the receiver will have
        std::int64_t const position = positions_.host()[to.first];
        auto const& sent = sent_[below_.size()];
        format_.decode(call.exec, static_cast<std::byte const*>(outgoing_.data() + body), lengths_[at(step)],
                       share.size(), theirs, sent.indices.data() + position, sent.values.data() + position);
      }
    }
    for (int step = first; step <= last; ++step) {
      rank_range const to = targets_[at(step) - 1];
      std::int64_t const header = send_offsets_[at(step) - 1];
      outgoing_.put(call.exec, header, call.header(mine, share_of(held, to).size(), phase::reduce));
      if (header_bytes_ > message_header_bytes) {
        outgoing_.put(call.exec, header + message_header_bytes, static_cast<std::uint64_t>(mine.rank()));
      }
      messages_.send(outgoing_.wire(header, header_bytes_ + lengths_[at(step)]), peer_in(to), phase::reduce);
    }
    if (first <= last) {
      // Waits for the encoding, and for the reading of the slots that are received into again.
      messages_.start(call.exec, call.comm, "oktopk::split_and_reduce::encoded");
    }
  }

  void receive_one(call_context<E, Comm>& call, std::size_t which, region own) {
    std::int64_t const offset = slot_offset(which);
    int const from = arrivals_[which].from;
    auto const header = call.read_header(incoming_.get(call.exec, offset), from, phase::reduce);
    std::int64_t const bytes = messages_.bytes(arrivals_[which].message) - header_bytes_;
    if (header) {
      bool const names_rank = header_bytes_ > message_header_bytes && bytes >= 0;
      call.faults.hear(header,
                       names_rank ? static_cast<int>(incoming_.get(call.exec, offset + message_header_bytes)) : from);
      return;
    }
    if (bytes < 0 || header.detail > most_received_) {
      throw error(fault::damaged_message, "split_and_reduce: rank " + std::to_string(from) + " sent " +
                                              std::to_string(bytes) + " bytes for " + std::to_string(header.detail) +
                                              " entries, where " + std::to_string(most_received_) +
                                              " are the most that it can have here");
    }
    incoming_.pull(call.exec, offset + header_bytes_, bytes);
    format_.decode(call.exec, static_cast<std::byte const*>(incoming_.data() + offset + header_bytes_), bytes,
                   header.detail, own, decoded_.indices.data(), decoded_.values.data());
    sum_.add(call.exec, decoded_.entries(header.detail));
  }

  Schedule schedule_;
  Format format_;
  region_sum<index_type, value_type, E> sum_;
  message_group<Comm> messages_;
  shared_numbers<std::int64_t, E> positions_{"oktopk::split_and_reduce::positions"};
  message_buffer<E> outgoing_{"oktopk::split_and_reduce::outgoing"};
  message_buffer<E> incoming_{"oktopk::split_and_reduce::incoming"};
  selection_workspace<index_type, value_type, E> decoded_;
  std::vector<selection_workspace<index_type, value_type, E>> sent_; // of each stage, as receivers decode it
  std::vector<entries_type> below_;                                  // losses of each stage
  std::vector<entries_type> above_;
  std::array<std::int64_t, 3> planned_{};
  std::vector<int> groups_;           // of a range of so many ranks
  std::vector<int> order_;            // ranks
  int own_place_ = 0;                 // in this order
  std::vector<std::int64_t> ordered_; // boundaries by rank
  block_order<E, index_type, value_type> regions_;
  selection_workspace<index_type, value_type, E> arranged_; // the selection; then the losses
  selection_workspace<index_type, value_type, E> losses_;
  // Of the present stage:
  rank_range own_;
  int place_ = 0;         // of this rank in its group, and in the others
  int place_of_last_ = 0; // if they are smaller and this rank is the last one, modulo their size
  std::int64_t header_bytes_ = 0;
  int most_arrivals_ = 0;           // of any rank
  std::vector<rank_range> targets_; // the groups that get a message, by step
  std::vector<arrival> arrivals_;
  std::size_t next_arrival_ = 0; // to be posted
  std::vector<std::int64_t> send_offsets_;
  std::vector<std::int64_t> lengths_;
  std::vector<std::int64_t> announced_;
  std::int64_t most_received_ = 0; // entries that the decoded arrays have room for
  std::vector<typename Comm::request> announcements_;
  int bucket_ = 1; // no wider than there are steps
  std::int64_t slots_ = 0;
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
    if (!is_lossy_) {
      return {};
    }
    E const& exec = call.exec;
    auto const entries_in = [](std::span<entries_type const> lists) {
      return std::accumulate(lists.begin(), lists.end(), std::int64_t(0),
                             [](std::int64_t count, entries_type const& each) { return count + each.size(); });
    };
    std::int64_t const most = sums.size() + entries_in(sent.losses_below) + entries_in(sent.losses_above);
    if (most == 0) {
      return {};
    }
    indices_.reserve(exec, most);
    values_.reserve(exec, most);
    std::int64_t count = 0;
    auto const add_contributed = [&](entries_type const& losses) {
      count += losses.size() == 0 ? 0
                                  : common_entries<E, index_type, value_type>(
                                        exec, losses, result.indices, indices_.data() + count, values_.data() + count);
    };
    std::ranges::for_each(sent.losses_below, add_contributed);
    own_rounding_losses<index_type, value_type> const kernel{sums.indices.data(), sums.values.data(),
                                                             own_values(call, result, counts), indices_.data() + count,
                                                             values_.data() + count};
    Kokkos::parallel_for("oktopk::rounding_losses::add_own", index_range<E>(exec, 0, sums.size()), kernel);
    count += sums.size();
    std::ranges::for_each(sent.losses_above, add_contributed);
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

  bool is_lossy_;
  buffer<index_type, typename E::memory_space> indices_{"oktopk::rounding_losses::indices"};
  buffer<value_type, typename E::memory_space> values_{"oktopk::rounding_losses::values"};
};

} // namespace detail
} // namespace oktopk
