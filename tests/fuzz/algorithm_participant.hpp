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
#include <limits>
#include <optional>
#include <sstream>
#include <type_traits>
#include <utility>

namespace oktopk_fuzz {

using execution = Kokkos::DefaultHostExecutionSpace;

/// The in-process communicator, which may say that it reaches no memory: then all that travels is staged.
using near_or_far = oktopk_tests::unreachable<oktopk::in_process_communicator>;
using communicator = oktopk::counted<near_or_far>;

template <class Numbers, class Selector, class Copy>
void each_number_of_selector([[maybe_unused]] Numbers& numbers, [[maybe_unused]] Selector& state,
                             [[maybe_unused]] Copy const& copy) {
  if constexpr (!std::is_const_v<Numbers>) {
    numbers.has_threshold = requires { state.threshold; };
    numbers.has_guess = requires { state.guess; };
  }
  if constexpr (requires { state.threshold; }) {
    copy(numbers.threshold, state.threshold);
    copy(numbers.evaluated, state.evaluated);
  }
  if constexpr (requires { state.guess; }) {
    copy(numbers.prefilter, state.guess.prefilter.magnitude);
    copy(numbers.magnitude, state.guess.bracket.magnitude);
    copy(numbers.bits, state.guess.bracket.bits);
  }
}

/// Copies the numbers of a state of any algorithm, or of `sgd`, one way or the other.
template <class Numbers, class State, class Copy>
void each_number(Numbers& numbers, State& state, Copy const& copy) {
  if constexpr (requires { state.allreduce; }) {
    each_number(numbers, state.allreduce, copy);
    copy(numbers.learning_rate, state.learning_rate);
    copy(numbers.residual, state.residual);
  } else {
    copy(numbers.iteration, state.iteration);
    if constexpr (requires { state.local; }) {
      each_number_of_selector(numbers.local, state.local, copy);
    }
    if constexpr (requires { state.global; }) {
      each_number_of_selector(numbers.global, state.global, copy);
    }
    if constexpr (requires { state.boundaries; }) {
      copy(numbers.boundaries, state.boundaries);
    }
  }
}

template <class Value, class State>
state_numbers<Value> numbers_of(State const& state) {
  state_numbers<Value> numbers;
  numbers.of_sgd = requires { state.allreduce; };
  numbers.has_boundaries = requires { state.boundaries; } || requires { state.allreduce.boundaries; };
  each_number(numbers, state, [](auto& number, auto const& of_state) { number = of_state; });
  return numbers;
}

/// The way back.
template <class Value, class State>
void put_numbers(state_numbers<Value> const& numbers, State& state) {
  each_number(numbers, state, []<class T>(auto const& number, T& of_state) {
    if constexpr (std::is_same_v<T, std::int32_t>) { // the width of a range, for which we have more bits
      of_state = static_cast<T>(
          std::clamp<std::int64_t>(number, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    } else {
      of_state = number;
    }
  });
}

/// `participant` over an algorithm of the library, whose communicator counts the messages of `Base`.
template <class Algorithm, class Base = near_or_far>
class algorithm_participant final : public participant<typename Algorithm::value_type> {
public:
  using value_type = typename Algorithm::value_type;
  using record = call_record<value_type>;

  algorithm_participant(oktopk::in_process_communicator comm, bool far, options const& how, way calls, double rate)
      : calls_(calls), comm_(base_of(comm, far)), algorithm_(execution(), comm_, as<typename Algorithm::options>(how)) {
    if (calls_ != way::bare) {
      sgd_.emplace(execution(), algorithm_, typename oktopk::sgd<Algorithm>::options{.learning_rate = rate});
    }
    if (calls_ == way::hooked) {
      sgd_->before_allreduce(
          [this](auto accumulator) { seen_.emplace(accumulator.data(), accumulator.data() + accumulator.extent(0)); });
    }
  }

  std::int64_t k() const override { return algorithm_.k(); }

  void call(std::vector<value_type> const& input, std::vector<value_type>& weights, record& out) override {
    out.input = input;
    out.weights = static_cast<std::int64_t>(weights.size());
    seen_.reset();
    comm_.reset();
    out.said = oktopk_tests::outcome_of([&] {
      auto const& update = calls_ == way::bare ? call_bare(input, out) : step(input, weights, out);
      write_down(update, out);
    });
    for (int p = 0; p < oktopk::phase_count; ++p) {
      out.traffic[static_cast<std::size_t>(p)] = comm_.of_phase(static_cast<oktopk::phase>(p));
    }
    out.statistics = algorithm_.last_call();
    out.bound_words = algorithm_.bound_words();
    out.hooked = std::move(seen_);
  }

  void set_learning_rate(double rate) override {
    if (sgd_) {
      sgd_->set_learning_rate(rate);
    }
  }

  void meet() override { oktopk::detail::barrier_all_to_all(comm_); }

  state_numbers<value_type> state() const override {
    return on(*this, [](auto const& one, auto const&) { return numbers_of<value_type>(one.state()); });
  }
  void restore(state_numbers<value_type> const& numbers) override {
    on(*this, [&](auto& one, auto&) {
      auto state = one.state();
      put_numbers(numbers, state);
      one.restore(state);
    });
  }
  std::string save() const override {
    std::ostringstream file;
    on(*this, [&](auto const& one, auto const&) { oktopk::save(file, one.state()); });
    return file.str();
  }
  state_numbers<value_type> load(std::string const& bytes) override {
    std::istringstream file(bytes);
    return on(*this, [&](auto&, auto& loaded) {
      loaded = oktopk::load<std::remove_reference_t<decltype(loaded)>>(file);
      return numbers_of<value_type>(loaded);
    });
  }
  void restore_loaded() override {
    on(*this, [](auto& one, auto& loaded) { one.restore(loaded); });
  }

private:
  using update_type = typename Algorithm::update_type;
  using vector_view = Kokkos::View<value_type*, Kokkos::HostSpace>;
  // Of either kind at run time, so that one instantiation serves both.
  using strided_view =
      Kokkos::View<value_type*, Kokkos::LayoutStride, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  static Base base_of(oktopk::in_process_communicator comm, bool far) {
    if constexpr (std::is_same_v<Base, near_or_far>) {
      return Base(comm, far);
    } else {
      return Base(comm);
    }
  }

  // Hands over the algorithm, or `sgd` where that is what is called, and the checkpoint of it that was read.
  template <class Self, class Use>
  static auto on(Self& self, Use const& use) {
    return self.sgd_ ? use(*self.sgd_, self.loaded_of_sgd_) : use(self.algorithm_, self.loaded_);
  }

  static vector_view vector_of(std::vector<value_type> const& values) {
    vector_view const view(Kokkos::view_alloc(std::string("input"), Kokkos::WithoutInitializing), values.size());
    std::copy(values.begin(), values.end(), view.data());
    return view;
  }

  update_type const& call_bare(std::vector<value_type> const& input, record& out) {
    vector_view const accumulator = vector_of(input);
    watch const unchanged{accumulator.data(), 1, input, out};
    return algorithm_(accumulator);
  }

  update_type const& step(std::vector<value_type> const& gradient, std::vector<value_type>& weights, record& out) {
    std::size_t const stride = calls_ == way::strided ? 3 : 1;
    std::vector<value_type> spread(gradient.size() * stride);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      spread[i * stride] = gradient[i];
    }
    std::vector<value_type> spread_weights(weights.size() * stride);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      spread_weights[i * stride] = weights[i];
    }
    collect const back{spread_weights, stride, weights};
    watch const unchanged{spread.data(), stride, gradient, out};
    return sgd_->step(strided_view(spread_weights.data(), Kokkos::LayoutStride(weights.size(), stride)),
                      strided_view(spread.data(), Kokkos::LayoutStride(gradient.size(), stride)));
  }

  // Looks when the call is over, however it ends, whether an input is as it was.
  struct watch {
    value_type const* data;
    std::size_t stride;
    std::vector<value_type> const& as_it_was;
    record& out;

    ~watch() {
      for (std::size_t i = 0; i < as_it_was.size(); ++i) {
        out.input_changed = out.input_changed || !same_bits(data[i * stride], as_it_was[i]);
      }
    }
  };

  // Takes the weights back, however the call ends.
  struct collect {
    std::vector<value_type> const& from;
    std::size_t stride;
    std::vector<value_type>& to;

    ~collect() {
      for (std::size_t i = 0; i < to.size(); ++i) {
        to[i] = from[i * stride];
      }
    }
  };

  static void write_down(update_type const& update, record& out) {
    for (std::size_t i = 0; i < update.indices().extent(0); ++i) {
      out.update.push_back(static_cast<std::int64_t>(update.indices()(i)), value_type(0));
    }
    out.update.values.assign(update.values().data(), update.values().data() + update.values().extent(0));
    for (std::size_t i = 0; i < update.contributed().extent(0); ++i) {
      out.contributed.push_back(static_cast<std::int64_t>(update.contributed()(i)));
    }
    for (std::int64_t i = 0; i < update.returned().size(); ++i) {
      out.returned.push_back(static_cast<std::int64_t>(update.returned().indices(i)), update.returned().values(i));
    }
  }

  way calls_;
  oktopk::counted<Base> comm_;
  Algorithm algorithm_;
  std::optional<oktopk::sgd<Algorithm>> sgd_;
  std::optional<std::vector<value_type>> seen_;
  typename Algorithm::state_type loaded_;
  typename oktopk::sgd<Algorithm>::state_type loaded_of_sgd_;
};

} // namespace oktopk_fuzz
