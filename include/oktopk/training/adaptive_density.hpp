// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/concepts.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/training/norm.hpp>

#include <cmath>
#include <cstdint>
#include <string>

namespace oktopk {

/// Options of `adaptive_density`; the same on all ranks.
struct adaptive_density_options {
  double low = 0.01;         ///< where gradients change little, in (0, high]
  double high = 0.1;         ///< where they change fast, as at first or after a change of the learning rate, up to 1
  double threshold = 0.5;    ///< the relative change of the norm between two windows that counts as fast; positive
  std::int64_t window = 100; ///< iterations of a window, at least 1

  /// The fault of these options in words; empty where there is none.
  std::string problem() const {
    if (!(low > 0 && low <= high && high <= 1)) {
      return "an adaptive density needs 0 < low <= high <= 1";
    }
    if (!(threshold > 0) || window < 1) {
      return "an adaptive density needs a positive threshold and a window of 1 iteration or more";
    }
    return {};
  }
};

/// A density that follows training: high in critical phases, low between them (Agarwal et al., Accordion, MLSys 2021,
/// Algorithm 1, with updates for gradients).
///
/// `observe` takes the update of every iteration. At the end of a window the norm of the mean magnitude of its updates
/// is compared with that of the window before. Updates are equal on all ranks to the bit, and are summed in a fixed
/// order: so all ranks decide alike and send nothing for it. The first two windows have the high density. Reads the
/// update once an iteration and waits for the instance.
template <execution_space E, gradient_value Value = float>
class adaptive_density {
public:
  /// All that is carried on; a plain value.
  struct state_type {
    std::int64_t iterations = 0;
    double sum = 0;           ///< of the norms of this window
    double last = -1;         ///< mean norm of the window before; negative where there was none
    std::int64_t is_high = 1; ///< whether the density is the high one

    /// For `save` and `load`.
    static std::string type_name() { return "adaptive density"; }

    template <class State, class Visit>
    static void each_part(State& state, Visit& visit) {
      visit(state.iterations);
      visit(state.sum);
      visit(state.last);
      visit(state.is_high);
    }
  };

  explicit adaptive_density(adaptive_density_options const& how) : how_(how) {
    if (std::string const sentence = how.problem(); !sentence.empty()) {
      throw error(fault::option_out_of_range, sentence);
    }
  }

  double density() const { return state_.is_high != 0 ? how_.high : how_.low; }

  /// Entries of the next iteration for a gradient of that length.
  std::int64_t k(std::int64_t length) const {
    auto const rounded = static_cast<std::int64_t>(std::llround(density() * static_cast<double>(length)));
    return length < rounded ? length : (rounded < 1 && length > 0 ? 1 : rounded);
  }

  /// Takes the update of an iteration; gives whether the density has changed.
  template <class Update>
  bool observe(E const& exec, Update const& update) {
    return observe_norm(norm_.of(exec, update.values()));
  }

  /// The same for a program that knows the norm, equal on all ranks to the bit.
  bool observe_norm(double norm) {
    state_.sum += norm;
    state_.iterations += 1;
    if (state_.iterations % how_.window != 0) {
      return false;
    }
    double const mean = state_.sum / static_cast<double>(how_.window);
    bool const was_high = state_.is_high != 0;
    bool const is_first = state_.last < 0;
    bool const is_fast = std::abs(state_.last - mean) >= how_.threshold * state_.last;
    state_.is_high = is_first || is_fast ? 1 : 0;
    state_.last = mean;
    state_.sum = 0;
    return (state_.is_high != 0) != was_high;
  }

  state_type const& state() const { return state_; }
  void restore(state_type const& saved) { state_ = saved; }

private:
  adaptive_density_options how_;
  state_type state_;
  detail::norm_in_order<E, Value> norm_;
};

} // namespace oktopk
