// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/options.hpp>
#include <oktopk/training/norm.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace oktopk {

/// Density of each iteration: a warm-up from `initial` down to `density` in stages, each the same factor sparser (Lin
/// et al., Deep Gradient Compression, ICLR 2018, section 3.3: 25 %, 6.25 %, ... in the first epochs).
///
/// A plain value, the same on all ranks. `allreduce.set_k(schedule.k(iteration, length))`, needed when `k` has changed,
/// costs one small agreement; residuals and thresholds are kept.
struct density_schedule {
  double density = 0.01;    ///< after the warm-up, in (0, 1]
  double initial = 1;       ///< of the first stage, in [density, 1]; 1 is dense
  std::int64_t warm_up = 0; ///< iterations of all stages together
  int stages = 4;           ///< of the warm-up, at least 1

  /// The sentence that says what is wrong with these options; empty if nothing is.
  std::string problem() const {
    if (!detail::is_finite_magnitude(density) || density == 0 || density > 1) {
      return "the density " + detail::decimal_text(density) + " is not in (0, 1]";
    }
    if (!detail::is_finite_magnitude(initial) || initial < density || initial > 1) {
      return "the initial density " + detail::decimal_text(initial) + " is not in [density, 1]";
    }
    if (warm_up < 0 || stages < 1) {
      return "a warm-up has 0 iterations or more, in 1 stage or more";
    }
    return {};
  }

  /// Density of an iteration. Iterations count from 0; one below 0 has the density of iteration 0.
  double at(std::int64_t iteration) const {
    iteration = std::max<std::int64_t>(iteration, 0);
    if (iteration >= warm_up) {
      return density;
    }
    auto const stage = std::floor(static_cast<double>(iteration) * stages / static_cast<double>(warm_up));
    return initial * std::pow(density / initial, stage / stages);
  }

  /// Entries of an iteration for a gradient of that length: at least 1 where there is one.
  std::int64_t k(std::int64_t iteration, std::int64_t length) const {
    return detail::entries_at(at(iteration), length);
  }
};

/// A density that follows training: high in critical phases, low between them (Agarwal et al., Accordion, MLSys 2021,
/// Algorithm 1).
///
/// `observe` takes the gradient of every iteration. At the end of a window the mean norm of its gradients, over all
/// ranks, is compared with that of the window before; gradients do not depend on the density, as updates would. The
/// first two windows have the high density. Reads the gradient once an iteration and waits for the instance; a window
/// ends with an allgather of one number, so that all ranks decide alike.
template <execution_space E, gradient_value Value = float>
class adaptive_density {
public:
  /// The same on all ranks.
  struct options {
    double low = 0.01;         ///< where gradients change little, in (0, high]
    double high = 0.1;         ///< where they change fast, as at first or after a change of the learning rate, up to 1
    double threshold = 0.5;    ///< the relative change of the norm between two windows that counts as fast; positive
    std::int64_t window = 100; ///< iterations of a window, at least 1

    /// The sentence that says what is wrong with these options; empty if nothing is.
    std::string problem() const {
      if (!detail::is_finite_magnitude(low) || low == 0 || !detail::is_finite_magnitude(high) || high < low ||
          high > 1) {
        return "an adaptive density needs 0 < low <= high <= 1";
      }
      if (!(detail::is_number(threshold) && threshold > 0) || window < 1) {
        return "an adaptive density needs a positive threshold and a window of 1 iteration or more";
      }
      return {};
    }
  };

  /// All that one iteration hands to the next; a plain value.
  struct state_type {
    std::int64_t iterations = 0; ///< of this window and those before
    double last = -1;            ///< mean norm of the window before; negative where there was none
    std::int64_t is_high = 1;    ///< 1 if the density is the high one, else 0

    /// For `save` and `load`.
    static std::string type_name() { return "adaptive density"; }

    template <class State, class Visit>
    static void each_part(State& state, Visit& visit) {
      visit(state.iterations);
      visit(state.last);
      visit(state.is_high);
    }
  };

  explicit adaptive_density(options const& how) : how_(how) {
    if (std::string const sentence = how.problem(); !sentence.empty()) {
      throw error(fault::option_out_of_range, sentence);
    }
  }

  double density() const { return state_.is_high != 0 ? how_.high : how_.low; }

  /// Entries of the next iteration for a gradient of that length.
  std::int64_t k(std::int64_t length) const { return detail::entries_at(density(), length); }

  /// Takes the gradient of an iteration on this rank; returns true if the density has changed. Collective.
  template <communicator Comm, class Gradient>
  bool observe(E const& exec, Comm& comm, Gradient const& gradient) {
    sum_of_rank_ += static_cast<double>(norm_.of(exec, gradient));
    if ((state_.iterations + 1) % how_.window != 0) {
      state_.iterations += 1;
      return false;
    }
    // By control messages, because bulk messages may not reach host memory.
    sums_.resize(static_cast<std::size_t>(comm.size()));
    double const mine = std::exchange(sum_of_rank_, 0);
    allgather(comm, std::span<double const>(&mine, 1), std::span<double>(sums_), phase::control, workspace_);
    double const sum = std::accumulate(sums_.begin(), sums_.end(), 0.0); // in rank order: the same on all ranks
    return end_window(sum / comm.size() / static_cast<double>(how_.window));
  }

  state_type const& state() const { return state_; }
  /// Continues with the first iteration of the window that was under way. Throws `bad_state` for a state that `state`
  /// cannot have returned, on this rank alone; with a communicator, on all ranks.
  void restore(state_type const& saved) {
    if (!is_sound(saved)) {
      throw error(fault::bad_state, damaged);
    }
    state_ = saved;
    state_.iterations -= state_.iterations % how_.window;
    sum_of_rank_ = 0;
  }

  /// The same on all ranks. Collective; an `error` on every rank where a state is damaged or differs between ranks.
  template <communicator Comm>
  void restore(Comm& comm, state_type const& saved) {
    agreement terms("adaptive_density::restore");
    if (!is_sound(saved)) {
      terms.note(fault::bad_state, damaged);
    }
    terms.fact("iterations", saved.iterations).fact("norm of the last window", saved.last);
    terms.fact("high density", saved.is_high).check_on(comm);
    restore(saved);
  }

private:
  static constexpr char const* damaged = "the saved state of an adaptive density is damaged";

  static bool is_sound(state_type const& saved) {
    bool const counts = saved.iterations >= 0 && saved.iterations <= std::numeric_limits<std::int64_t>::max() / 2;
    bool const decided = saved.is_high == 1 || (saved.is_high == 0 && saved.last >= 0); // the first windows are high
    return counts && decided && detail::is_finite(saved.last);
  }

  bool end_window(double mean) {
    state_.iterations += 1;
    if (!detail::is_finite(mean)) {
      return false; // the allreduce says which entry it is
    }
    double const change = std::abs(state_.last - mean);
    bool const is_fast = change > 0 && change >= how_.threshold * state_.last; // norms of 0 do not change
    bool const is_high = state_.last < 0 || is_fast;
    state_.last = mean;
    bool const was_high = std::exchange(state_.is_high, is_high ? 1 : 0) != 0;
    return is_high != was_high;
  }

  options how_;
  state_type state_;
  double sum_of_rank_ = 0; // of the norms of this window; a saved state goes on with the next one
  detail::norm_in_order<E, Value> norm_;
  std::vector<double> sums_; // of all ranks
  collective_workspace workspace_;
};

} // namespace oktopk
