// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "buckets.hpp"

#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/agreement.hpp>
#include <oktopk/comm/collectives.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/error_feedback.hpp>
#include <oktopk/torch/process_group.hpp>
#include <oktopk/torch/view.hpp>

#include <ATen/ops/empty.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

namespace oktopk_torch {

namespace {

using space = Kokkos::DefaultHostExecutionSpace;
using communicator = oktopk::counted<oktopk::process_group_communicator>;
using allreduce = oktopk::any_allreduce<space, communicator>;
using view = oktopk::torch_view_type<float>;

void copy(float const* from, float* to, std::int64_t count) {
  std::copy_n(from, static_cast<std::size_t>(count), to);
}

/// An algorithm of the catalogue and the density, which is not one of its options.
struct scheme {
  std::string text;
  double density = 0.01;
  oktopk::error_feedback_options feedback{};
};

scheme parse(std::string const& text) {
  auto const request = oktopk::allreduce_request::parse(text);
  scheme found;
  std::string options;
  for (auto const& [key, value] : request.options) {
    if (key == "density") {
      auto const [end, code] = std::from_chars(value.data(), value.data() + value.size(), found.density);
      if (code != std::errc() || end != value.data() + value.size() || !(found.density > 0 && found.density <= 1)) {
        throw oktopk::error(oktopk::fault::density_out_of_range, "density = " + value + " is not in (0, 1]");
      }
    } else {
      options += (options.empty() ? "" : ", ") + key + "=" + value;
    }
  }
  found.text = request.name + (options.empty() ? "" : "(" + options + ")");
  return found;
}

/// One allreduce with its residual.
struct bucket {
  bucket(communicator const& comm, scheme const& how, std::vector<std::int64_t> of,
         std::vector<std::int64_t> const& lengths)
      : parameters(std::move(of)),
        sums(oktopk::make_allreduce(space(), comm, how.text,
                                    {.length = length_of(parameters, lengths), .k = {}, .density = how.density})),
        feedback(sums, how.feedback) {}

  static std::int64_t length_of(std::vector<std::int64_t> const& parameters, std::vector<std::int64_t> const& lengths) {
    return std::accumulate(
        parameters.begin(), parameters.end(), std::int64_t(0),
        [&](std::int64_t sum, std::int64_t p) { return sum + lengths[static_cast<std::size_t>(p)]; });
  }

  /// Gradients in, averages out; those of withheld ranges stay as they are.
  void reduce(view const& gradients, std::vector<oktopk::entry_range> const& withheld) {
    std::vector<float> kept;
    for (auto const range : withheld) {
      kept.insert(kept.end(), gradients.data() + range.begin, gradients.data() + range.end);
    }
    feedback.average(feedback(gradients, 1, withheld), gradients);
    space().fence();
    float const* from = kept.data();
    for (auto const range : withheld) {
      copy(from, gradients.data() + range.begin, range.end - range.begin);
      from += range.end - range.begin;
    }
  }

  /// The buffer for gradients that come in parts.
  view const& staging() {
    if (!buffer.defined()) {
      buffer = at::empty({sums.length()}, at::kFloat);
      staged = oktopk::torch_view<float>(buffer);
    }
    return staged;
  }

  std::vector<std::int64_t> parameters;
  allreduce sums;
  oktopk::error_feedback<allreduce> feedback;
  at::Tensor buffer;
  view staged;
  std::size_t arrived = 0; // parameters whose gradients lie in the buffer
};

/// What is carried on for a parameter that is in no bucket.
struct carried {
  std::vector<float> residual;
  std::vector<float> velocity;
};

/// Where the gradient of a parameter belongs.
struct place {
  bucket* in = nullptr;
  std::int64_t offset = 0;
};

/// An arrival that waits for buckets of other borders.
struct waiting {
  arrival what;
  std::size_t missing = 0; // parameters whose averages are not there
};

} // namespace

struct buckets::inside {
  inside(c10::intrusive_ptr<c10d::ProcessGroup> group, std::string const& text, momentum_options const& momentum,
         std::vector<std::int64_t> of)
      : comm(oktopk::process_group_communicator(std::move(group))), lengths(std::move(of)), rests(lengths.size()),
        places(lengths.size()), used(lengths.size()) {
    oktopk::agreement terms("oktopk_torch");
    try {
      how = parse(text);
    } catch (oktopk::error const& found) {
      terms.note(found.code(), found.sentence());
    }
    how.feedback.momentum = momentum.momentum;
    how.feedback.nesterov = momentum.nesterov;
    terms.fact("density", how.density);
    terms.check_on(comm);
    std::vector<std::int64_t> every(lengths.size());
    std::iota(every.begin(), every.end(), 0);
    bucket const trial(comm, how, every, lengths); // finds what is wrong before the first backward pass
  }

  std::int64_t length_of(std::int64_t parameter) const { return lengths[static_cast<std::size_t>(parameter)]; }
  place& place_of(std::int64_t parameter) { return places[static_cast<std::size_t>(parameter)]; }

  /// The bucket of just these parameters in this order, if there is one.
  bucket* same_bucket(std::vector<std::int64_t> const& parameters) {
    bucket* const found = parameters.empty() ? nullptr : place_of(parameters.front()).in;
    return found != nullptr && found->parameters == parameters ? found : nullptr;
  }

  bool has_velocity() const { return how.feedback.momentum > 0; }

  /// Makes a bucket, which takes the residuals and velocities that its parameters have.
  std::unique_ptr<bucket> made(std::vector<std::int64_t> const& parameters, oktopk::any_state const* state) {
    auto one = std::make_unique<bucket>(comm, how, parameters, lengths);
    decltype(one->feedback)::state_type saved;
    auto const append = [](std::vector<float>& to, std::vector<float> const& from, std::int64_t length) {
      std::size_t const end = to.size() + static_cast<std::size_t>(length);
      to.insert(to.end(), from.begin(), from.end());
      to.resize(end); // zeros where there is nothing yet
    };
    for (std::int64_t const p : parameters) {
      carried const& rest = rests[static_cast<std::size_t>(p)];
      append(saved.residual, rest.residual, length_of(p));
      if (has_velocity()) {
        append(saved.velocity, rest.velocity, length_of(p));
      }
    }
    saved.allreduce = state != nullptr ? *state : one->sums.state();
    one->feedback.restore(saved);
    return one;
  }

  void settle(std::unique_ptr<bucket> one) {
    std::int64_t offset = 0;
    for (std::int64_t const p : one->parameters) {
      rests[static_cast<std::size_t>(p)] = {};
      place_of(p) = {one.get(), offset};
      offset += length_of(p);
    }
    all.push_back(std::move(one));
  }

  /// Calls `take(parameter, residual, velocity)`, of a bucket, for each of its parameters; no velocity is null.
  template <class State, class Take>
  void take_apart(bucket const& of, State const& state, Take const& take) const {
    std::int64_t offset = 0;
    for (std::int64_t const p : of.parameters) {
      take(p, state.residual.data() + offset, has_velocity() ? state.velocity.data() + offset : nullptr);
      offset += length_of(p);
    }
  }

  /// Ends a bucket: what it carries on goes back to its parameters.
  void dissolve(bucket const* one) {
    take_apart(*one, one->feedback.state(), [&](std::int64_t p, float const* residual, float const* velocity) {
      carried& rest = rests[static_cast<std::size_t>(p)];
      rest.residual.assign(residual, residual + length_of(p));
      if (velocity != nullptr) {
        rest.velocity.assign(velocity, velocity + length_of(p));
      }
      place_of(p) = {};
    });
    std::erase_if(all, [&](auto const& each) { return each.get() == one; });
  }

  bucket& adopt(std::vector<std::int64_t> const& parameters) {
    for (std::int64_t const p : parameters) {
      if (place_of(p).in != nullptr) {
        dissolve(place_of(p).in);
      }
    }
    settle(made(parameters, nullptr));
    return *all.back();
  }

  /// The gradients of a bucket, which some rank may not use (`agrees`), become averages. Collective.
  void reduce(bucket& of, view const& gradients, bool agrees) {
    std::vector<oktopk::entry_range> withheld;
    if (agrees) {
      std::vector<int> uses;
      for (std::int64_t const p : of.parameters) {
        uses.push_back(used[static_cast<std::size_t>(p)]);
      }
      oktopk::allreduce_integers(comm, std::span(uses), oktopk::reduction::max, oktopk::phase::control, workspace);
      std::int64_t offset = 0;
      for (std::size_t i = 0; i < uses.size(); ++i) {
        std::int64_t const end = offset + length_of(of.parameters[i]);
        if (uses[i] == 0) {
          withheld.push_back({offset, end});
        }
        offset = end;
      }
    }
    of.reduce(gradients, withheld);
  }

  void note_use(arrival const& what) {
    for (std::size_t i = 0; i < what.used.size(); ++i) {
      used[static_cast<std::size_t>(what.parameters[i])] = what.used[i];
    }
  }

  /// Takes gradients into buckets of other borders, and gives back the averages of those buckets that are full.
  void gather(arrival arrived) {
    std::size_t const parameters = arrived.parameters.size();
    pending.push_back({std::move(arrived), parameters});
    arrival const& what = pending.back().what;
    bool const agrees = !what.used.empty(); // `what` ends with its averages
    auto const gradients = oktopk::torch_view<float>(what.buffer);
    std::vector<bucket*> full;
    std::int64_t at = 0;
    for (std::int64_t const p : what.parameters) {
      place const& to = place_of(p);
      copy(gradients.data() + at, to.in->staging().data() + to.offset, length_of(p));
      at += length_of(p);
      to.in->arrived += 1;
      if (to.in->arrived == to.in->parameters.size()) {
        full.push_back(to.in);
        to.in->arrived = 0;
      }
    }
    for (bucket* const each : full) {
      reduce(*each, each->staging(), agrees);
      give_back(each);
    }
  }

  void give_back(bucket* from) {
    for (waiting& each : pending) {
      auto const averages = oktopk::torch_view<float>(each.what.buffer);
      std::int64_t at = 0;
      for (std::int64_t const p : each.what.parameters) {
        place const& of = place_of(p);
        if (of.in == from) {
          copy(from->staging().data() + of.offset, averages.data() + at, length_of(p));
          each.missing -= 1;
        }
        at += length_of(p);
      }
      if (each.missing == 0) {
        each.what.done(nullptr);
      }
    }
    std::erase_if(pending, [](waiting const& each) { return each.missing == 0; });
  }

  /// Takes a bucket; whether its averages are there, else `gather` has it.
  bool take(arrival const& what) {
    bool const has_new = std::any_of(what.parameters.begin(), what.parameters.end(),
                                     [&](std::int64_t p) { return place_of(p).in == nullptr; });
    bucket* taken = same_bucket(what.parameters);
    if (taken == nullptr && keeps_borders && !has_new) {
      return false;
    }
    auto const gradients = oktopk::torch_view<float>(what.buffer);
    reduce(taken != nullptr ? *taken : adopt(what.parameters), gradients, !what.used.empty());
    return true;
  }

  void give_up(std::exception_ptr const& why) {
    for (waiting const& each : pending) {
      each.what.done(why);
    }
    pending.clear();
    for (auto const& each : all) {
      each->arrived = 0;
    }
  }

  communicator comm;
  scheme how;
  std::vector<std::int64_t> lengths;
  std::vector<carried> rests;
  std::vector<place> places;
  std::vector<int> used; // each parameter, by this rank in this iteration
  oktopk::collective_workspace workspace;
  std::vector<std::unique_ptr<bucket>> all;
  std::vector<waiting> pending;
  std::exception_ptr failed;  // in this iteration: on all ranks, which take no more buckets of it
  bool keeps_borders = false; // until the end of the first iteration after a load
};

buckets::buckets(c10::intrusive_ptr<c10d::ProcessGroup> group, std::string const& text,
                 momentum_options const& momentum, std::vector<std::int64_t> lengths)
    : inside_(std::make_unique<inside>(std::move(group), text, momentum, std::move(lengths))) {
}

buckets::~buckets() = default;

void buckets::arrive(arrival what) {
  inside& in = *inside_;
  if (what.index == 0) {
    in.failed = nullptr;
    in.give_up(std::make_exception_ptr(
        oktopk::error(oktopk::fault::length_mismatch, "a backward pass ended before all buckets had come")));
  }
  bool const is_last = what.is_last;
  bool gathers = false;
  try {
    in.note_use(what);
    if (in.failed) {
      what.done(in.failed);
    } else if (in.take(what)) {
      what.done(nullptr);
    } else {
      gathers = true;
      in.gather(std::move(what));
    }
  } catch (...) {
    in.failed = std::current_exception();
    if (!gathers) {
      what.done(in.failed);
    }
    in.give_up(in.failed);
  }
  in.keeps_borders = in.keeps_borders && !is_last;
}

saved_state buckets::save() const {
  inside const& in = *inside_;
  saved_state saved;
  saved.residuals.resize(in.lengths.size());
  saved.velocities.resize(in.lengths.size());
  auto const tensor_of = [](float const* from, std::int64_t length) {
    at::Tensor const made = at::empty({length}, at::kFloat);
    copy(from, made.data_ptr<float>(), length);
    return made;
  };
  auto const keep = [&](std::int64_t p, float const* residual, float const* velocity) {
    saved.residuals[static_cast<std::size_t>(p)] = tensor_of(residual, in.length_of(p));
    if (velocity != nullptr) {
      saved.velocities[static_cast<std::size_t>(p)] = tensor_of(velocity, in.length_of(p));
    }
  };
  for (std::size_t p = 0; p < in.rests.size(); ++p) {
    if (!in.rests[p].residual.empty()) {
      keep(static_cast<std::int64_t>(p), in.rests[p].residual.data(),
           in.rests[p].velocity.empty() ? nullptr : in.rests[p].velocity.data());
    }
  }
  for (auto const& each : in.all) {
    auto const state = each->feedback.state();
    saved.buckets.push_back({each->parameters,
                             std::string(state.allreduce.policies.begin(), state.allreduce.policies.end()),
                             std::string(state.allreduce.checkpoint.begin(), state.allreduce.checkpoint.end())});
    in.take_apart(*each, state, keep);
  }
  return saved;
}

namespace {

/// The values of a saved tensor of so many; none where it is not defined. A fault of it is noted.
std::vector<float> values_of(at::Tensor const& saved, std::int64_t length, oktopk::agreement& terms) {
  if (!saved.defined()) {
    return {};
  }
  try {
    auto const values = oktopk::torch_view<float>(saved);
    if (static_cast<std::int64_t>(values.extent(0)) == length) {
      return {values.data(), values.data() + length};
    }
    terms.note(oktopk::fault::bad_state, "a residual or velocity has another length than its parameter");
  } catch (oktopk::error const& found) {
    terms.note(oktopk::fault::bad_state, found.sentence());
  }
  return {};
}

} // namespace

void buckets::load(saved_state const& saved, std::string const& fault) {
  inside& in = *inside_;
  oktopk::agreement terms("oktopk_torch: load_state_dict");
  if (!fault.empty()) {
    terms.note(oktopk::fault::bad_state, fault);
  }
  std::vector<carried> rests(in.lengths.size());
  for (std::size_t p = 0; p < rests.size(); ++p) {
    if (p < saved.residuals.size() && p < saved.velocities.size()) {
      rests[p].residual = values_of(saved.residuals[p], in.lengths[p], terms);
      rests[p].velocity = values_of(saved.velocities[p], in.lengths[p], terms);
      if (saved.velocities[p].defined() != (saved.residuals[p].defined() && in.has_velocity())) {
        terms.note(oktopk::fault::bad_state, "the saved state is one without momentum, and this one has some, or the "
                                             "other way round");
      }
    }
  }
  std::vector<bool> seen(in.lengths.size(), false);
  std::string borders;
  for (auto const& each : saved.buckets) {
    for (std::int64_t const p : each.parameters) {
      if (p < 0 || p >= static_cast<std::int64_t>(seen.size()) || seen[static_cast<std::size_t>(p)]) {
        terms.note(oktopk::fault::bad_state, "the saved buckets name a parameter twice, or one that is not there");
        break;
      }
      seen[static_cast<std::size_t>(p)] = true;
      borders += std::to_string(p) + " ";
    }
    borders += "| ";
  }
  if (!saved.buckets.empty() && std::find(seen.begin(), seen.end(), false) != seen.end()) {
    terms.note(oktopk::fault::bad_state, "the model has parameters that the saved buckets do not name");
  }
  terms.fact("buckets", borders);
  terms.check_on(in.comm);

  std::swap(in.rests, rests);
  std::vector<std::unique_ptr<bucket>> made;
  try {
    for (auto const& each : saved.buckets) {
      oktopk::any_state const state{{each.policies.begin(), each.policies.end()},
                                    {each.checkpoint.begin(), each.checkpoint.end()}};
      made.push_back(in.made(each.parameters, &state));
    }
  } catch (...) {
    std::swap(in.rests, rests); // as it was
    throw;
  }
  in.all.clear();
  std::fill(in.places.begin(), in.places.end(), place());
  for (auto& each : made) {
    in.settle(std::move(each));
  }
  in.keeps_borders = true;
}

double buckets::words_sent() const {
  return inside_->comm.total().words_sent();
}

} // namespace oktopk_torch
