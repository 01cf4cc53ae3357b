// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A warp within one function. Lanes that agree on the next instruction form a group and execute it together; where they
// part, the group that is behind goes first, so that the others are caught up with.

#include "warp.hpp"

#include <algorithm>

namespace cuda_emulator {

namespace {

class interpreter {
public:
  interpreter(warp& w, frame& f, u32 lanes) : warp_(w), frame_(f), code_(f.code->code.data()), live_(lanes) {}

  void run() {
    frame* const caller = warp_.current;
    while (live_ != 0) {
      if ((live_ & ~waiting_) == 0) {
        release_or_fail();
        continue;
      }
      choose_group();
      run_group();
    }
    warp_.current = caller;
  }

private:
  static constexpr u64 patience = 20000; // of jumps back while other lanes are ready
  static constexpr u64 fair_share = 2000;

  void park(u32 lanes, u32 place) {
    for_each_lane(lanes, [&](int lane) { next_[lane] = place; });
  }

  u32 lanes_at(u32 lanes, u32 place) const {
    u32 there = 0;
    for_each_lane(lanes, [&](int lane) { there |= u32(next_[lane] == place) << lane; });
    return there;
  }

  // Those furthest behind; from time to time others, for whom the first may wait in a loop.
  void choose_group() {
    u32 const ready = live_ & ~waiting_;
    place_ = next_[std::countr_zero(ready)];
    for_each_lane(ready, [&](int lane) { place_ = std::min(place_, next_[lane]); });
    bool const fair = impatience_ > patience;
    if (fair) {
      impatience_ = 0;
      u64 skipped = next_random(warp_.random) % static_cast<u64>(std::popcount(ready));
      for_each_lane(ready, [&](int lane) { place_ = skipped-- == 0 ? next_[lane] : place_; });
    }
    group_ = lanes_at(ready, place_);
    others_ = ready & ~group_;
    budget_ = fair ? fair_share : ~u64(0);
    until_ = ~u32(0); // where others are who may go along
    for_each_lane(fair ? 0 : others_,
                  [&](int lane) { until_ = next_[lane] > place_ ? std::min(until_, next_[lane]) : until_; });
  }

  void run_group() {
    for (bool goes_on = true; goes_on;) {
      if (place_ >= until_ || budget_-- == 0) {
        park(group_, place_);
        return;
      }
      instruction const& i = code_[place_];
      u32 lanes = group_;
      if (i.guard != no_register) {
        u32 const holds = frame_.predicates[i.guard];
        lanes &= i.guard_negated ? ~holds : holds;
      }
      ++warp_.steps;
      counters.thread_instructions += static_cast<u64>(std::popcount(lanes));
      warp_.current_instruction = place_;
      warp_.current = &frame_;
      if (i.step == step_kind::next) {
        if (lanes != 0) {
          i.run(warp_, frame_, i, lanes);
        }
        ++place_;
      } else if (i.step == step_kind::branch) {
        goes_on = branch(i, lanes);
      } else if (lanes == 0) {
        ++place_;
      } else {
        goes_on = other_step(i, lanes);
      }
    }
  }

  bool branch(instruction const& i, u32 lanes) {
    if (i.target <= place_) {
      impatience_ += others_ != 0 ? 1 : 0;
      if (warp_.steps > settings::max_steps) {
        warp_.fail(std::countr_zero(group_), "this warp executed %lu instructions: does it hang?", warp_.steps);
      }
      if (++jumps_back_ % 4096 == 0) {
        warp_.give_way(); // to those that it may be waiting for
      }
    }
    if (lanes == group_ || lanes == 0) {
      place_ = lanes == 0 ? place_ + 1 : i.target;
      return true;
    }
    park(group_, place_ + 1);
    park(lanes, i.target);
    return false;
  }

  bool other_step(instruction const& i, u32 lanes) {
    switch (i.step) {
    case step_kind::yield:
      i.run(warp_, frame_, i, lanes);
      ++place_;
      if (next_random(warp_.random) % 16 == 0) {
        warp_.give_way();
      }
      impatience_ += others_ != 0 ? 100 : 0;
      if (impatience_ > patience) {
        park(group_, place_);
        return false;
      }
      return true;
    case step_kind::branch_table:
      park(group_, place_ + 1);
      for_each_lane(lanes, [&](int lane) {
        auto const choice = static_cast<u32>(frame_.values(i.sources[0])[lane]);
        if (choice >= i.targets.size()) {
          warp_.fail(lane, "a jump by a table of %zu places to place %u", i.targets.size(), choice);
        }
        next_[lane] = i.targets[choice];
      });
      return false;
    case step_kind::call: call(*i.call, lanes); return end_of(0);
    case step_kind::leave: return end_of(lanes);
    case step_kind::exit: warp_.alive &= ~lanes; return end_of(lanes);
    case step_kind::warp_sync: meet_in_warp(i, lanes); return false;
    case step_kind::barrier: meet_in_block(i, lanes); return false;
    case step_kind::trap: warp_.fail(std::countr_zero(lanes), "trap");
    default: warp_.fail(std::countr_zero(lanes), "the emulator does not know this instruction");
    }
  }

  // These lanes, and those that left the kernel, are no more in this function.
  bool end_of(u32 lanes) {
    live_ &= warp_.alive & ~lanes;
    group_ &= live_;
    ++place_;
    return group_ != 0;
  }

  // Of what has no PTX only that is known which an assertion calls where it does not hold.
  [[noreturn]] void call_outside(call_target const& target, int lane) {
    function const& callee = *target.callee;
    if (callee.name != "__assertfail") {
      warp_.fail(lane, "a call of %s, which the emulator does not know", callee.name.c_str());
    }
    auto const argument = [&](std::size_t k) {
      u64 value = 0;
      std::memcpy(&value, frame_.parameters_of(lane) + target.arguments.at(k), callee.parameters.at(k).size);
      return value;
    };
    auto const text = [&](std::size_t k) {
      std::string result;
      for (u64 at = argument(k); u8 const c = *warp_.translate(lane, at, 1, false, memory_space::generic); ++at) {
        result += static_cast<char>(c);
      }
      return result;
    };
    warp_.fail(lane, "an assertion does not hold: %s, %s:%lu, %s", text(0).c_str(), text(1).c_str(), argument(2),
               text(3).c_str());
  }

  void call(call_target const& target, u32 lanes) {
    function& callee = *target.callee;
    if (callee.body.empty()) {
      call_outside(target, std::countr_zero(lanes));
    }
    u64 const frames_used = warp_.frames_used;
    u32 const local_used = warp_.local_used;
    frame& entered = warp_.enter(callee);
    if (target.arguments.size() != callee.parameters.size()) {
      warp_.fail(std::countr_zero(lanes), "a call of %s with other parameters than it has", callee.name.c_str());
    }
    for_each_lane(lanes, [&](int lane) {
      for (std::size_t k = 0; k < callee.parameters.size(); ++k) {
        std::memcpy(entered.parameters_of(lane) + callee.parameters[k].address,
                    frame_.parameters_of(lane) + target.arguments[k], callee.parameters[k].size);
      }
    });
    warp_.run(entered, lanes);
    if (target.result >= 0 && !callee.results.empty()) {
      for_each_lane(lanes, [&](int lane) {
        std::memcpy(frame_.parameters_of(lane) + target.result, entered.parameters_of(lane) + callee.results[0].address,
                    callee.results[0].size);
      });
    }
    warp_.frames_used = frames_used;
    warp_.local_used = local_used;
    warp_.current = &frame_;
    warp_.current_instruction = place_;
  }

  // Where only some of the group take part, the others go on.
  u32 arrive(u32 lanes) {
    park(group_, place_ + 1);
    park(lanes, place_);
    waiting_ |= lanes;
    return lanes_at(waiting_, place_);
  }

  void meet_in_warp(instruction const& i, u32 lanes) {
    u64 const* const members = frame_.values(i.members);
    for_each_lane(lanes, [&](int lane) {
      if ((members[lane] >> lane & 1) == 0) {
        warp_.fail(lane, "the mask %08x does not have the bit of lane %d, which calls", static_cast<u32>(members[lane]),
                   lane);
      }
    });
    u32 there = arrive(lanes);
    for (u32 left = there; left != 0;) { // those with another mask by themselves
      int const first = std::countr_zero(left);
      u32 const together = met(there, first);
      if (together != 0) {
        waiting_ &= ~together;
        park(together, place_ + 1);
        i.run(warp_, frame_, i, together); // may write where their masks were
        there &= ~together;
      }
      left &= ~(together | u32(1) << first);
    }
  }

  // Of those that wait where `lane` does, the ones that it waits for, where all of them are there; else none.
  u32 met(u32 there, int lane) const {
    instruction const& i = code_[next_[lane]];
    u32 wanted = all_lanes;
    u32 together = there;
    if (i.step == step_kind::warp_sync) {
      u64 const* const members = frame_.values(i.members);
      wanted = static_cast<u32>(members[lane]);
      for_each_lane(there, [&](int other) {
        together &= static_cast<u32>(members[other]) == wanted ? all_lanes : ~(u32(1) << other);
      });
    }
    return (wanted & warp_.alive & ~together) == 0 ? together : 0;
  }

  void meet_in_block(instruction const& i, u32 lanes) {
    u32 const there = arrive(lanes);
    if ((warp_.alive & ~there) != 0) {
      return;
    }
    waiting_ &= ~there;
    park(there, place_ + 1);
    int const first = std::countr_zero(there);
    warp_.barrier = static_cast<u32>(frame_.values(i.sources[0])[first]);
    warp_.barrier_threads = i.flag ? static_cast<u32>(frame_.values(i.sources[1])[first]) : 0;
    if (warp_.barrier >= barriers_per_block || warp_.barrier_threads % warp_size != 0) {
      warp_.fail(first, "there is no barrier %u for %u threads", warp_.barrier, warp_.barrier_threads);
    }
    block_barrier& barrier = warp_.in->barriers[warp_.barrier];
    barrier.any = barrier.any || (i.predicate != no_register && (frame_.lanes_where(i.sources[2]) & there) != 0);
    ++barrier.arrived;
    warp_.state = warp::states::at_barrier;
    warp_.give_way();
    frame_.set_predicate(i.predicate, warp_.barrier_any ? all_lanes : 0, there);
  }

  // All lanes wait. Some may have waited for lanes that have left the kernel since.
  void release_or_fail() {
    for (u32 left = waiting_; left != 0; left &= left - 1) {
      int const lane = std::countr_zero(left);
      if (u32 const together = met(lanes_at(waiting_, next_[lane]), lane); together != 0) {
        waiting_ &= ~together;
        return;
      }
    }
    int const first = std::countr_zero(waiting_) % warp_size;
    warp_.current = &frame_;
    warp_.current_instruction = next_[first];
    warp_.fail(first, "lanes %08x of %08x wait here for others, which wait elsewhere or are in another function",
               lanes_at(waiting_, next_[first]), warp_.alive);
  }

  warp& warp_;
  frame& frame_;
  instruction const* const code_;
  u32 live_;                 // lanes in this function
  u32 waiting_ = 0;          // of these, those that wait for others
  u32 next_[warp_size] = {}; // instruction of each lane that is not of the group
  u32 group_ = 0;
  u32 others_ = 0; // ready as well
  u32 place_ = 0;  // of the group
  u32 until_ = 0;
  u64 budget_ = 0;
  u64 impatience_ = 0;
  u64 jumps_back_ = 0;
};

} // namespace

void warp::run(frame& entered, u32 lanes) {
  interpreter(*this, entered, lanes).run();
}

} // namespace cuda_emulator
