// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "simulate/automatic/seed.hpp"

#include "simulate/scenario.hpp"
#include "simulate/trace.hpp"
#include "support/caught.hpp"
#include "support/simulation.hpp"

#include <oktopk/error_feedback.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <sstream>

namespace oktopk_simulate {

namespace {

using oktopk::in_process::simulated_run;
using oktopk::in_process::simulation;
using oktopk_fuzz::draws;
using oktopk_fuzz::finding;
using oktopk_fuzz::mixed;
using oktopk_fuzz::same_bits;
using oktopk_fuzz::verdict;
using oktopk_tests::outcome_of;
using real_clock = std::chrono::steady_clock; // the rank's own, in a simulated world

std::string of_rank(std::size_t rank) {
  return "rank " + std::to_string(rank) + ": ";
}

double between_powers(draws& draw, double least, double most) {
  return least * std::pow(most / least, draw.real(0, 1));
}

rank_speed draw_speed(draws& draw, std::vector<network_phase> const& network) {
  rank_speed drawn;
  drawn.step = between_powers(draw, 1e-8, 1e-5);
  drawn.rate = draw.real(0.9, 1.1);
  drawn.busy = draw.chance(0.5) ? draw.real(0, 0.1) : 0;
  drawn.busy_time = between_powers(draw, 1e-5, 1e-1);
  double const slower = draw.chance(0.3) ? draw.real(1, 4) : 1;
  for (network_phase each : network) { // ranks see a change in other calls
    each.from += each.from > 0 ? static_cast<int>(draw.between(0, 2)) : 0;
    each.latency *= slower;
    each.seconds_per_byte *= slower * draw.real(0.8, 1.25);
    drawn.network.push_back(each);
  }
  return drawn;
}

oktopk::machine_model draw_machine(draws& draw) {
  oktopk::machine_model drawn;
  drawn.latency = between_powers(draw, 1e-6, 1e-3);
  drawn.seconds_per_byte = between_powers(draw, 1e-10, 1e-5);
  drawn.select = between_powers(draw, 1e-10, 1e-7);
  drawn.add = between_powers(draw, 1e-10, 1e-8);
  return drawn;
}

/// One call as a rank saw it.
struct seen_call {
  std::string scheme;
  double seconds = 0; ///< by the rank's own clock
  std::vector<std::int32_t> indices;
  std::vector<float> values;
  std::vector<float> accumulator;
  std::vector<float> residual; ///< after it
  std::chrono::nanoseconds ended{0};
};

/// What one rank has lived through.
struct seen_rank {
  std::vector<seen_call> calls;
  oktopk_tests::outcome refused; ///< what its or another rank's mistake made it throw
  bool moved = false;            ///< a call that was refused has changed the residual
  oktopk_tests::outcome broken;
  std::string broken_scheme;
  std::chrono::nanoseconds broken_at{0};
  std::int64_t switches = 0;
  std::string machine;
  bool ended = false;
};

template <class View>
auto copy_of(View const& view) {
  return std::vector<typename View::non_const_value_type>(view.data(), view.data() + view.extent(0));
}

/// One rank: makes the allreduce, calls it with error feedback, meets all others.
class automatic_life {
public:
  automatic_life(automatic_scenario const& of, oktopk::in_process_communicator world, seen_rank& seen)
      : of_(of), world_(world), rank_(world.rank()), seen_(seen), clock_(world, speed(), mixed({of.seed, rank_bits()})),
        comm_(world_communicator(world), clock_) {}

  void operator()() {
    seen_.broken = outcome_of([&] { live(); });
    if (seen_.broken.code != oktopk::fault::none) {
      seen_.broken_at = world_.elapsed();
      seen_.broken_scheme = allreduce_ ? scheme() : "";
    }
    seen_.ended = true;
  }

private:
  std::uint64_t rank_bits() const { return 0x72616e6bU + static_cast<std::uint64_t>(rank_); }
  rank_speed const& speed() const { return of_.speeds[static_cast<std::size_t>(rank_)]; }
  bool is_wrong(mistake what) const { return of_.wrong == what && rank_ == of_.wrong_rank; }
  std::string scheme() const {
    std::string const line = allreduce_->explain();
    return line.substr(0, line.find(": "));
  }

  void live() {
    clock_.begin_call(0);
    if (of_.wrong == mistake::other_options) {
      automatic_allreduce::options how = of_.how;
      how.recheck += is_wrong(mistake::other_options) ? 1 : 0;
      expect_refusal([&] { automatic_allreduce(execution(), comm_, how); });
    }
    make();
    for (int call = 0; call < of_.calls; ++call) {
      clock_.begin_call(call);
      if (call == of_.new_k_before) {
        allreduce_->set_k(std::min<std::int64_t>(of_.how.length, 2 * *of_.how.k + 1));
      }
      if (call == of_.restored_before) {
        auto const saved = feedback_->state();
        make();
        feedback_->restore(saved);
      }
      if (call == of_.wrong_call) {
        mistaken_call(call);
      }
      one_call(call);
    }
    seen_.switches = allreduce_->switches();
    std::ostringstream machine;
    machine << allreduce_->machine();
    seen_.machine = machine.str();
    // Who has all that it waits for in one barrier may hear only in the next what has happened.
    oktopk::detail::barrier_all_to_all(comm_);
    oktopk::detail::barrier_all_to_all(comm_);
  }

  void make() {
    feedback_.reset();
    allreduce_.reset();
    allreduce_.emplace(execution(), comm_, of_.how);
    feedback_.emplace(*allreduce_);
  }

  // Whole numbers, whose sums are exact.
  Kokkos::View<float*, execution> gradient(int call, std::int64_t length) const {
    Kokkos::View<float*, execution> drawn("gradient", static_cast<std::size_t>(length));
    draws draw(mixed({of_.seed, rank_bits(), static_cast<std::uint64_t>(call)}));
    std::int64_t const most = draw.one_of({0, 1, 8, 8});
    for (std::size_t i = 0; i < drawn.extent(0); ++i) {
      drawn(i) = static_cast<float>(draw.between(-most, most));
    }
    return drawn;
  }

  template <class Call>
  void expect_refusal(Call const& call) {
    seen_.refused = outcome_of(call);
    if (is_of_communicator(seen_.refused.code)) {
      throw oktopk::error(seen_.refused.code, seen_.refused.text);
    }
  }

  void mistaken_call(int call) {
    if (of_.wrong == mistake::none || of_.wrong == mistake::other_options) {
      return;
    }
    auto const before = copy_of(feedback_->residual());
    if (of_.wrong == mistake::other_k) {
      std::int64_t const k = allreduce_->k();
      expect_refusal([&] { allreduce_->set_k(is_wrong(mistake::other_k) ? (k > 0 ? k - 1 : k + 1) : k); });
    } else {
      auto const spoilt = gradient(call, of_.how.length + (is_wrong(mistake::wrong_length) ? 1 : 0));
      if (is_wrong(mistake::not_a_number) || is_wrong(mistake::infinite)) {
        spoilt(spoilt.extent(0) / 2) = is_wrong(mistake::infinite) ? std::numeric_limits<float>::infinity()
                                                                   : std::numeric_limits<float>::quiet_NaN();
      }
      expect_refusal([&] { (*feedback_)(spoilt); });
    }
    seen_.moved = !same_bits(before, copy_of(feedback_->residual()));
  }

  void one_call(int call) {
    auto const fresh = gradient(call, of_.how.length);
    seen_call seen;
    seen.accumulator = copy_of(feedback_->residual());
    for (std::size_t i = 0; i < seen.accumulator.size(); ++i) {
      seen.accumulator[i] += fresh(i);
    }
    auto const begun = real_clock::now();
    auto const& update = (*feedback_)(fresh);
    seen.seconds = std::chrono::duration<double>(real_clock::now() - begun).count();
    seen.scheme = scheme();
    seen.indices = copy_of(update.indices());
    seen.values = copy_of(update.values());
    seen.residual = copy_of(feedback_->residual());
    seen.ended = world_.elapsed();
    seen_.calls.push_back(std::move(seen));
  }

  automatic_scenario const& of_;
  oktopk::in_process_communicator world_;
  int rank_;
  seen_rank& seen_;
  rank_clock clock_;
  clocked comm_;
  std::optional<automatic_allreduce> allreduce_;
  std::optional<oktopk::error_feedback<automatic_allreduce>> feedback_;
};

struct seen_world {
  std::vector<seen_rank> ranks;
  std::vector<bool> died;
  simulated_run run;
  verdict wrong; ///< what a rank threw that nobody expects
};

// What objects of this thread measured before is forgotten: this is for another number of ranks.
void forget_machine() {
  oktopk::in_process::options how;
  how.simulated = simulation{};
  oktopk::in_process::run(
      1,
      [](oktopk::in_process_communicator world) {
        rank_clock clock(world, {}, 0);
        automatic_allreduce const measured(execution(), clocked(world_communicator(world), clock),
                                           {.length = 1, .k = 1});
      },
      how);
  rank_clock::at_work = nullptr;
}

seen_world run_world(automatic_scenario const& of, oktopk::in_process::fault_plan const& faults) {
  seen_world made;
  made.ranks.resize(static_cast<std::size_t>(of.ranks));
  if (of.measures) {
    forget_machine();
  }
  oktopk::in_process::options how;
  how.simulated = simulation{.seed = mixed({of.seed, 1}), .faults = faults, .result = &made.run};
  auto const thrown = oktopk::in_process::run_and_collect(
      of.ranks,
      [&](oktopk::in_process_communicator world) {
        world.set_time_limit(automatic_deadline);
        automatic_life(of, world, made.ranks[static_cast<std::size_t>(world.rank())])();
      },
      how);
  rank_clock::at_work = nullptr;
  made.wrong = note_deaths(thrown, made.died);
  return made;
}

// The scheme that a rank was in when it made a call, or broke down in it; empty where it did not come so far.
std::string scheme_of(seen_rank const& one, std::size_t call) {
  return call < one.calls.size() ? one.calls[call].scheme : call == one.calls.size() ? one.broken_scheme : "";
}

std::string where(std::size_t call) {
  return "call " + std::to_string(call) + ": ";
}

// What is left over and the update are what was put in.
verdict check_sums(automatic_scenario const& of, seen_world const& world, std::size_t call) {
  auto const length = static_cast<std::size_t>(of.how.length);
  std::vector<double> put_in(length, 0);
  std::vector<double> size(length, 0);
  std::vector<double> come_out(length, 0);
  for (seen_rank const& one : world.ranks) {
    for (std::size_t i = 0; i < length; ++i) {
      put_in[i] += one.calls[call].accumulator[i];
      size[i] += std::abs(one.calls[call].accumulator[i]);
      come_out[i] += one.calls[call].residual[i];
    }
  }
  seen_call const& first = world.ranks.front().calls[call];
  for (std::size_t i = 0; i < first.indices.size(); ++i) {
    come_out[static_cast<std::size_t>(first.indices[i])] += first.values[i];
  }
  for (std::size_t i = 0; i < length; ++i) { // whole numbers, unless a format rounds
    double const slack = of.how.sums == oktopk::allowed_sums::rounded ? 1e-5 * (1 + size[i]) : 0;
    if (!(std::abs(put_in[i] - come_out[i]) <= slack)) {
      std::ostringstream text;
      text << where(call) << first.scheme << ": entry " << i << ": " << put_in[i] << " was put in, " << come_out[i]
           << " came out";
      return finding{"lost", text.str()};
    }
  }
  return {};
}

// Ranks that have completed a call have taken the same scheme and have the same update.
verdict check_agreement(automatic_scenario const& of, seen_world const& world) {
  for (std::size_t call = 0; call < static_cast<std::size_t>(of.calls); ++call) {
    seen_rank const* first = nullptr;
    bool all = true;
    for (std::size_t rank = 0; rank < world.ranks.size(); ++rank) {
      seen_rank const& one = world.ranks[rank];
      if (call >= one.calls.size()) {
        all = false;
        continue;
      }
      first = first == nullptr ? &one : first;
      seen_call const& ours = first->calls[call];
      seen_call const& theirs = one.calls[call];
      if (ours.scheme != theirs.scheme) {
        return finding{"disagree", where(call) + of_rank(rank) + theirs.scheme + ", another one: " + ours.scheme};
      }
      if (ours.indices != theirs.indices || !same_bits(ours.values, theirs.values)) {
        return finding{"bits", where(call) + theirs.scheme + ": " + of_rank(rank) + "another update"};
      }
    }
    if (all) {
      if (auto wrong = check_sums(of, world, call)) {
        return wrong;
      }
    }
  }
  return {};
}

// A mistake of one rank is the same error on all, and changes nothing.
verdict check_mistake(automatic_scenario const& of, seen_world const& world) {
  for (std::size_t rank = 0; rank < world.ranks.size(); ++rank) {
    seen_rank const& one = world.ranks[rank];
    if ((one.refused.code != oktopk::fault::none) != (of.wrong != mistake::none) ||
        one.refused.code != world.ranks.front().refused.code) {
      return finding{"mistake", of_rank(rank) + "\"" + one.refused.text + "\", rank 0: \"" +
                                    world.ranks.front().refused.text + "\""};
    }
    if (one.moved) {
      return finding{"mistake", of_rank(rank) + "a call that was refused has changed the residual"};
    }
  }
  return {};
}

// Without planned faults: all calls are made, and all ranks know the same in the end.
verdict check_whole(automatic_scenario const& of, seen_world const& world) {
  for (std::size_t rank = 0; rank < world.ranks.size(); ++rank) {
    seen_rank const& one = world.ranks[rank];
    if (one.broken.code != oktopk::fault::none || !one.ended) {
      std::string schemes;
      for (seen_rank const& each : world.ranks) {
        schemes += (schemes.empty() ? "" : ", ") + scheme_of(each, one.calls.size());
      }
      bool const same = std::all_of(world.ranks.begin(), world.ranks.end(), [&](seen_rank const& each) {
        return scheme_of(each, one.calls.size()) == scheme_of(one, one.calls.size());
      });
      return finding{same ? "threw" : "disagree", where(one.calls.size()) + of_rank(rank) + "without any fault: " +
                                                      one.broken.text + "; the ranks' schemes: " + schemes};
    }
    if (one.switches != world.ranks.front().switches || one.machine != world.ranks.front().machine) {
      return finding{"disagree", of_rank(rank) + "other switches, or another machine:\n" + one.machine};
    }
  }
  return check_mistake(of, world);
}

// After a planned fault every rank that is left has heard of it in time, and until then all went as it went without.
verdict check_faulty(seen_world const& plain, seen_world const& world) {
  auto const first = std::find_if(world.run.injections.begin(), world.run.injections.end(), [](auto const& each) {
    return of_fault(each.what, automatic_deadline) != consequence::none;
  });
  bool const may_break = first != world.run.injections.end();
  bool must_break = false;
  bool damaged = false;
  for (auto const& each : world.run.injections) {
    must_break = must_break || of_fault(each.what, automatic_deadline) == consequence::certain;
    damaged = damaged || damages(each.what.what);
  }
  for (std::size_t rank = 0; rank < world.ranks.size();
       ++rank) { // one may find what others cannot: all must hear of it
    must_break = must_break || (may_break && !world.died[rank] && world.ranks[rank].broken.code != oktopk::fault::none);
  }
  for (std::size_t rank = 0; rank < world.ranks.size(); ++rank) {
    seen_rank const& one = world.ranks[rank];
    for (std::size_t call = 0; call < std::min(one.calls.size(), plain.ranks[rank].calls.size()); ++call) {
      seen_call const& ours = one.calls[call];
      bool const before = world.run.injections.empty() || ours.ended < world.run.injections.front().at;
      if (before && (ours.scheme != plain.ranks[rank].calls[call].scheme ||
                     !same_bits(ours.values, plain.ranks[rank].calls[call].values))) {
        return finding{"replay", where(call) + of_rank(rank) + "another run of the same seed differs"};
      }
    }
    if (world.died[rank]) {
      continue;
    }
    if (!one.ended) {
      return finding{"lost_rank", of_rank(rank) + "has not come to its end"};
    }
    if ((one.broken.code != oktopk::fault::none) != must_break) {
      return finding{must_break ? "no_error" : "error",
                     of_rank(rank) + (must_break ? "has not heard of the fault" : one.broken.text)};
    }
    if (!must_break) {
      continue;
    }
    bool const heard = one.broken.code == oktopk::fault::timed_out || one.broken.code == oktopk::fault::abandoned;
    if (!heard && !(damaged && is_of_communicator(one.broken.code))) {
      return finding{"other_error", of_rank(rank) + one.broken.text};
    }
    auto latest = first->at + automatic_deadline * 3 / 2;
    for (auto const& each : world.run.injections) { // who stands still hears of nothing
      if (each.what.what == oktopk::in_process::injected_fault::stop && each.what.rank == static_cast<int>(rank)) {
        latest = std::max(latest, each.at + each.what.time +
                                      automatic_deadline * (world.run.injections.size() == 1 ? 1 : 3) / 2);
      }
    }
    if (one.broken_at > latest) {
      return finding{"late", of_rank(rank) + "has heard too late: " + one.broken.text};
    }
  }
  return {};
}

automatic_counts counted(automatic_scenario const& of, seen_world const& world) {
  automatic_counts done;
  std::size_t longest = 0;
  for (seen_rank const& one : world.ranks) {
    longest = std::max(longest, one.calls.size());
    done.switches = std::max(done.switches, one.switches);
    done.mistakes = of.wrong != mistake::none && one.refused.code != oktopk::fault::none ? 1 : done.mistakes;
  }
  done.calls = static_cast<std::int64_t>(longest);
  for (std::size_t call = 0; call < longest; ++call) {
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    for (seen_rank const& one : world.ranks) {
      if (call < one.calls.size()) {
        least = std::min(least, one.calls[call].seconds);
        most = std::max(most, one.calls[call].seconds);
        bool const changes = call > 0 && one.calls[call].scheme != one.calls[call - 1].scheme;
        done.changes += changes && &one == &world.ranks.front() ? 1 : 0;
      }
    }
    done.apart += most > 1.1 * least ? 1 : 0;
  }
  return done;
}

} // namespace

automatic_counts& automatic_counts::operator+=(automatic_counts const& other) {
  seeds += other.seeds;
  calls += other.calls;
  apart += other.apart;
  switches += other.switches;
  changes += other.changes;
  mistakes += other.mistakes;
  faulty += other.faulty;
  broken += other.broken;
  disagreements += other.disagreements;
  return *this;
}

std::string automatic_scenario::text() const {
  std::ostringstream out;
  out << ranks << " ranks, " << calls << " calls, length " << how.length << ", k " << *how.k << ", "
      << oktopk::detail::describe_options("automatic", how) << ", machine " << (measures ? "measured" : "given") << ", "
      << speeds.front().network.size() << " networks";
  if (new_k_before >= 0) {
    out << ", another k before call " << new_k_before;
  }
  if (restored_before >= 0) {
    out << ", restored before call " << restored_before;
  }
  if (wrong != mistake::none) {
    constexpr char const* names[] = {"none", "a NaN", "an infinity", "a wrong length", "another k", "other options"};
    out << ", " << names[static_cast<int>(wrong)] << " of rank " << wrong_rank << " at call " << wrong_call;
  }
  return out.str();
}

automatic_scenario draw_automatic(std::uint64_t seed) {
  draws draw(mixed({seed, std::uint64_t(0x6175746f)}));
  automatic_scenario drawn;
  drawn.seed = seed;
  drawn.ranks = static_cast<int>(draw.chance(0.7) ? draw.between(2, 4) : draw.between(5, 9));
  drawn.calls = static_cast<int>(draw.chance(0.9) ? draw.between(8, 48) : draw.between(200, 600)); // beyond all trials
  drawn.how.length = draw.chance(0.9) ? draw.between(1, 300) : draw.between(301, 2000);
  drawn.how.k = std::min<std::int64_t>(
      drawn.how.length, std::int64_t(1) + static_cast<std::int64_t>(between_powers(draw, 0.01, 1) *
                                                                    static_cast<double>(drawn.how.length)));
  drawn.how.sums =
      draw.one_of({oktopk::allowed_sums::unrounded, oktopk::allowed_sums::exact, oktopk::allowed_sums::rounded});
  drawn.how.dense_update = drawn.how.sums != oktopk::allowed_sums::exact && draw.chance(0.15);
  drawn.how.recheck = draw.between(1, 8);
  drawn.measures = draw.chance(0.1);
  if (!drawn.measures) {
    drawn.how.machine = draw_machine(draw);
  } else if (draw.chance(0.3)) {
    drawn.how.latency_us = draw.real(1, 1000);
  }
  std::vector<network_phase> network;
  for (std::int64_t i = draw.between(1, 4); i > 0; --i) {
    network.push_back({network.empty() ? 0 : static_cast<int>(draw.between(1, drawn.calls)),
                       between_powers(draw, 1e-6, 1e-3), between_powers(draw, 1e-9, 1e-4)});
  }
  std::sort(network.begin(), network.end(), [](auto const& a, auto const& b) { return a.from < b.from; });
  for (int rank = 0; rank < drawn.ranks; ++rank) {
    drawn.speeds.push_back(draw_speed(draw, network));
  }
  drawn.new_k_before = draw.chance(0.2) ? static_cast<int>(draw.between(0, drawn.calls - 1)) : -1;
  drawn.restored_before = draw.chance(0.2) ? static_cast<int>(draw.between(0, drawn.calls - 1)) : -1;
  if (draw.chance(0.25)) {
    drawn.wrong = static_cast<mistake>(draw.between(1, 5));
  }
  drawn.wrong_rank = static_cast<int>(draw.between(0, drawn.ranks - 1));
  drawn.wrong_call = static_cast<int>(draw.between(0, drawn.calls - 1));
  drawn.has_fault = draw.chance(0.5);
  return drawn;
}

automatic_result run_automatic(automatic_scenario const& of) {
  automatic_result result;
  seen_world const plain = run_world(of, {});
  result.wrong = plain.wrong;
  for (auto const check : {&check_agreement, &check_whole}) {
    result.wrong = result.wrong ? result.wrong : check(of, plain);
  }
  result.done = counted(of, plain);
  if (of.has_fault && !result.wrong) {
    plan all;
    all.checked = all.damage = !std::is_same_v<world_communicator, oktopk::in_process_communicator>;
    all.deadline = automatic_deadline;
    scenario planned;
    planned.seed = of.seed;
    planned.what.ranks = of.ranks;
    auto const faults = draw_faults(all, planned, plain.run.messages);
    result.faults = faults.text();
    seen_world const faulty = run_world(of, faults);
    result.wrong = faulty.wrong ? faulty.wrong : check_agreement(of, faulty);
    result.wrong = result.wrong ? result.wrong : check_faulty(plain, faulty);
    result.done += counted(of, faulty);
    result.done.faulty = faulty.run.injections.empty() ? 0 : 1;
    result.done.broken = std::any_of(faulty.ranks.begin(), faulty.ranks.end(),
                                     [](seen_rank const& one) { return one.broken.code != oktopk::fault::none; });
  }
  result.done.seeds = 1;
  result.done.disagreements = result.wrong && result.wrong->check == "disagree" ? 1 : 0;
  return result;
}

} // namespace oktopk_simulate
