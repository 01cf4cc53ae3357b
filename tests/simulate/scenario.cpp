// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "simulate/scenario.hpp"

#include <oktopk/catalogue/machine_model.hpp>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace oktopk_simulate {

using oktopk::in_process::injected_fault;
using oktopk::in_process::planned_fault;
using oktopk_fuzz::draws;
using oktopk_fuzz::mixed;

namespace {

int draw_ranks(draws& draw) {
  double const at = draw.real(0, 1);
  return static_cast<int>(at < 0.6 ? draw.between(1, 4) : at < 0.9 ? draw.between(5, 8) : draw.between(9, 16));
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

// The name of a file with a machine, which is another one after each call.
std::string draw_machine(draws& draw) {
  static std::string const name = "simulate_machine_" + std::to_string(getpid());
  [[maybe_unused]] static int const removed_at_the_end = std::atexit([] { std::remove(name.c_str()); });
  oktopk::machine_model drawn;
  drawn.latency = between_powers(draw, 1e-6, 1e-3);
  drawn.seconds_per_byte = between_powers(draw, 1e-10, 1e-5);
  drawn.select = between_powers(draw, 1e-10, 1e-7);
  drawn.add = between_powers(draw, 1e-10, 1e-8);
  std::ofstream(name) << drawn;
  return name;
}

// `automatic` with options, calls enough for all trials and changes of the network, and clocks.
scenario draw_automatic(plan const& all, std::uint64_t seed) {
  static std::vector<oktopk_fuzz::subject> const subjects{oktopk_fuzz::subject_of("automatic"),
                                                          oktopk_fuzz::subject_of("automatic(sums=exact)"),
                                                          oktopk_fuzz::subject_of("automatic(sums=rounded)")};
  draws draw(mixed({seed, std::uint64_t(0x6175746f)}));
  scenario drawn;
  drawn.seed = seed;
  drawn.checked = all.checked;
  auto const sums = static_cast<std::size_t>(draw.between(0, 2));
  drawn.of = &subjects[sums];
  oktopk_fuzz::limits within{{"replica", 0}, {"damage", 0}, {"refusal", 0}};
  within["ranks"] = draw.chance(0.7) ? draw.between(2, 4) : draw.between(5, 9);
  within["length"] = draw.chance(0.9) ? draw.between(1, 300) : draw.between(301, 2000);
  drawn.what = oktopk_fuzz::draw_case(drawn.of->about, seed, 0, false, within);
  auto& calls = drawn.what.calls;
  std::size_t const planned = calls.size();
  calls.resize(static_cast<std::size_t>(draw.chance(0.9) ? draw.between(8, 48) : draw.between(200, 600)));
  for (std::size_t i = planned; i < calls.size(); ++i) {
    calls[i] = calls[i - planned];
  }
  auto const last = static_cast<std::int64_t>(calls.size()) - 1;
  drawn.restored_before = draw.chance(0.2) ? static_cast<int>(draw.between(0, last)) : -1;
  drawn.measures = draw.chance(0.1);
  constexpr char const* names[] = {"unrounded", "exact", "rounded"};
  drawn.what.how.text =
      std::string("automatic(sums=") + names[sums] + ", recheck=" + std::to_string(draw.between(1, 8)) +
      (sums != 1 && draw.chance(0.15) ? ", dense_update=true" : "") +
      (drawn.measures ? draw.chance(0.3) ? ", latency_us=" + std::to_string(draw.between(1, 1000)) : ""
                      : ", machine=" + draw_machine(draw)) +
      ")";
  std::vector<network_phase> network;
  for (std::int64_t i = draw.between(1, 4); i > 0; --i) {
    network.push_back({network.empty() ? 0 : static_cast<int>(draw.between(1, last + 1)),
                       between_powers(draw, 1e-6, 1e-3), between_powers(draw, 1e-9, 1e-4)});
  }
  std::sort(network.begin(), network.end(), [](auto const& a, auto const& b) { return a.from < b.from; });
  for (int rank = 0; rank < drawn.what.ranks; ++rank) {
    drawn.speeds.push_back(draw_speed(draw, network));
  }
  return drawn;
}

} // namespace

scenario draw_scenario(plan const& all, std::uint64_t seed) {
  if (all.clocks) {
    return draw_automatic(all, seed);
  }
  draws draw(mixed({seed, std::uint64_t(0x73696d)}));
  scenario drawn;
  drawn.seed = seed;
  drawn.checked = all.checked;
  // What goes by the clock does not repeat itself: see `clocks`.
  auto chosen = oktopk_fuzz::chosen_of(oktopk_fuzz::subjects(), all.only);
  std::erase_if(chosen, [](oktopk_fuzz::subject const* each) { return !each->about.promised.repeats; });
  if (chosen.empty()) {
    throw std::invalid_argument("there is no algorithm with \"" + all.only + "\" in its name");
  }
  drawn.of = draw.one_of(chosen);
  oktopk_fuzz::limits within{{"replica", 0}, {"damage", 0}, {"refusal", 0}};
  within["ranks"] = draw_ranks(draw);
  // The order of events is what is tried here, and short gradients have as many events as long ones.
  within["length"] = draw.chance(0.9) ? draw.between(0, 300) : draw.between(301, 2000);
  if (all.checked) {
    within["sgd"] = 0;
  }
  drawn.what = oktopk_fuzz::draw_case(drawn.of->about, seed, 0, draw.chance(0.2), within);
  return drawn;
}

consequence of_fault(planned_fault const& fault, std::chrono::nanoseconds deadline) {
  switch (fault.what) {
  case injected_fault::death: return consequence::certain;
  case injected_fault::stop:
  case injected_fault::delay: return fault.time > deadline ? consequence::certain : consequence::none;
  case injected_fault::loss:
  case injected_fault::bit_flip: return consequence::certain;
  case injected_fault::doubling: return consequence::possible; // nobody asks for what comes after the last message
  }
  return consequence::none;
}

oktopk::in_process::fault_plan draw_faults(plan const& all, scenario const& of,
                                           std::vector<std::int64_t> const& messages) {
  draws draw(mixed({of.seed, std::uint64_t(0x6661756c74)}));
  oktopk::in_process::fault_plan faults;
  if (of.what.ranks == 1) {
    return faults;
  }
  int const many = draw.chance(0.15) ? 2 : 1;
  for (int i = 0; i < many; ++i) {
    planned_fault one;
    one.what = draw.one_of({injected_fault::death, injected_fault::death, injected_fault::stop, injected_fault::delay});
    if (all.damage && draw.chance(0.7)) {
      one.what = draw.one_of({injected_fault::loss, injected_fault::doubling, injected_fault::bit_flip});
    }
    one.bit = draw.bits() % (std::uint64_t(1) << 20U);
    one.rank = static_cast<int>(draw.between(0, of.what.ranks - 1));
    // Not in the barriers at the end, which are there so that everybody hears of what has happened before.
    std::int64_t const last =
        messages[static_cast<std::size_t>(one.rank)] - (all.checked ? 8 : 4) * (of.what.ranks - 1);
    one.message = draw.between(1, std::max<std::int64_t>(1, last));
    bool const longer = draw.chance(0.7);
    double const part = longer ? draw.real(1.6, 5) : draw.real(0.01, 0.4 / many);
    one.time = std::chrono::duration_cast<std::chrono::nanoseconds>(all.deadline * part);
    faults.faults.push_back(one);
  }
  return faults;
}

} // namespace oktopk_simulate
