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
#include <oktopk/exchange/concept.hpp>
#include <oktopk/exchange/schedule.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/partition/regions.hpp>
#include <oktopk/sparse/arithmetic.hpp>
#include <oktopk/sparse/region_sum.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

namespace oktopk {

namespace detail {

/// The first phase (paper, section 3.1.1; Algorithm 1, line 8): every rank sends each region's share of its selection
/// to the region's owner, who sums what arrives.
///
/// In one stage, unless the schedule cuts the ranks into groups (`radix`): P-1 messages each way, one per peer, each
/// with a header of 2 words: the number of its entries, or the sender's fault. At most the selection is sent: 2k(P-1)/P
/// words in COO where it lies evenly over the regions, 2k at worst. A later stage has a message for each other group
/// and headers of 4 words, which name the faulty rank, too; the selection is then brought into the order of the groups
/// first, in one pass, and so are the losses of a lossy format afterwards. With a `Combiner`, what it makes of the values
/// of each index takes the place of sums. While one bucket's messages are in flight the
/// previous bucket is summed, in the schedule's order; if messages are ordered among the kernels of the instance, one
/// bucket follows the other.
template <execution_space E, communicator Comm, sparse_format Format, schedule Schedule,
          combiner<typename Format::value_type> Combiner =
              oktopk::sum_of<typename Format::value_type, non_finite_fault>>
class split_and_reduce {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using width_type = width_of<Format>;
  using entries_type = sparse_ref<index_type, value_type, typename E::memory_space>;

  using result_type = reduced<Format, E>;

  [[gnu::cold]] explicit split_and_reduce(Schedule how, Format const& format = {})
      : schedule_(how), format_(format), sum_(width_type(format.width())),
        decoded_("oktopk::split_and_reduce::decoded", width_type(format.width())),
        arranged_("oktopk::split_and_reduce::arranged", width_type(format.width())) {}

  /// Collective. `owned` is identical on all ranks, and so is what is known of the entries that ranks bring. If that is
  /// nothing, ranks announce their sizes first, in as many more messages of 2 words. Throws the fault of the lowest faulty
  /// rank on every rank; notes in the call a sum that overflows, and that this rank has got more than `owned` allows.
  result_type run(call_context<E, Comm>& call, contribution<Format, E> const& mine, regions<E> const& owned) {
    profiling_region const profiled("oktopk::split_and_reduce");
    plan(call, owned);
    pairs_ = in_stages() ? rank_pairs() : mine.pairs;
    entries_type held = order_->arranged(call.exec, mine.entries, arranged_); // for the regions of `range`
    std::optional<std::int64_t> most_held = mine.most;
    rank_range range{0, call.comm.size()};
    first_fault overflow; // goes out with the next exchange of all ranks: no rank may know more than others do
    below_.clear();
    above_.clear();
    for (std::size_t stage = 0; stage == 0 || (Schedule::has_stages && range.size() > 1); ++stage) {
      split_positions<E, index_type>(call.exec, held.indices, order_->boundaries(), positions_);
      enter(range, stage == 0);
      range = own_;
      region const own = region_of(own_);
      sum_.open(call.exec, own, in_stages() ? 0 : room(mine, owned));
      sum_.add(call.exec, share_of(held, own_));
      received_ = share_of(held, own_).size();
      exchange(call, held, own, most_held);
      note_losses(call, held, stage);
      if (Schedule::has_stages && range.size() > 1) {
        held = call.faults ? entries_type{} : sums_to_pass_on(call, overflow);
        if (most_held) { // of the ranks that are summed
          bool const is_all = *most_held > call.length / (most_arrivals_ + 1);
          most_held = is_all ? call.length : *most_held * (most_arrivals_ + 1);
        }
      }
    }
    call.throw_if_faulty();
    auto const [sums, fault] = sum_.extract_checked(call.exec, owned.region_of(call.comm.rank()).begin);
    hear(overflow, fault, owned, call.comm.rank());
    call.note(overflow.report());
    call.is_uneven = !in_stages() && mine.most && static_cast<double>(received_) > most_even(mine, owned);
    std::reverse(above_.begin(), above_.end());
    return {sums, mine.most, below_, above_, order_, own_place_};
  }

  /// In a later stage a rank sends no more than the ranks have brought whose entries it has summed.
  word_bound bound_words(call_size const& of) const {
    word_bound all;
    std::vector<int> const cuts = schedule_.groups(of.ranks, of.length, of.k);
    double most = of.to_others;
    double summed = 1; // ranks
    for (rank_range range{0, of.ranks}; range.size() > 1;) {
      int const groups = cuts[at(range.size())];
      double const header = (range.size() == of.ranks ? 2.0 : 4.0) + (of.selected ? 0.0 : 2.0);
      all = all + word_bound{split_words_at_most(format_, groups - 1, most, {0, of.length}), header * (groups - 1),
                             groups - 1.0};
      summed *= range.most_summed(groups);
      most = std::min(static_cast<double>(of.selected.value_or(of.length)) * summed, static_cast<double>(of.length));
      range = range.group(0, groups);
    }
    return all;
  }

  /// For selections of k in regions that split them evenly.
  static detail::call_cost expected_cost(Format const& format, Schedule const& how, int ranks, std::int64_t length,
                                         double k) {
    detail::call_cost all{.decoded = ranks == 1 ? expected_places(format, k, static_cast<double>(length)) : 0,
                          .passes = ranks == 1 ? 1.0 : 0.0};
    std::vector<int> const cuts = how.groups(ranks, length, static_cast<std::int64_t>(k));
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
  void plan(call_context<E, Comm> const& call, regions<E> const& owned) {
    std::array<std::int64_t, 3> const sizes{call.comm.size(), call.length, call.k};
    if (sizes != planned_) {
      planned_ = sizes;
      groups_ = schedule_.groups(call.comm.size(), call.length, call.k);
      ranks_.resize(groups_.size() - 1);
      if constexpr (Schedule::has_stages) {
        order_in_groups(groups_, {0, call.comm.size()}, 0, 1, ranks_);
      } else {
        std::iota(ranks_.begin(), ranks_.end(), 0);
      }
      own_place_ = static_cast<int>(std::ranges::find(ranks_, call.comm.rank()) - ranks_.begin());
      auto const stages = static_cast<std::size_t>(ceil_log2(call.comm.size())) + 1; // no more than these
      while (!Format::lossless && sent_.size() < stages) {
        sent_.emplace_back("oktopk::split_and_reduce::sent");
      }
      below_.reserve(stages);
      above_.reserve(stages);
    }
    order_ = &owned;
    if constexpr (Schedule::has_stages) {
      if (in_stages()) {
        in_groups_.compose(call.exec, owned, ranks_);
        order_ = &in_groups_;
      }
    }
  }

  bool in_stages() const { return Schedule::has_stages && groups_.back() < std::ssize(ranks_); }

  // The most entries that a rank gets, its own included, if all ranks bring as many as they may and regions are as even as
  // they need be. Four standard deviations more than an even share can be chance, and an index that all ranks have cannot be
  // cut. In stages no rank knows: entries of a few ranks may be uneven where those of all are not.
  double most_even(contribution<Format, E> const& mine, regions<E> const& owned) const {
    auto const even = static_cast<double>(mine.most.value_or(0));
    return even == 0
               ? 0
               : std::max(owned.most_load() * even, even + 4 * std::sqrt(even)) + static_cast<double>(ranks_.size());
  }

  // Calls whose regions are even allocate nothing.
  std::int64_t room(contribution<Format, E> const& mine, regions<E> const& owned) const {
    double const most = most_even(mine, owned);
    return std::isfinite(most) ? static_cast<std::int64_t>(most) : 0;
  }

  region region_of(rank_range places) const {
    return {order_->boundaries()[at(places.first)], order_->boundaries()[at(places.last)]};
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
      if (place < from.size() && pairs_.have(ranks_[at(from.first + place)], ranks_[at(rank)])) {
        arrivals_.push_back({step, ranks_[at(from.first + place)], 0});
      }
      if (from.size() > own_.size() && place == source % own_.size()) { // the last one has no counterpart
        arrivals_.push_back({step, ranks_[at(from.last - 1)], 0});
      }
    }
    place_ = place;
    place_of_last_ = which;
    most_arrivals_ = range.most_summed(groups) - 1;
  }

  int peer_in(rank_range group) const {
    return ranks_[at(group.first + (place_ < group.size() ? place_ : place_of_last_ % group.size()))];
  }

  entries_type share_of(entries_type const& held, rank_range of) const {
    return held.slice(positions_.host()[of.first], positions_.host()[of.last]);
  }

  // A sum that is not finite, at an index of the gradient.
  static void hear(first_fault& overflow, fault_report found, regions<E> const& order, int rank) {
    found.detail = found ? order.restored(found.detail) : 0;
    overflow.hear(found, rank);
  }

  // The sums of a stage that another one follows. Sums that are not finite are not encoded.
  entries_type sums_to_pass_on(call_context<E, Comm>& call, first_fault& overflow) {
    auto const [sums, fault] = sum_.extract_checked(call.exec);
    hear(overflow, fault, *order_, call.comm.rank());
    return overflow ? entries_type{} : sums;
  }

  // Turns the values that receivers have into the losses.
  void note_losses([[maybe_unused]] call_context<E, Comm>& call, [[maybe_unused]] entries_type const& held,
                   [[maybe_unused]] std::size_t stage) {
    if constexpr (!Format::lossless) {
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
  }

  // Exchanges the messages of a stage. After the last one every rank has heard of the same faults.
  void exchange(call_context<E, Comm>& call, entries_type const& held, region own,
                std::optional<std::int64_t> most_held) {
    first_fault const mine = call.faults; // faults that others report in this stage must not go into its messages
    int const steps = static_cast<int>(targets_.size());
    bucket_ = std::clamp(schedule_.bucket(), 1, std::max(steps, 1));
    lengths_.resize(at(steps) + 1);
    messages_.reset(targets_.size() + arrivals_.size());
    cancel_on_unwind const guard(call.comm, messages_.requests(), announcements_);
    reserve_buffers(call, held, own, most_held);
    int posted = 0;
    next_arrival_ = 0;
    auto const post_until = [&](int last) {
      post(call, held, mine, posted + 1, std::min(last, steps));
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
  void reserve_buffers(call_context<E, Comm>& call, entries_type const& held, region own,
                       std::optional<std::int64_t> most_held) {
    if (is_lossy(format_)) {
      sent_[below_.size()].reserve(call.exec, held.size());
    }
    send_offsets_.assign(targets_.size() + 1, 0);
    for (std::size_t step = 0; step < targets_.size(); ++step) {
      send_offsets_[step + 1] =
          send_offsets_[step] + message_bytes(share_of(held, targets_[step]).size(), region_of(targets_[step]));
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
  void post(call_context<E, Comm>& call, entries_type const& held, first_fault const& mine, int first, int last) {
    for (int step = first; step <= last; ++step) {
      for (; next_arrival_ < arrivals_.size() && arrivals_[next_arrival_].step == step; ++next_arrival_) {
        arrival& each = arrivals_[next_arrival_];
        each.message =
            messages_.receive(incoming_.wire(slot_offset(next_arrival_), slot_bytes_), each.from, phase::reduce);
      }
      rank_range const to = targets_[at(step) - 1];
      if (!pairs_.have(ranks_[at(own_place_)], peer_in(to))) {
        continue;
      }
      std::int64_t const body = send_offsets_[at(step) - 1] + header_bytes_;
      region const theirs = region_of(to);
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
      if (!pairs_.have(ranks_[at(own_place_)], peer_in(to))) {
        continue;
      }
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
    received_ += header.detail;
    if constexpr (Format::sends_full_as_values && !counts_contributors<Combiner, value_type>) {
      if (header.detail == own.width()) {
        expect_bytes(bytes, header.detail * format_.width() * std::int64_t(sizeof(value_type)), header.detail, own);
        sum_.add_all(call.exec, reinterpret_cast<value_type const*>(incoming_.data() + offset + header_bytes_));
        return;
      }
    }
    format_.decode(call.exec, static_cast<std::byte const*>(incoming_.data() + offset + header_bytes_), bytes,
                   header.detail, own, decoded_.indices.data(), decoded_.values.data());
    sum_.add(call.exec, decoded_.entries(header.detail));
  }

  Schedule schedule_;
  Format format_;
  region_sum<index_type, value_type, E, Combiner, width_type> sum_;
  message_group<Comm> messages_;
  shared_numbers<std::int64_t, E> positions_{"oktopk::split_and_reduce::positions"};
  message_buffer<E> outgoing_{"oktopk::split_and_reduce::outgoing"};
  message_buffer<E> incoming_{"oktopk::split_and_reduce::incoming"};
  entries_buffer<index_type, value_type, E, width_type> decoded_;
  entries_buffer<index_type, value_type, E, width_type> arranged_;
  std::vector<entries_buffer<index_type, value_type, E>> sent_; // of each stage, as receivers decode it
  std::vector<entries_type> below_;                             // losses of each stage
  std::vector<entries_type> above_;
  std::array<std::int64_t, 3> planned_{};
  std::vector<int> groups_;           // of a range of so many ranks
  std::vector<int> ranks_;            // at the places of an order in which groups are ranges
  int own_place_ = 0;                 // in this order
  regions<E> in_groups_;              // the regions in this order
  regions<E> const* order_ = nullptr; // of this call: these, or those of the partitioner
  rank_pairs pairs_;                  // that exchange messages, in a call without stages
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
  std::int64_t received_ = 0;      // entries, with this rank's own share
  std::vector<typename Comm::request> announcements_;
  int bucket_ = 1; // no wider than there are steps
  std::int64_t slots_ = 0;
  std::int64_t slot_bytes_ = 0;
};

} // namespace detail
} // namespace oktopk
