// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/record.hpp"
#include "support/unreachable.hpp"

#include <oktopk/comm/collectives.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/core/checkpoint.hpp>
#include <oktopk/sgd.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <sstream>
#include <type_traits>

namespace oktopk_fuzz {

using execution = Kokkos::DefaultHostExecutionSpace;

/// The in-process communicator, which may say that it reaches no memory: then all that travels is staged.
using near_or_far = oktopk_tests::unreachable<oktopk::in_process_communicator>;
using communicator = oktopk::counted<near_or_far>;

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

/// Copies the numbers of a state of any algorithm, or of `sgd`, one way or the other.
template <class State, class Copy>
void each_number(state_numbers& ours, State& state, Copy const& copy) {
  if constexpr (requires { state.allreduce; }) {
    ours.of_sgd = true;
    each_number(ours, state.allreduce, copy);
    copy(ours.learning_rate, state.learning_rate);
    copy(ours.residual, state.residual);
  } else {
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
}

template <class State>
state_numbers numbers_of(State const& state) {
  state_numbers ours;
  each_number(ours, state, [](auto& to, auto const& from) { copy_number(to, from); });
  return ours;
}

template <class State>
std::string saved(State const& state) {
  std::ostringstream file;
  oktopk::save(file, state);
  return file.str();
}

/// `participant` over an algorithm of the library, whose communicator counts the messages of `Base`.
template <class Algorithm, class Base>
class algorithm_participant final : public participant {
public:
  using value_type = typename Algorithm::value_type;

  algorithm_participant(Base base, options const& how, way calls, double rate)
      : calls_(calls), comm_(std::move(base)),
        algorithm_(execution(), comm_, taken_from<typename Algorithm::options>(how).first) {
    if (calls_ != way::bare) {
      sgd_.emplace(execution(), algorithm_, typename oktopk::sgd<Algorithm>::options{.learning_rate = rate});
    }
    if (calls_ == way::hooked) {
      sgd_->before_allreduce(
          [this](auto accumulator) { seen_.emplace(accumulator.data(), accumulator.data() + accumulator.extent(0)); });
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
    std::size_t const stride = calls_ == way::strided ? 3 : 1;
    auto const input = spread(given.gradient, stride);
    auto const as_it_was = spread(given.gradient, stride);
    auto const own = spread(used, stride);
    seen_.reset();
    comm_.reset();
    out.said = oktopk_tests::outcome_of([&] {
      write_down(calls_ == way::bare
                     ? algorithm_(input)
                     : sgd_->step(strided(own, used.size(), stride), strided(input, given.gradient.size(), stride)),
                 out);
    });
    out.input_changed =
        input.size() > 0 && std::memcmp(input.data(), as_it_was.data(), input.size() * sizeof(value_type)) != 0;
    for (std::size_t i = 0; i < used.size(); ++i) {
      used[i] = static_cast<double>(own(i * stride));
    }
    for (int p = 0; p < oktopk::phase_count; ++p) {
      out.traffic[static_cast<std::size_t>(p)] = comm_.of_phase(static_cast<oktopk::phase>(p));
    }
    out.statistics = algorithm_.last_call();
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
    return on(*this, [](auto const& one) { return numbers_of(one.state()); });
  }
  void restore(state_numbers const& wanted) override {
    on(*this, [&](auto& one) {
      auto state = one.state();
      state_numbers ours = wanted;
      each_number(ours, state, [](auto const& from, auto& to) { copy_number(to, from); });
      one.restore(state);
    });
  }
  std::string save() const override {
    return on(*this, [](auto const& one) { return saved(one.state()); });
  }
  void load(std::string const& bytes) override {
    std::istringstream file(bytes);
    on(*this, [&](auto& one) { one.restore(oktopk::load<std::remove_cvref_t<decltype(one.state())>>(file)); });
  }

private:
  using vector = Kokkos::View<value_type*, Kokkos::HostSpace>;

  // Hands over the algorithm, or `sgd` where that is what is called.
  template <class Self, class Use>
  static auto on(Self& self, Use const& use) {
    return self.sgd_ ? use(*self.sgd_) : use(self.algorithm_);
  }

  static vector spread(numbers const& values, std::size_t stride) {
    vector const made("input", values.size() * stride);
    for (std::size_t i = 0; i < values.size(); ++i) {
      made(i * stride) = narrowed<value_type>(values[i]);
    }
    return made;
  }

  // Of either kind at run time, so that one instantiation serves both.
  static auto strided(vector const& in, std::size_t size, std::size_t stride) {
    using view =
        Kokkos::View<value_type*, Kokkos::LayoutStride, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    return view(in.data(), Kokkos::LayoutStride(size, stride));
  }

  static void write_down(typename Algorithm::update_type const& update, call_record& out) {
    for (std::size_t i = 0; i < update.indices().extent(0); ++i) {
      out.update.indices.push_back(static_cast<std::int64_t>(update.indices()(i)));
    }
    out.update.values.assign(update.values().data(), update.values().data() + update.values().extent(0));
    for (std::size_t i = 0; i < update.contributed().extent(0); ++i) {
      out.contributed.push_back(static_cast<std::int64_t>(update.contributed()(i)));
    }
    for (std::int64_t i = 0; i < update.returned().size(); ++i) {
      out.returned.push_back(static_cast<std::int64_t>(update.returned().indices(i)),
                             static_cast<double>(update.returned().values(i)));
    }
  }

  way calls_;
  oktopk::counted<Base> comm_;
  Algorithm algorithm_;
  std::optional<oktopk::sgd<Algorithm>> sgd_;
  std::optional<numbers> seen_;
};

template <class Algorithm, class Base = near_or_far>
std::unique_ptr<participant> make_participant(oktopk::in_process_communicator comm, bool far, options const& how,
                                              way calls, double rate) {
  auto const base = [&] {
    if constexpr (std::is_same_v<Base, near_or_far>) {
      return Base(comm, far);
    } else {
      return Base(comm);
    }
  };
  return std::make_unique<algorithm_participant<Algorithm, Base>>(base(), how, calls, rate);
}

} // namespace oktopk_fuzz
