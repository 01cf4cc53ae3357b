// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/record.hpp"
#include "support/collect.hpp"
#include "support/set_if_there.hpp"

#include <oktopk/catalogue/any_allreduce.hpp>
#include <oktopk/comm/collectives.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/exchange/balance.hpp>
#include <oktopk/sgd.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <sstream>
#include <type_traits>
#include <variant>

// Subjects of all types: what an algorithm says of itself; its state in numbers; and `participant` over any algorithm.
namespace oktopk_fuzz {

using oktopk_tests::execution;
using oktopk_tests::memory;

/// What is promised of an algorithm with these options, as it says itself.
template <class Allreduce>
facts facts_of(std::string name, typename Allreduce::options const& how) {
  facts about;
  about.name = std::move(name);
  about.promised = Allreduce::promises(how);
  about.values = type_of<typename Allreduce::value_type>();
  about.index_bytes = sizeof(typename Allreduce::index_type);
  if constexpr (requires { how.format; }) {
    using format = std::remove_cvref_t<decltype(how.format)>;
    about.exact_size = format::exact_size;
    about.most_bytes = [format = how.format](std::int64_t count, std::int64_t length) {
      return static_cast<std::int64_t>(format.max_encoded_bytes(count, {0, length}));
    };
    about.piece_bytes = oktopk::detail::encoded_pieces<execution, format>::capacity_per_cut;
  }
  return about;
}

/// A value as an algorithm gets it. A NaN keeps its sign and the highest bits of its payload.
template <class Value>
Value narrowed(double x) {
  if (sizeof(Value) == sizeof(double) || !std::isnan(x)) {
    return static_cast<Value>(x);
  }
  auto const bits = std::bit_cast<std::uint64_t>(x);
  auto const payload = static_cast<std::uint32_t>(bits >> 29 & 0x7fffffU);
  return static_cast<Value>(
      std::bit_cast<float>(static_cast<std::uint32_t>(bits >> 63 << 31) | 0x7f800000U | std::max(payload, 1U)));
}

/// Copies a number or numbers of a state, one way or the other.
template <class To, class From>
void copy_number(To& to, From const& from) {
  if constexpr (std::is_same_v<To, std::int32_t>) { // the width of a range, for which we have more bits
    to = static_cast<To>(std::clamp<From>(from, std::numeric_limits<To>::min(), std::numeric_limits<To>::max()));
  } else if constexpr (std::is_arithmetic_v<To>) {
    to = static_cast<To>(from);
  } else {
    to.assign(from.begin(), from.end());
  }
}

template <class State, class Copy>
void each_number_of_selector(selector_numbers& ours, State& state, Copy const& copy) {
  if constexpr (requires { state.one; }) { // of several
    std::visit([&](auto& one) { each_number_of_selector(ours, one, copy); }, state.one);
  }
  if constexpr (requires { state.threshold; }) {
    ours.has_threshold = true;
    copy(ours.threshold, state.threshold);
    copy(ours.evaluated, state.evaluated);
  }
  if constexpr (requires { state.guess; }) {
    ours.has_guess = true;
    copy(ours.prefilter, state.guess.prefilter.magnitude);
    copy(ours.magnitude, state.guess.bracket.magnitude);
    copy(ours.bits, state.guess.bracket.bits);
  }
}

/// Copies the numbers of a state of any algorithm, one way or the other.
template <class State, class Copy>
void each_number(state_numbers& ours, State& state, Copy const& copy) {
  copy(ours.iteration, state.iteration);
  if constexpr (requires { state.local; }) {
    each_number_of_selector(ours.local, state.local, copy);
  }
  if constexpr (requires { state.global; }) {
    each_number_of_selector(ours.global, state.global, copy);
  }
  if constexpr (requires { state.boundaries; }) {
    ours.has_boundaries = true;
    copy(ours.boundaries, state.boundaries);
  }
}

/// The numbers in the state of an `any_allreduce`, whose type is known to the algorithm inside.
template <class State>
inline constexpr state_access access_to = {
    [](std::vector<char> const& checkpoint) {
      std::istringstream in(std::string(checkpoint.begin(), checkpoint.end()));
      auto const state = oktopk::load<State>(in);
      state_numbers ours;
      each_number(ours, state, [](auto& to, auto const& from) { copy_number(to, from); });
      return ours;
    },
    [](std::vector<char> const& checkpoint, state_numbers ours) {
      std::istringstream in(std::string(checkpoint.begin(), checkpoint.end()));
      auto state = oktopk::load<State>(in);
      each_number(ours, state, [](auto const& from, auto& to) { copy_number(to, from); });
      std::string const bytes = saved(state);
      return std::vector<char>(bytes.begin(), bytes.end());
    }};

/// `participant` over an algorithm of the library, whose communicator counts the messages of that inside.
template <class Value, class Index>
class any_participant final : public participant {
public:
  using algorithm = oktopk::any_allreduce<execution, oktopk::any_communicator, Value, Index>;
  using making = std::function<algorithm(oktopk::any_communicator, options const&)>;

  any_participant(making const& make, state_access const& states, oktopk::any_communicator base, options const& how,
                  way calls, double rate)
      : states_(states), calls_(calls), comm_(std::move(base)), algorithm_(make(comm_, how)) {
    if (calls_ != way::bare) {
      sgd_.emplace(execution(), algorithm_, typename oktopk::sgd<algorithm>::options{.learning_rate = rate});
    }
    if (calls_ == way::hooked) {
      sgd_->before_allreduce([this](auto accumulator) {
        auto const values = oktopk_tests::to_vector(accumulator);
        seen_.emplace(values.begin(), values.end());
      });
    }
  }

  std::int64_t k() const override { return algorithm_.k(); }

  call_record call(handed_over const& given, numbers& weights) override {
    call_record out;
    out.input = given.gradient;
    out.weights = given.weights;
    out.weights_before = weights;
    out.before = state();
    numbers misfit(static_cast<std::size_t>(given.weights), 1);
    numbers& used = misfit.size() == weights.size() ? weights : misfit;
    std::size_t const stride = calls_ == way::strided || given.strided ? 3 : 1;
    auto const as_it_was = spread(given.gradient, stride);
    auto const input = oktopk_tests::to_view(as_it_was);
    auto const own = oktopk_tests::to_view(spread(used, stride));
    seen_.reset();
    comm_.reset();
    out.said = oktopk_tests::outcome_of([&] {
      if (given.fails) {
        algorithm_.fail(given.fails);
      }
      auto const gradient = strided(input, given.gradient.size(), stride);
      write_down(calls_ == way::bare ? algorithm_(gradient) : sgd_->step(strided(own, used.size(), stride), gradient),
                 out);
    });
    execution().fence();
    auto const after = oktopk_tests::to_vector(input);
    out.input_changed =
        !after.empty() && std::memcmp(after.data(), as_it_was.data(), after.size() * sizeof(Value)) != 0;
    auto const weights_now = oktopk_tests::to_vector(own);
    for (std::size_t i = 0; i < used.size(); ++i) {
      used[i] = static_cast<double>(weights_now[i * stride]);
    }
    for (int p = 0; p < oktopk::phase_count; ++p) {
      out.traffic[static_cast<std::size_t>(p)] = comm_.of_phase(static_cast<oktopk::phase>(p));
    }
    out.statistics = algorithm_.last_call();
    out.runs = algorithm_.explain();
    out.runs.resize(std::min(out.runs.find(": "), out.runs.size())); // without the times
    out.bound_words = algorithm_.bound_words();
    out.hooked = std::move(seen_);
    out.after = state();
    out.weights_after = weights;
    return out;
  }

  void set_learning_rate(double rate) override {
    if (sgd_) {
      sgd_->set_learning_rate(rate);
    }
  }

  void meet() override { oktopk::detail::barrier_all_to_all(comm_); }

  state_numbers state() const override {
    auto const numbers_of = [&](oktopk::detail::any_state const& state) {
      state_numbers ours = states_.read(state.checkpoint);
      ours.checkpoint = state.checkpoint;
      return ours;
    };
    if (!sgd_) {
      return numbers_of(algorithm_.state());
    }
    auto const& all = sgd_->state();
    state_numbers ours = numbers_of(all.allreduce);
    ours.of_sgd = true;
    copy_number(ours.learning_rate, all.learning_rate);
    copy_number(ours.residual, all.residual);
    return ours;
  }

  void restore(state_numbers const& wanted) override {
    if (!sgd_) {
      auto state = algorithm_.state();
      state.checkpoint = states_.write(wanted.checkpoint, wanted);
      return algorithm_.restore(state);
    }
    auto state = sgd_->state();
    state.allreduce.checkpoint = states_.write(wanted.checkpoint, wanted);
    copy_number(state.learning_rate, wanted.learning_rate);
    copy_number(state.residual, wanted.residual);
    sgd_->restore(state);
  }

  std::string save() const override { return sgd_ ? saved(sgd_->state()) : saved(algorithm_.state()); }

  void load(std::string const& bytes) override {
    std::istringstream file(bytes);
    sgd_ ? sgd_->restore(oktopk::load<typename oktopk::sgd<algorithm>::state_type>(file))
         : algorithm_.restore(oktopk::load<oktopk::detail::any_state>(file));
  }

private:
  static std::vector<Value> spread(numbers const& values, std::size_t stride) {
    std::vector<Value> made(values.size() * stride, Value(0));
    for (std::size_t i = 0; i < values.size(); ++i) {
      made[i * stride] = narrowed<Value>(values[i]);
    }
    return made;
  }

  // Of either kind at run time, so that one instantiation serves both.
  static auto strided(Kokkos::View<Value*, memory> const& in, std::size_t size, std::size_t stride) {
    using view = Kokkos::View<Value*, Kokkos::LayoutStride, memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    return view(in.data(), Kokkos::LayoutStride(size, stride));
  }

  static void write_down(typename algorithm::update_type const& update, call_record& out) {
    using oktopk_tests::to_vector;
    copy_number(out.update.indices, to_vector(update.indices()));
    copy_number(out.update.values, to_vector(update.values()));
    copy_number(out.contributed, to_vector(update.contributed()));
    copy_number(out.returned.indices, to_vector(update.returned().indices));
    copy_number(out.returned.values, to_vector(update.returned().values));
  }

  state_access states_;
  way calls_;
  oktopk::counted<oktopk::any_communicator> comm_;
  algorithm algorithm_;
  std::optional<oktopk::sgd<algorithm>> sgd_;
  std::optional<numbers> seen_;
};

extern template class any_participant<float, std::int32_t>; // in subjects.cpp

/// A subject that is made so. `states` is that of the algorithm inside.
template <class Value, class Index>
subject subject_from(facts about, state_access const& states, typename any_participant<Value, Index>::making make) {
  subject made;
  made.about = std::move(about);
  made.make = [=](oktopk::any_communicator base, options const& how, way calls, double rate) {
    return std::make_unique<any_participant<Value, Index>>(make, states, std::move(base), how, calls, rate);
  };
  return made;
}

/// A subject of an algorithm that no text names, `Allreduce` over any communicator, with the options of `how`.
template <class Allreduce>
subject typed_subject(std::string const& name, typename Allreduce::options const& how = {}) {
  using value = typename Allreduce::value_type;
  using index = typename Allreduce::index_type;
  using any = typename any_participant<value, index>::algorithm;
  return subject_from<value, index>(facts_of<Allreduce>(name, how), access_to<typename Allreduce::state_type>,
                                    [how](oktopk::any_communicator comm, options const& size) {
                                      auto sized = how;
                                      sized.length = size.length;
                                      SET_IF_THERE(sized.k, size.k);
                                      SET_IF_THERE(sized.density, size.density);
                                      return any(std::in_place_type<Allreduce>, execution(), std::move(comm), sized);
                                    });
}

} // namespace oktopk_fuzz
