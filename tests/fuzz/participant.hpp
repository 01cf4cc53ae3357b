// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/facts.hpp"
#include "fuzz/numbers.hpp"
#include "fuzz/options.hpp"
#include "support/caught.hpp"

#include <oktopk/algorithm/concept.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace oktopk_fuzz {

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

/// How calls are made.
enum class way {
  bare,    ///< the algorithm is called with an accumulator
  fused,   ///< through `sgd`, which accumulates and selects in one pass
  hooked,  ///< through `sgd` with a hook, which must see the accumulator first
  strided, ///< through `sgd` with a gradient and weights that are not contiguous
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

} // namespace oktopk_fuzz
