// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "simulate/scenario.hpp"

#include <algorithm>
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

} // namespace

scenario draw_scenario(plan const& all, std::uint64_t seed) {
  draws draw(mixed({seed, std::uint64_t(0x73696d)}));
  scenario drawn;
  drawn.seed = seed;
  drawn.checked = all.checked;
  // What goes by the clock does not repeat itself; simulate_automatic has clocks of its own.
  auto chosen = oktopk_fuzz::chosen_of(oktopk_fuzz::subjects(), all.only);
  std::erase_if(chosen, [](oktopk_fuzz::subject const* each) { return !each->about.repeats; });
  if (chosen.empty()) {
    throw std::invalid_argument("there is no algorithm with \"" + all.only + "\" in its name");
  }
  drawn.of = draw.one_of(chosen);
  oktopk_fuzz::limits within{{"replica", 0}, {"damage", 0}, {"file", 0}, {"refusal", 0}};
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
