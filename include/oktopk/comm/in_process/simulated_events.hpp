// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/in_process_group.hpp>
#include <oktopk/comm/simulation.hpp>
#include <oktopk/core/integers.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

namespace oktopk::detail {

/// The clock, the chance, the faults and the messages under way of a simulated world.
class simulated_events {
public:
  using time = std::chrono::nanoseconds;
  static constexpr time never = time::max();

  simulated_events(in_process::simulation const& how, int ranks)
      : how_(how), random_(how.seed), pending_(how.faults.faults.begin(), how.faults.faults.end()) {
    run_.messages.assign(static_cast<std::size_t>(ranks), 0);
  }

  time now() const { return now_; }
  bool yields() const { return how_.yields_at_messages; }
  bool is_explored() const { return how_.order != nullptr; }

  /// Whether a fault has happened: then a wait in vain is no mistake of the program.
  bool struck() const { return !run_.strikes.empty(); }

  /// Which of so many come first.
  std::size_t choose(std::size_t possible, std::uint64_t state) {
    run_.events += 1;
    if (is_explored()) {
      return how_.order->next(possible, state);
    }
    return static_cast<std::size_t>(draw() % possible);
  }

  /// Counts a message that a rank is about to start; gives the fault that strikes the rank here, if any.
  std::optional<in_process::planned_fault> begin_message(int rank) {
    std::int64_t const number = ++run_.messages[static_cast<std::size_t>(rank)];
    for (auto each = pending_.begin(); each != pending_.end(); ++each) {
      if (each->rank == rank && each->message <= number && strikes_rank(each->what)) {
        in_process::planned_fault const found = *each;
        pending_.erase(each);
        run_.strikes.push_back({found, now_});
        return found;
      }
    }
    return {};
  }

  /// The fault that strikes a send of so many bytes which was counted, or null.
  in_process::planned_fault const* strike_send(int rank, std::size_t bytes) {
    std::int64_t const number = run_.messages[static_cast<std::size_t>(rank)];
    for (auto each = pending_.begin(); each != pending_.end(); ++each) {
      bool const fits = !strikes_rank(each->what) && (bytes > 0 || each->what != in_process::mishap::bit_flip);
      if (each->rank == rank && each->message <= number && fits) {
        in_process::planned_fault const* const found = &at_messages_.emplace_back(*each);
        pending_.erase(each);
        run_.strikes.push_back({*found, now_});
        return found;
      }
    }
    return nullptr;
  }

  std::uint64_t messages_of(int rank) const {
    return static_cast<std::uint64_t>(run_.messages[static_cast<std::size_t>(rank)]);
  }

  /// Bytes that are sent a second time, kept until the world ends.
  std::byte* copy_of(in_process_message const& message) {
    return copies_.emplace_back(message.data, message.data + message.size).data();
  }

  /// Lets a message begin its way; `to` is null where it will not arrive.
  void launch(in_process_message& from, in_process_message* to) {
    from.under_way = true;
    if (to != nullptr) {
      to->under_way = true;
    }
    flights_.push_back({is_explored() ? never : sum(now_, way_time(from)), &from, to});
  }

  /// Nothing of a rank arrives any more, and nothing arrives there; of one group, or of all where it is null.
  void recall_all_of(int fiber, void const* group = nullptr) noexcept {
    std::erase_if(flights_, [&](flight const& each) {
      return (group == nullptr || each.from->group == group) &&
             (each.from->fiber == fiber || (each.to != nullptr && each.to->fiber == fiber));
    });
  }

  std::size_t under_way() const { return flights_.size(); }

  time next_arrival() const {
    time next = never;
    for (flight const& each : flights_) {
      next = std::min(next, each.arrives);
    }
    return next;
  }

  void advance_to(time then) { now_ = std::max(now_, then); }

  /// A rank has gone one step.
  void pass_time() {
    if (!is_explored()) {
      now_ += part_of(how_.step_time);
    }
  }

  /// Delivers what has arrived by now, the earliest first.
  void deliver_due() {
    while (!flights_.empty()) {
      auto const first = std::min_element(flights_.begin(), flights_.end(),
                                          [](flight const& a, flight const& b) { return a.arrives < b.arrives; });
      if (first->arrives > now_) {
        return;
      }
      land(first);
    }
  }

  /// Delivers one of the messages under way.
  void deliver_one(std::size_t which) { land(flights_.begin() + static_cast<std::ptrdiff_t>(which)); }

  /// Stands for the set of messages that have arrived, where they are explored.
  std::uint64_t arrived() const { return arrived_; }

  /// When all ranks have ended.
  void tell() {
    run_.end = now_;
    if (how_.told != nullptr) {
      *how_.told = run_;
    }
  }

  /// Or never.
  static time sum(time at, time by) { return by < never - at ? at + by : never; }

  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }

private:
  struct flight {
    time arrives{};
    in_process_message* from = nullptr;
    in_process_message* to = nullptr;
  };

  static bool strikes_rank(in_process::mishap what) {
    return what == in_process::mishap::death || what == in_process::mishap::stop;
  }

  // splitmix64, by Sebastiano Vigna's published recurrence.
  std::uint64_t draw() {
    random_ += 0x9e3779b97f4a7c15U;
    return mix(random_);
  }

  time part_of(time most) {
    return most.count() <= 0 ? time(0)
                             : time(static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(most.count())));
  }

  // Most messages take up to a usual time, a third no time at all, and one in sixteen sixteen times as long.
  time way_time(in_process_message const& message) {
    std::uint64_t const kind = draw() % 16;
    time const usual = kind < 5 ? time(0) : part_of(kind == 15 ? 16 * how_.message_time : how_.message_time);
    bool const late = message.hit != nullptr && message.hit->what == in_process::mishap::delay;
    return late ? sum(usual, message.hit->time) : usual;
  }

  void land(std::vector<flight>::iterator which) {
    flight const landed = *which;
    flights_.erase(which);
    if (is_explored()) {
      fnv1a told; // by whom, and what: a rank that computes something else in another order tells something else
      told.add(&landed.from->fiber, sizeof(landed.from->fiber));
      told.add(&landed.from->number, sizeof(landed.from->number));
      told.add(landed.from->data, landed.from->size);
      arrived_ += mix(told.value());
    }
    landed.from->under_way = false;
    if (landed.to == nullptr) {
      landed.from->done = true;
      return;
    }
    landed.to->under_way = false;
    deliver(*landed.from, *landed.to);
    if (landed.from->hit != nullptr && landed.from->hit->what == in_process::mishap::bit_flip) {
      flip(*landed.to, landed.from->hit->bit);
    }
  }

  static void flip(in_process_message& message, std::uint64_t bit) {
    std::uint64_t const bits = 8 * std::min(message.arrived, message.size);
    if (bits > 0) {
      message.data[bit % bits / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    }
  }

  in_process::simulation how_;
  in_process::simulated_run run_;
  std::uint64_t random_;
  time now_{0};
  std::uint64_t arrived_ = 0;
  std::vector<in_process::planned_fault> pending_;
  std::deque<in_process::planned_fault> at_messages_; // those that struck one, which stay where they are
  std::deque<std::vector<std::byte>> copies_;
  std::vector<flight> flights_;
};

} // namespace oktopk::detail
