// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/communicator.hpp"
#include "fuzz/participant.hpp"
#include "fuzz/state_of.hpp"

#include <oktopk/core/checkpoint.hpp>
#include <oktopk/sgd.hpp>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

namespace oktopk_fuzz {

using execution = Kokkos::DefaultHostExecutionSpace;

/// `participant` over an algorithm of the library.
template <class Algorithm>
class algorithm_participant final : public participant<typename Algorithm::value_type> {
public:
  using value_type = typename Algorithm::value_type;
  using record = call_record<value_type>;

  algorithm_participant(oktopk::in_process_communicator comm, bool far, options const& how, way calls, double rate)
      : calls_(calls), comm_(near_or_far(comm, far)),
        algorithm_(execution(), comm_, as<typename Algorithm::options>(how)) {
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

  state_numbers<value_type> state() const override {
    return sgd_ ? numbers_of<value_type>(sgd_->state()) : numbers_of<value_type>(algorithm_.state());
  }

  void restore(state_numbers<value_type> const& numbers) override {
    if (sgd_) {
      auto state = sgd_->state();
      put_numbers(numbers, state);
      sgd_->restore(state);
    } else {
      auto state = algorithm_.state();
      put_numbers(numbers, state);
      algorithm_.restore(state);
    }
  }

  std::string save() const override {
    std::ostringstream file;
    if (sgd_) {
      oktopk::save(file, sgd_->state());
    } else {
      oktopk::save(file, algorithm_.state());
    }
    return file.str();
  }

  state_numbers<value_type> load(std::string const& bytes) override {
    std::istringstream file(bytes);
    if (sgd_) {
      loaded_of_sgd_ = oktopk::load<sgd_state>(file);
      return numbers_of<value_type>(loaded_of_sgd_);
    }
    loaded_ = oktopk::load<state_type>(file);
    return numbers_of<value_type>(loaded_);
  }

  void restore_loaded() override {
    if (sgd_) {
      sgd_->restore(loaded_of_sgd_);
    } else {
      algorithm_.restore(loaded_);
    }
  }

private:
  using state_type = typename Algorithm::state_type;
  using sgd_state = typename oktopk::sgd<Algorithm>::state_type;
  using update_type = typename Algorithm::update_type;
  using vector_view = Kokkos::View<value_type*, Kokkos::HostSpace>;
  // Of either kind at run time, so that one instantiation serves both.
  using strided_view =
      Kokkos::View<value_type*, Kokkos::LayoutStride, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

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
  communicator comm_;
  Algorithm algorithm_;
  std::optional<oktopk::sgd<Algorithm>> sgd_;
  std::optional<std::vector<value_type>> seen_;
  state_type loaded_;
  sgd_state loaded_of_sgd_;
};

} // namespace oktopk_fuzz
