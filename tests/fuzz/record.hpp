// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/case.hpp"
#include "support/caught.hpp"
#include "support/reference.hpp"

#include <oktopk/algorithm/concept.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace oktopk_fuzz {

/// A promise that was not kept.
struct finding {
  std::string check; ///< a short name of the promise
  std::string text;
};

using verdict = std::optional<finding>;

template <class Value>
using pattern_of = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;

/// Equality that tells -0 from 0, and takes a NaN for itself.
template <class Value>
bool same_bits(Value a, Value b) {
  return std::bit_cast<pattern_of<Value>>(a) == std::bit_cast<pattern_of<Value>>(b);
}

template <class Value>
bool same_bits(std::vector<Value> const& a, std::vector<Value> const& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Value)) == 0);
}

template <class Value>
bool is_negative_zero(Value x) {
  return x == 0 && std::signbit(x);
}

/// A number in words, with its bits where it has few digits to be told by.
std::string in_words(double x);

template <class Value>
using entries = oktopk_tests::sparse_vector<Value>;

/// What a selector carries, whichever it is.
template <class Value>
struct selector_numbers {
  bool has_threshold = false;
  Value threshold = 0;
  std::int64_t evaluated = -1;
  bool has_guess = false;
  Value prefilter = 0; // the guess of one rank
  Value magnitude = 0; // that of several ranks
  std::int64_t bits = 0;
};

/// The state of an algorithm, whichever it is, or of `sgd` over one.
template <class Value>
struct state_numbers {
  std::int64_t iteration = 0;
  selector_numbers<Value> local;
  selector_numbers<Value> global;
  bool has_boundaries = false;
  std::vector<std::int64_t> boundaries;
  bool of_sgd = false;
  double learning_rate = 0;
  std::vector<Value> residual;
};

/// The first number that is another in the other one, in words; empty where none is.
template <class Value>
std::string difference(selector_numbers<Value> const& a, selector_numbers<Value> const& b) {
  auto const differ = [](char const* name, double x, double y) {
    return std::string(name) + " " + in_words(x) + " and " + in_words(y);
  };
  if (!same_bits(a.threshold, b.threshold)) {
    return differ("threshold", static_cast<double>(a.threshold), static_cast<double>(b.threshold));
  }
  if (a.evaluated != b.evaluated) {
    return "evaluated in " + std::to_string(a.evaluated) + " and " + std::to_string(b.evaluated);
  }
  if (!same_bits(a.prefilter, b.prefilter)) {
    return differ("guess of one rank", static_cast<double>(a.prefilter), static_cast<double>(b.prefilter));
  }
  if (!same_bits(a.magnitude, b.magnitude)) {
    return differ("guess", static_cast<double>(a.magnitude), static_cast<double>(b.magnitude));
  }
  return a.bits == b.bits ? "" : "range of the guess " + std::to_string(a.bits) + " and " + std::to_string(b.bits);
}

template <class Value>
std::string difference(state_numbers<Value> const& a, state_numbers<Value> const& b) {
  if (a.iteration != b.iteration) {
    return "iteration " + std::to_string(a.iteration) + " and " + std::to_string(b.iteration);
  }
  if (auto const text = difference(a.local, b.local); !text.empty()) {
    return "local " + text;
  }
  if (auto const text = difference(a.global, b.global); !text.empty()) {
    return "global " + text;
  }
  if (a.boundaries != b.boundaries) {
    return "boundaries";
  }
  if (!same_bits(a.learning_rate, b.learning_rate)) {
    return "learning rate " + in_words(a.learning_rate) + " and " + in_words(b.learning_rate);
  }
  return same_bits(a.residual, b.residual) ? "" : "residual";
}

using oktopk_tests::outcome;

/// One call of one rank, as it could be seen from outside.
template <class Value>
struct call_record {
  std::vector<Value> input;   ///< what was handed over: the accumulator, or the gradient of a step
  std::int64_t weights = 0;   ///< length of the weights, of a step
  outcome said;               ///< what it threw
  bool input_changed = false; ///< though it is only read
  entries<Value> update;
  std::vector<std::int64_t> contributed;
  entries<Value> returned;
  oktopk::call_statistics statistics;
  std::array<oktopk::traffic, oktopk::phase_count> traffic{};
  double bound_words = 0;
  state_numbers<Value> before;
  state_numbers<Value> after;
  std::optional<std::vector<Value>> hooked; ///< the accumulator that the hook of a step was shown
  std::vector<Value> weights_before;
  std::vector<Value> weights_after;

  double words() const {
    double sum = 0;
    for (auto const& each : traffic) {
      sum += each.words_sent();
    }
    return sum;
  }
};

/// One rank's algorithm, whichever it is, and `sgd` over it unless the way is bare.
template <class Value>
class participant {
public:
  participant() = default;
  participant(participant const&) = delete;
  participant& operator=(participant const&) = delete;
  virtual ~participant() = default;

  virtual std::int64_t k() const = 0;

  /// One iteration; writes down all but the states. Steps change `weights`.
  virtual void call(std::vector<Value> const& input, std::vector<Value>& weights, call_record<Value>& record) = 0;

  virtual void set_learning_rate(double rate) = 0;
  /// Meets all ranks at a barrier of its communicator.
  virtual void meet() = 0;
  virtual state_numbers<Value> state() const = 0;
  /// Restores its state with these numbers in it. Collective; throws.
  virtual void restore(state_numbers<Value> const& numbers) = 0;
  /// The bytes of a checkpoint.
  virtual std::string save() const = 0;
  /// Reads a checkpoint and keeps it aside; gives its numbers. Throws.
  virtual state_numbers<Value> load(std::string const& bytes) = 0;
  /// Restores the checkpoint that was read. Collective; throws.
  virtual void restore_loaded() = 0;
};

/// An algorithm with its policies: what it promises, and how a rank gets one.
template <class Value>
struct subject {
  facts about;
  std::unique_ptr<participant<Value>> (*make)(oktopk::in_process_communicator comm, bool far, options const& how,
                                              way calls, double learning_rate) = nullptr;
};

/// What is left of an accumulator: what contributed is cleared, what was returned is added.
template <class Value>
std::vector<Value> left_over(call_record<Value> const& mine, std::vector<Value> accumulator) {
  auto const inside = [&](std::int64_t i) { return i >= 0 && i < static_cast<std::int64_t>(accumulator.size()); };
  for (std::int64_t const i : mine.contributed) {
    if (inside(i)) {
      accumulator[static_cast<std::size_t>(i)] = 0;
    }
  }
  for (std::size_t i = 0; i < mine.returned.indices.size(); ++i) {
    if (inside(mine.returned.indices[i])) {
      accumulator[static_cast<std::size_t>(mine.returned.indices[i])] += mine.returned.values[i];
    }
  }
  return accumulator;
}

/// One call on all ranks, with what went into the allreduce by our own arithmetic.
template <class Value>
struct seen_call {
  facts const& about;
  fuzz_case const& what;
  std::vector<call_record<Value>> ranks;
  std::vector<std::vector<Value>> accumulators; ///< of each rank; empty where the lengths do not fit
  std::vector<std::vector<Value>> residuals;    ///< what is left over, after a call that returned

  seen_call(facts const& some_facts, fuzz_case const& some_case, std::vector<call_record<Value>> records)
      : about(some_facts), what(some_case), ranks(std::move(records)) {
    for (auto const& mine : ranks) {
      accumulators.push_back(accumulator_of(mine));
      residuals.push_back(mine.said.code == oktopk::fault::none ? left_over(mine, accumulators.back())
                                                                : std::vector<Value>());
    }
  }

  std::int64_t length() const { return what.how.length; }

  /// The length that a rank's input should not have had; negative where it fits.
  std::int64_t wrong_length(std::size_t rank) const {
    auto const size = static_cast<std::int64_t>(ranks[rank].input.size());
    if (size != length()) {
      return size;
    }
    return what.calls_made != way::bare && ranks[rank].weights != length() ? ranks[rank].weights : -1;
  }

private:
  std::vector<Value> accumulator_of(call_record<Value> const& mine) const {
    if (what.calls_made == way::bare || mine.before.residual.size() != mine.input.size()) {
      return mine.input;
    }
    auto const rate = static_cast<Value>(mine.before.learning_rate);
    std::vector<Value> sum(mine.input.size());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] = mine.before.residual[i] + rate * mine.input[i];
    }
    return sum;
  }
};

/// The weights before the first step, the same on all ranks.
template <class Value>
std::vector<Value> first_weights(fuzz_case const& what) {
  std::vector<Value> weights(static_cast<std::size_t>(what.how.length));
  draws draw(mixed({what.seed, 6}));
  for (Value& x : weights) {
    x = static_cast<Value>(draw.real(-1, 1));
  }
  return weights;
}

/// The learning rate from the call on before which it changes.
inline double new_rate(fuzz_case const& what) {
  return draws(mixed({what.seed, 7})).one_of({0.5, -2.0, 1e-2});
}

/// What a rank hands over; with what is left over of the calls before, where the case has feedback.
template <class Value>
handed_over<Value> input_of(fuzz_case const& what, int rank, int call, std::vector<Value> const& residual) {
  handed_over<Value> given = gradient_of<Value>(what, rank, call);
  for (std::size_t i = 0; what.feeds_back() && given.gradient.size() == residual.size() && i < residual.size(); ++i) {
    given.gradient[i] += residual[i];
  }
  return given;
}

/// Makes a call and writes down all of it. Steps change `weights`.
template <class Value>
call_record<Value> recorded_call(participant<Value>& who, handed_over<Value> const& given,
                                 std::vector<Value>& weights) {
  call_record<Value> record;
  record.before = who.state();
  record.weights_before = weights;
  std::vector<Value> misfit(static_cast<std::size_t>(given.weights), Value(1));
  who.call(given.gradient, misfit.size() == weights.size() ? weights : misfit, record);
  record.after = who.state();
  record.weights_after = weights;
  return record;
}

/// The subject of this name.
template <class Value>
subject<Value> const& named(std::vector<subject<Value>> const& all, std::string const& name) {
  auto const at = std::find_if(all.begin(), all.end(), [&](auto const& each) { return each.about.name == name; });
  return at == all.end() ? throw std::invalid_argument("there is no subject " + name) : *at;
}

} // namespace oktopk_fuzz
