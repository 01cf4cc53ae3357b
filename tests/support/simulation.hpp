// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Simulated worlds for the ranks of `in_process::run`: the order of events follows from a seed, time is virtual, and
/// planned faults happen where they were planned.

#include <oktopk/comm/in_process.hpp>
#include <oktopk/core/integers.hpp>

#include <algorithm>
#include <deque>
#include <limits>

namespace oktopk::in_process {

/// A fault of a rank or of one of its messages.
enum class injected_fault : std::uint8_t {
  death,    ///< the rank ends before it starts the message; nothing of it is delivered any more
  stop,     ///< the rank stands still for a time before it starts the message
  loss,     ///< the message never arrives, though its sender believes so
  doubling, ///< the message arrives twice
  delay,    ///< the message takes longer, by `time`
  bit_flip, ///< the message arrives with one bit changed
};

constexpr std::string_view name(injected_fault what) noexcept {
  constexpr std::string_view names[] = {"death", "stop", "loss", "doubling", "delay", "bit_flip"};
  return names[static_cast<int>(what)];
}

/// One fault of a simulated world: a rank and its i-th message.
///
/// Messages of a rank are counted from 1: its sends, its receives and its part in `allreduce`. A fault of a message
/// strikes the first send from the i-th message on, a flip the first send that has bytes.
struct planned_fault {
  injected_fault what = injected_fault::death;
  int rank = 0;
  std::int64_t message = 1;
  std::chrono::nanoseconds time{0}; ///< of a stop or a delay
  std::uint64_t bit = 0;            ///< of a flip, modulo the bits of the message

  /// "stop of rank 2 at its message 17 for 0.500000 s"
  std::string text() const {
    std::string said =
        std::string(name(what)) + " of rank " + std::to_string(rank) + " at its message " + std::to_string(message);
    if (what == injected_fault::stop || what == injected_fault::delay) {
      said += " for " + std::to_string(std::chrono::duration<double>(time).count()) + " s";
    }
    return said + (what == injected_fault::bit_flip ? ", bit " + std::to_string(bit) : "");
  }

  bool operator==(planned_fault const&) const = default;
};

/// All faults of a simulated world, each of which happens at most once.
struct fault_plan {
  std::vector<planned_fault> faults;

  std::string text() const {
    std::string all;
    for (planned_fault const& each : faults) {
      all += (all.empty() ? "" : "; ") + each.text();
    }
    return all.empty() ? "no faults" : all;
  }
};

/// The events of a simulated world, counted.
struct simulated_run {
  struct injection {
    planned_fault what;
    std::chrono::nanoseconds at{0}; ///< in virtual time
  };

  std::vector<std::int64_t> messages; ///< number that each rank started
  std::vector<injection> injections;  ///< the faults that happened, in their order
  std::int64_t events = 0;            ///< choices that were made
  std::chrono::nanoseconds end{0};    ///< in virtual time
};

/// Chooses the next event of a simulated world; for programs that try one order of events after another.
class event_order {
public:
  static constexpr std::size_t end = std::numeric_limits<std::size_t>::max();

  event_order() = default;
  event_order& operator=(event_order&&) = delete;
  virtual ~event_order() = default;

  /// Returns the index of the next event, below `possible`; `end`: none, all ranks end here as if they had died. Throws
  /// nothing.
  ///
  /// An event is a rank that continues, or a message that arrives. `state` stands for all events so far: it is the same
  /// number after another order of the same events, if the ranks compute the same from the same messages.
  virtual std::size_t next(std::size_t possible, std::uint64_t state) = 0;
};

/// A world in which one number decides everything that a network and an operating system leave open.
///
/// Time is virtual: it passes while messages are under way and at each step of a rank, and it jumps to the next event
/// if no rank can continue. So time limits cost no time, and the same seed gives the same run. A member `simulated` of
/// `in_process::options` takes one.
struct simulation {
  std::uint64_t seed = 0;                                               ///< of the order of events and of the times
  std::chrono::nanoseconds message_time = std::chrono::milliseconds(1); ///< the most that most messages take
  std::chrono::nanoseconds step_time = std::chrono::microseconds(20); ///< the most from one event of a rank to its next
  fault_plan faults{};
  /// If set, it decides instead of the seed; then messages take no time, but arrive when it says so, and no
  /// time passes. Outlives the world.
  event_order* order = nullptr;
  bool yields_at_messages = true;  ///< true if other ranks may run whenever a message is started
  simulated_run* result = nullptr; ///< gets the counts when all ranks have ended; outlives the world

  std::unique_ptr<detail::in_process_schedule> operator()(int ranks) const;
};

/// Thrown in a rank that dies by the plan of a simulation: no `std::exception`, so that no program handles it.
struct [[gnu::visibility("default")]] rank_died {};

/// True if `thrown` comes from a rank that died by the plan of a simulation.
inline bool has_died(std::exception_ptr const& thrown) {
  try {
    if (thrown != nullptr) {
      std::rethrow_exception(thrown);
    }
  } catch (rank_died const&) {
    return true;
  } catch (...) { // NOLINT(bugprone-empty-catch): an error, which the caller has
  }
  return false;
}

/// As `run`, where a rank that died by the plan has not failed; rethrows what the first rank that failed threw.
template <class Body>
void run_with_deaths(int ranks, Body const& body, options const& how) {
  for (std::exception_ptr const& thrown : run_and_collect(ranks, body, how)) {
    if (thrown != nullptr && !has_died(thrown)) {
      std::rethrow_exception(thrown);
    }
  }
}

} // namespace oktopk::in_process

namespace oktopk::detail {

/// The order of events, the clock, the faults and the messages under way of a simulated world. At each message any
/// other rank may run, too.
class simulated_schedule final : public in_process_schedule {
public:
  simulated_schedule(in_process::simulation const& how, int ranks)
      : in_process_schedule(ranks), how_(how), random_(how.seed), ranks_(static_cast<std::size_t>(ranks)),
        happened_(how.faults.faults.size()) {
    run_.messages.assign(ranks_.size(), 0);
  }

  time now() const override { return now_; }
  bool has_died(int fiber) const override { return ranks_[index(fiber)].died; }

  void step(int fiber) override {
    throw_if_dead(fiber);
    ranks_[index(fiber)].steps += 1;
  }

  /// Counts the message; planned faults of the rank strike here.
  void before_message(int fiber) override {
    step(fiber);
    run_.messages[index(fiber)] += 1;
    if (auto const* const hit = inject(fiber, hits_rank)) {
      if (hit->what == in_process::injected_fault::death) {
        ranks_[index(fiber)].died = true;
        throw in_process::rank_died();
      }
      ranks_[index(fiber)].sleeps_until = sum(now_, hit->time);
      pause(fiber);
      throw_if_dead(fiber);
    }
    if (how_.yields_at_messages && !is_stuck()) {
      pause(fiber);
      step(fiber);
    }
  }

  in_process_message* post(in_process_group& group, in_process_message const& posted) override {
    int const fiber = group.of(posted.owner).fiber;
    message_note noted{&group, fiber, static_cast<std::uint64_t>(run_.messages[index(fiber)]), nullptr};
    if (!posted.receives) {
      noted.planned = inject(fiber, [&](in_process::injected_fault what) {
        return !hits_rank(what) && (posted.size > 0 || what != in_process::injected_fault::bit_flip);
      });
    }
    in_process_message message = posted;
    message.note = &notes_.emplace_back(noted);
    if (is_hit_by(message, in_process::injected_fault::loss)) {
      in_process_message* const lost = group.keep(message);
      launch(*lost, nullptr);
      return lost;
    }
    in_process_message* const added = group.meet(message);
    if (is_hit_by(message, in_process::injected_fault::doubling)) {
      message.data = copies_.emplace_back(message.data, message.data + message.size).data();
      noted.planned = nullptr;
      message.note = &notes_.emplace_back(noted);
      group.meet(message); // nobody waits for this one
    }
    return added;
  }

  /// Puts a message under way; `to` is null if it will not arrive.
  void launch(in_process_message& from, in_process_message* to) override {
    flights_.push_back({is_explored() ? never : sum(now_, way_time(from)), &from, to});
  }

  void recall(int fiber, void const* group) noexcept override {
    std::erase_if(flights_, [&](flight const& each) {
      return (group == nullptr || note_of(*each.from).group == group) &&
             (note_of(*each.from).fiber == fiber || (each.to != nullptr && note_of(*each.to).fiber == fiber));
    });
  }

protected:
  void run_all() override {
    std::vector<int> able;
    while (!has_ended()) {
      bool const stuck = is_stuck();
      if (!stuck && !is_explored()) {
        deliver_due();
      }
      able.clear();
      for (int rank = 0; rank < size(); ++rank) {
        if (!has_finished(rank) && (stuck || is_able(rank))) {
          able.push_back(rank);
        }
      }
      std::size_t const arrivals = is_explored() && !stuck ? flights_.size() : 0; // each of them is a choice, too
      if (able.empty() && arrivals == 0) {
        wait_for_event();
        continue;
      }
      std::size_t const next = stuck ? 0 : choose(able.size() + arrivals);
      if (next == in_process::event_order::end) {
        end_all();
      } else if (next < able.size()) {
        go_on(able[next]);
        now_ += is_explored() ? time(0) : part_of(how_.step_time);
      } else {
        land(flights_.begin() + static_cast<std::ptrdiff_t>(next - able.size()));
      }
    }
    run_.end = now_;
    if (how_.result != nullptr) {
      *how_.result = run_;
    }
  }

private:
  struct flight {
    time arrives{};
    in_process_message* from = nullptr;
    in_process_message* to = nullptr;
  };

  // What is known of a message beside its bytes.
  struct message_note {
    void const* group = nullptr;
    int fiber = 0;                                      // that owns it: its rank in the communicator of all ranks
    std::uint64_t number = 0;                           // among the messages of the rank
    in_process::planned_fault const* planned = nullptr; // the fault that strikes it
  };

  struct rank_state {
    bool died = false;
    std::size_t steps = 0; ///< number of messages that it came to, and of waits that it came to or left
    time sleeps_until{0};
  };

  static std::size_t index(int fiber) { return static_cast<std::size_t>(fiber); }
  bool is_explored() const { return how_.order != nullptr; }

  void throw_if_dead(int fiber) const {
    if (has_died(fiber)) {
      throw in_process::rank_died();
    }
  }

  static bool hits_rank(in_process::injected_fault what) {
    return what == in_process::injected_fault::death || what == in_process::injected_fault::stop;
  }

  static message_note const& note_of(in_process_message const& message) {
    return *static_cast<message_note const*>(message.note);
  }

  static bool is_hit_by(in_process_message const& message, in_process::injected_fault what) {
    return note_of(message).planned != nullptr && note_of(message).planned->what == what;
  }

  // The first planned fault of a kind that strikes the message which was counted last, or null. It happens now.
  template <class Fits>
  in_process::planned_fault const* inject(int fiber, Fits const& fits) {
    for (std::size_t i = 0; i < happened_.size(); ++i) {
      in_process::planned_fault const& each = how_.faults.faults[i];
      if (!happened_[i] && each.rank == fiber && each.message <= run_.messages[index(fiber)] && fits(each.what)) {
        happened_[i] = true;
        run_.injections.push_back({each, now_});
        return &each;
      }
    }
    return nullptr;
  }

  // Delivers what has arrived by now, the earliest first.
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

  bool is_able(int rank) {
    return ranks_[index(rank)].sleeps_until <= now_ && (!state(rank).waits || state(rank).is_over(now_));
  }

  // Chooses the next of `possible` events.
  std::size_t choose(std::size_t possible) {
    run_.events += 1;
    return is_explored() ? how_.order->next(possible, state_number()) : static_cast<std::size_t>(draw() % possible);
  }

  // Stands for the set of messages that have arrived, and for the progress of each rank.
  std::uint64_t state_number() const {
    std::uint64_t number = arrived_;
    for (rank_state const& each : ranks_) {
      number = mix(number) + each.steps;
    }
    return number;
  }

  // No rank can continue now. Time passes to the next arrival or time limit. If nothing will arrive, all ranks are
  // stuck, by a fault of the program; after a planned fault they wait for their time limits first.
  void wait_for_event() {
    time arrival = never;
    time deadline = never;
    for (flight const& each : flights_) {
      arrival = std::min(arrival, each.arrives);
    }
    for (int rank = 0; rank < size(); ++rank) {
      if (!has_finished(rank)) {
        time const wakes = ranks_[index(rank)].sleeps_until;
        arrival = wakes > now_ ? std::min(arrival, wakes) : arrival;
        deadline = std::min(deadline, state(rank).until);
      }
    }
    if (arrival == never && (deadline == never || run_.injections.empty())) {
      declare_stuck();
    } else {
      now_ = std::max(now_, std::min(arrival, deadline == never ? never : deadline + time(1)));
    }
  }

  void end_all() {
    for (rank_state& each : ranks_) {
      each.died = true;
    }
    for (int rank = 0; rank < size(); ++rank) {
      while (!has_finished(rank)) {
        go_on(rank);
      }
    }
  }

  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }

  // splitmix64, by Sebastiano Vigna's published recurrence.
  std::uint64_t draw() {
    random_ += 0x9e3779b97f4a7c15U;
    return mix(random_);
  }

  time part_of(time most) {
    return most <= time(0) ? most : time(static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(most.count())));
  }

  // Most messages take up to `message_time`, a third no time at all, and one in sixteen up to sixteen times as long.
  time way_time(in_process_message const& message) {
    std::uint64_t const kind = draw() % 16;
    time const usual = kind < 5 ? time(0) : part_of(kind == 15 ? 16 * how_.message_time : how_.message_time);
    bool const late = is_hit_by(message, in_process::injected_fault::delay);
    return late ? in_process_schedule::sum(usual, note_of(message).planned->time) : usual;
  }

  void land(std::vector<flight>::iterator which) {
    auto const [arrives, from, to] = *which;
    flights_.erase(which);
    if (is_explored()) {
      fnv1a digest; // sender and bytes: a rank that computes other values in another order sends other bytes
      digest.add(&note_of(*from).fiber, sizeof(int));
      digest.add(&note_of(*from).number, sizeof(std::uint64_t));
      digest.add(from->data, from->size);
      arrived_ += mix(digest.value());
    }
    if (to == nullptr) {
      from->done = true;
      return;
    }
    deliver(*from, *to);
    std::uint64_t const bits = 8 * std::min(to->arrived, to->size);
    if (is_hit_by(*from, in_process::injected_fault::bit_flip) && bits > 0) {
      std::uint64_t const bit = note_of(*from).planned->bit;
      to->data[bit % bits / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    }
  }

  in_process::simulation how_;
  in_process::simulated_run run_;
  std::uint64_t random_;
  time now_{0};
  std::uint64_t arrived_ = 0; // stands for the set of arrived messages, if orders are explored
  std::vector<rank_state> ranks_;
  std::vector<bool> happened_;                // the planned faults
  std::deque<std::vector<std::byte>> copies_; // bytes that are sent a second time
  std::vector<flight> flights_;
  std::deque<message_note> notes_; // of every message of the run
};

} // namespace oktopk::detail

namespace oktopk::in_process {

inline std::unique_ptr<detail::in_process_schedule> simulation::operator()(int ranks) const {
  return std::make_unique<detail::simulated_schedule>(*this, ranks);
}

} // namespace oktopk::in_process
