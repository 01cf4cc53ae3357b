// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/case.hpp"
#include "support/caught.hpp"
#include "support/reference.hpp"
#include "support/unreachable.hpp"

#include <oktopk/algorithm/concept.hpp>
#include <oktopk/comm/any_communicator.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/core/checkpoint.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <iomanip>
#include <memory>
#include <sstream>
#include <type_traits>
#include <utility>

namespace oktopk_fuzz {

/// A promise that was not kept. Checks throw it.
struct finding {
  std::string check; ///< a short name of the promise
  std::string text;
};

using verdict = std::optional<finding>;

/// What some checks find.
template <class Check>
verdict found_by(Check const& check) {
  try {
    check();
  } catch (finding const& wrong) {
    return wrong;
  }
  return {};
}

/// Words and numbers, with all digits, behind each other.
template <class... Parts>
std::string text_of(Parts const&... parts) {
  std::ostringstream text;
  text << std::setprecision(17);
  (text << ... << parts);
  return text.str();
}

template <class... Parts>
void expect(bool holds, char const* check, Parts const&... parts) {
  if (!holds) {
    throw finding{check, text_of(parts...)};
  }
}

/// Makes a check; what it finds says where.
template <class Check>
void check_at(std::string const& where, Check const& check) {
  try {
    check();
  } catch (finding const& wrong) {
    throw finding{wrong.check, where + ": " + wrong.text};
  }
}

/// Checks what each rank has: `check(of_rank, rank)`.
template <class Each, class Check>
void check_each(std::vector<Each> const& ranks, Check const& check) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    check_at("rank " + std::to_string(rank), [&] { check(ranks[rank], rank); });
  }
}

/// Checks that a rank of a world threw nothing.
inline void expect_nothing_thrown(std::exception_ptr const& thrown, std::size_t = 0) {
  try {
    if (thrown) {
      std::rethrow_exception(thrown);
    }
  } catch (std::exception const& caught) {
    throw finding{"threw", caught.what()};
  }
}

/// Equality that tells -0 from 0, and takes a NaN for itself.
template <class Number>
bool same_bits(Number a, Number b) {
  return std::memcmp(&a, &b, sizeof(Number)) == 0;
}

template <class Number>
bool same_bits(std::vector<Number> const& a, std::vector<Number> const& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Number)) == 0);
}

/// The in-process communicator, which may say that it reaches no memory: then all that travels is staged.
using near_or_far = oktopk_tests::unreachable<oktopk::in_process_communicator>;

using entries = oktopk_tests::sparse_vector<double>;
using oktopk_tests::outcome;

inline bool same_bits(entries const& a, entries const& b) {
  return a.indices == b.indices && same_bits(a.values, b.values);
}

/// What a selector carries, whichever it is.
struct selector_numbers {
  bool has_threshold = false;
  double threshold = 0;
  std::int64_t evaluated = -1;
  bool has_guess = false;
  double prefilter = 0; // the guess of one rank
  double magnitude = 0; // that of several ranks
  std::int64_t bits = 0;
};

/// The state of an algorithm, whichever it is, or of `sgd` over one.
struct state_numbers {
  std::int64_t iteration = 0;
  selector_numbers local;
  selector_numbers global;
  bool has_boundaries = false;
  std::vector<std::int64_t> boundaries;
  bool of_sgd = false;
  double learning_rate = 0;
  numbers residual;
  std::vector<char> checkpoint; ///< that the numbers of the algorithm were read from
};

/// Reads the numbers of a checkpoint of an algorithm's state, and writes them into it.
struct state_access {
  state_numbers (*read)(std::vector<char> const& checkpoint) = nullptr;
  std::vector<char> (*write)(std::vector<char> const& checkpoint, state_numbers numbers) = nullptr;
};

/// Two states are the same; `shared`: what must be the same on all ranks is.
inline void expect_same(char const* check, state_numbers const& a, state_numbers const& b, bool shared = false) {
  auto const compare = [check](std::string const& name, auto const& x, auto const& y) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(x)>>) {
      expect(same_bits(x, y), check, "another state: ", name, " ", x, " and ", y);
    } else {
      expect(same_bits(x, y), check, "another state: ", name);
    }
  };
  auto const compare_selectors = [&](std::string const& which, selector_numbers const& x, selector_numbers const& y) {
    compare(which + "threshold", x.threshold, y.threshold);
    compare(which + "evaluation", x.evaluated, y.evaluated);
    compare(which + "guess of one rank", x.prefilter, y.prefilter);
    compare(which + "guess", x.magnitude, y.magnitude);
    compare(which + "range of the guess", x.bits, y.bits);
  };
  compare("iteration", a.iteration, b.iteration);
  compare_selectors("global ", a.global, b.global);
  compare("boundaries", a.boundaries, b.boundaries);
  if (!shared) {
    compare_selectors("local ", a.local, b.local);
    compare("learning rate", a.learning_rate, b.learning_rate);
    compare("residual", a.residual, b.residual);
  }
}

/// The bytes of a checkpoint.
template <class State>
std::string saved(State const& state) {
  std::ostringstream file;
  oktopk::save(file, state);
  return file.str();
}

/// One call of one rank, as it could be seen from outside.
struct call_record {
  numbers input;              ///< what was handed over: the accumulator, or the gradient of a step
  std::int64_t weights = 0;   ///< length of the weights, of a step
  outcome said;               ///< what it threw
  bool input_changed = false; ///< though it is only read
  entries update;
  std::vector<std::int64_t> contributed;
  entries returned;
  oktopk::call_statistics statistics;
  std::string runs; ///< the scheme that was called
  std::array<oktopk::traffic, oktopk::phase_count> traffic{};
  double bound_words = 0;
  state_numbers before;
  state_numbers after;
  std::optional<numbers> hooked; ///< the accumulator that the hook of a step was shown
  numbers weights_before;
  numbers weights_after;

  bool threw() const { return said.code != oktopk::fault::none; }
  double words() const {
    double sum = 0;
    for (auto const& each : traffic) {
      sum += each.words_sent();
    }
    return sum;
  }
};

/// One rank's algorithm, whichever it is, and `sgd` over it unless the way is bare.
class participant {
public:
  participant() = default;
  participant& operator=(participant&&) = delete;
  virtual ~participant() = default;

  virtual std::int64_t k() const = 0;
  /// One iteration. Steps change `weights`.
  virtual call_record call(handed_over const& given, numbers& weights) = 0;
  virtual void set_learning_rate(double rate) = 0;
  /// Meets all ranks at a barrier of its communicator.
  virtual void meet() = 0;
  virtual state_numbers state() const = 0;
  /// Restores its state with these numbers in it. Collective; throws.
  virtual void restore(state_numbers const& wanted) = 0;
  /// The bytes of a checkpoint.
  virtual std::string save() const = 0;
  /// Restores a checkpoint. Throws where it cannot be read; collective, and throws, where it can.
  virtual void load(std::string const& bytes) = 0;
};

/// An algorithm with its policies and options: what it promises, and how a rank gets one over some communicator.
struct subject {
  facts about;
  std::function<std::unique_ptr<participant>(oktopk::any_communicator base, options const& how, way calls,
                                             double learning_rate)>
      make;
};

/// The subject that a text of the catalogue names.
subject subject_of(std::string const& text);

/// Texts of all algorithms of the catalogue, in which each two values of an algorithm's options stand together; or each
/// value once.
std::vector<std::string> texts(bool pairs);

/// The subjects that no text names: values of 64 bits, and selectors of schemes that the catalogue has without them.
std::vector<subject> typed_subjects();

/// All of both, in a fixed order.
std::vector<subject> const& subjects();

/// Those that have this in their names; after `=` the one that has the name.
std::vector<subject const*> chosen_of(std::vector<subject> const& all, std::string const& name);

/// What is left of an accumulator: what contributed is cleared, what was returned is added.
inline numbers left_over(fuzz_case const& what, call_record const& mine, numbers accumulator) {
  auto const inside = [&](std::int64_t i) { return i >= 0 && i < static_cast<std::int64_t>(accumulator.size()); };
  for (std::int64_t const i : mine.contributed) {
    if (inside(i)) {
      accumulator[static_cast<std::size_t>(i)] = 0;
    }
  }
  for (std::size_t i = 0; i < mine.returned.indices.size(); ++i) {
    if (inside(mine.returned.indices[i])) {
      double& left = accumulator[static_cast<std::size_t>(mine.returned.indices[i])];
      left = what.values.rounded(left + mine.returned.values[i]);
    }
  }
  return accumulator;
}

/// One call on all ranks, with what went into the allreduce by our own arithmetic.
struct seen_call {
  facts const& about;
  fuzz_case const& what;
  std::vector<call_record> ranks;
  std::vector<numbers> accumulators; ///< of each rank; its input where the lengths do not fit
  std::vector<numbers> residuals;    ///< what is left over, after a call that returned

  seen_call(facts const& some_facts, fuzz_case const& some_case, std::vector<call_record> records)
      : about(some_facts), what(some_case), ranks(std::move(records)) {
    for (call_record const& mine : ranks) {
      accumulators.push_back(accumulator_of(mine));
      residuals.push_back(mine.threw() ? numbers() : left_over(what, mine, accumulators.back()));
    }
  }

  std::int64_t length() const { return what.how.length; }

  /// The k of the result.
  std::int64_t result_size() const {
    double const wanted = about.promised.result * static_cast<double>(what.k);
    return std::min(std::llround(wanted), static_cast<long long>(length()));
  }

  /// The length that a rank's input should not have had; negative where it fits.
  std::int64_t wrong_length(std::size_t rank) const {
    auto const size = static_cast<std::int64_t>(ranks[rank].input.size());
    if (size != length()) {
      return size;
    }
    return what.calls_made != way::bare && ranks[rank].weights != length() ? ranks[rank].weights : -1;
  }

private:
  numbers accumulator_of(call_record const& mine) const {
    numbers sum = mine.input;
    if (what.calls_made != way::bare && mine.before.residual.size() == sum.size()) {
      double const rate = what.values.rounded(mine.before.learning_rate);
      for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] = what.values.rounded(mine.before.residual[i] + what.values.rounded(rate * sum[i]));
      }
    }
    return sum;
  }
};

/// The weights before the first step, the same on all ranks.
inline numbers first_weights(fuzz_case const& what) {
  numbers weights(static_cast<std::size_t>(what.how.length));
  draws draw(mixed({what.seed, 6}));
  for (double& x : weights) {
    x = what.values.rounded(draw.real(-1, 1));
  }
  return weights;
}

/// The learning rate in a call.
inline double rate_in(fuzz_case const& what, int call) {
  return what.new_rate_before >= 0 && call >= what.new_rate_before
             ? draws(mixed({what.seed, 7})).one_of({0.5, -2.0, 1e-2})
             : what.learning_rate;
}

/// What a rank hands over; with what is left over of the calls before, where the case has feedback.
inline handed_over input_of(fuzz_case const& what, int rank, int call, numbers const& residual) {
  handed_over given = gradient_of(what, rank, call);
  for (std::size_t i = 0; what.feeds_back() && given.gradient.size() == residual.size() && i < residual.size(); ++i) {
    given.gradient[i] = what.values.rounded(given.gradient[i] + residual[i]);
  }
  return given;
}

} // namespace oktopk_fuzz
