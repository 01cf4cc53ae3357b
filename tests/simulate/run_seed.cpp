// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "simulate/run_seed.hpp"

#include "fuzz/subjects.hpp"
#include "simulate/checked_subjects.hpp"
#include "simulate/judge.hpp"
#include "simulate/story.hpp"

#include <oktopk/comm/in_process.hpp>
#include <oktopk/comm/simulation.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace oktopk_simulate {

namespace {

using oktopk::in_process::fault_plan;
using oktopk::in_process::simulated_run;
using oktopk::in_process::simulation;

template <class Value>
oktopk_fuzz::subject<Value> const& named(plan const& all, std::string const& name) {
  if constexpr (std::is_same_v<Value, float>) {
    if (all.checked) {
      return checked_subject(name);
    }
  }
  for (auto const& each : oktopk_fuzz::subjects<Value>()) {
    if (each.about.name == name) {
      return each;
    }
  }
  throw std::invalid_argument("there is no subject " + name);
}

template <class Value>
struct world {
  std::vector<story<Value>> stories;
  std::vector<bool> died;
  simulated_run run;
  verdict wrong; ///< what a rank threw that nobody expects
};

template <class Value>
world<Value> run_world(plan const& all, scenario const& of, std::optional<simulation> simulated) {
  world<Value> made;
  made.stories.resize(static_cast<std::size_t>(of.what.ranks));
  oktopk::in_process::options how;
  if (simulated) {
    simulated->told = &made.run;
    how.simulated = *simulated;
  }
  auto const& subject = named<Value>(all, of.about->name);
  auto const thrown = oktopk::in_process::run_and_collect(
      of.what.ranks,
      [&](oktopk::in_process_communicator comm) {
        life<Value>(subject, of.what, comm, made.stories[static_cast<std::size_t>(comm.rank())])(all.deadline);
      },
      how);
  for (std::size_t rank = 0; rank < thrown.size(); ++rank) {
    made.died.push_back(oktopk::in_process::has_died(thrown[rank]));
    try {
      if (thrown[rank] && !made.died.back()) {
        std::rethrow_exception(thrown[rank]);
      }
    } catch (std::exception const& caught) {
      made.wrong = finding{"threw", "rank " + std::to_string(rank) + ": " + caught.what()};
    }
  }
  return made;
}

template <class Value>
seed_result run_of(plan const& all, scenario const& of) {
  seed_result result;
  result.done.seeds = 1;
  auto const calls = static_cast<std::int64_t>(of.what.calls.size());
  auto const plain = run_world<Value>(all, of, {});
  result.wrong = plain.wrong ? plain.wrong : judge_calls(of, plain.stories);
  std::vector<std::int64_t> messages;
  for (std::uint64_t order = 0; order < 2 && !result.wrong; ++order) {
    auto const other = run_world<Value>(all, of, simulation{.seed = oktopk_fuzz::mixed({of.seed, order})});
    result.wrong = other.wrong ? other.wrong : judge_order(plain.stories, other.stories);
    result.done.calls += calls;
    result.done.events += other.run.events;
    messages = other.run.messages;
  }
  if (result.wrong || !all.faults) {
    return result;
  }
  fault_plan const faults = draw_faults(all, of, messages);
  result.faults = faults.text();
  auto const faulty = run_world<Value>(all, of, simulation{.seed = oktopk_fuzz::mixed({of.seed, 2}), .faults = faults});
  result.wrong = faulty.wrong ? faulty.wrong
                              : judge_faults(of, plain.stories, faulty.stories, faulty.died, faulty.run, all.deadline);
  result.done.events += faulty.run.events;
  result.done.faulty = faulty.run.strikes.empty() ? 0 : 1;
  std::size_t longest = 0;
  for (auto const& each : faulty.stories) {
    result.done.broken = each.broken.code != oktopk::fault::none ? 1 : result.done.broken;
    result.done.resumed = each.resumed ? 1 : result.done.resumed;
    longest = std::max(longest, each.calls.size());
  }
  result.done.calls += static_cast<std::int64_t>(longest) + result.done.resumed;
  return result;
}

} // namespace

seed_result run_seed(plan const& all, scenario const& of) {
  return of.about->value_bytes == 4 ? run_of<float>(all, of) : run_of<double>(all, of);
}

} // namespace oktopk_simulate
