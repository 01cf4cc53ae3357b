// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/draws.hpp"

#include <oktopk/algorithm/concept.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace oktopk_fuzz {

/// How entries are chosen.
enum class choice {
  none,     ///< all of them
  exact,    ///< the k largest
  reused,   ///< a threshold that is evaluated anew when it is due or its count leaves a band
  gathered, ///< a threshold from a gather of all candidates
  gaussian, ///< a threshold from mean and standard deviation
  chunked,  ///< the largest of each chunk, k in all
  other,    ///< of which no check knows the rule
};

/// How values are coded.
enum class rounding { none, bfloat16, float16, block_float, zfp, other };

/// A type of values. All that is drawn and checked is held in doubles, which is the same: a sum, product or quotient of
/// two floats that is rounded to a double and then to a float is the float that their own arithmetic gives.
struct value_type {
  int bytes = 4;
  double epsilon = 0;
  double least = 0; ///< normal number
  double denormal = 0;
  double most = 0;
  int least_exponent = 0; ///< of a denormal number
  int most_exponent = 0;

  /// The neighbour above.
  double next(double x) const {
    return bytes == 4
               ? static_cast<double>(std::nextafter(static_cast<float>(x), std::numeric_limits<float>::infinity()))
               : std::nextafter(x, std::numeric_limits<double>::infinity());
  }
  double rounded(double x) const { return bytes == 4 ? static_cast<double>(static_cast<float>(x)) : x; }
};

template <class Value>
constexpr value_type type_of() {
  using limit = std::numeric_limits<Value>;
  return {sizeof(Value),          limit::epsilon(), limit::min(),
          limit::denorm_min(),    limit::max(),     limit::min_exponent - limit::digits,
          limit::max_exponent - 1};
}

/// The size of an object; all other options are those of its subject.
struct options {
  std::int64_t length = 0;
  std::optional<std::int64_t> k = 0;
  std::optional<double> density;
  std::string text{}; ///< of the object, where it is not that of its subject
};

/// The name of a policy, in its text: `sampled` in `sampled (tau 64, most 1.25)`.
inline std::string policy_in(std::string const& text) {
  return text.substr(0, text.find(' '));
}

/// An option in the text of a policy; 0 for one that it does not have.
double option_in(std::string const& text, std::string const& key);

/// What is promised of an algorithm, as it says itself, with its types and its format: all that the checks know of it.
struct facts {
  std::string name; ///< the text, or for one without a text any
  bool has_text = false;
  oktopk::allreduce_promises promised;
  value_type values;
  int index_bytes = 4;
  bool exact_size = true; ///< of the format: `entry_words()` times the entries is what a message holds
  /// The most bytes of so many entries of a gradient of this length, in one message.
  std::function<std::int64_t(std::int64_t entries, std::int64_t length)> most_bytes{};
  std::int64_t piece_bytes = 0; ///< the most that a message takes more for each piece that it is cut into

  using order = oktopk::allreduce_promises::order;

  double entry_words() const { return (values.bytes + index_bytes) / 4.0; }
  bool lossless() const { return promised.rounding.empty(); }
  bool is_dense() const { return !promised.local; }
  /// Whether a selection among the sums follows, which makes the regions of a state.
  bool is_ok_topk() const { return promised.sums == order::of_owners && promised.global; }
  bool returns_dropped() const { return promised.sums == order::of_tree && promised.all_contribute; }
  /// How messages are coded: those of sums in one of the ways that the checks know, those of entries in any.
  rounding codec() const;
  /// The groups that a range of so many of P ranks is cut into by the reduce phase; none: one stage.
  std::vector<int> cuts(int ranks, std::int64_t length, std::int64_t k) const;
  int blocks() const { return std::max(static_cast<int>(option_in(promised.partition, "blocks")), 1); }
  /// Whether the checks know which entries are selected.
  bool knows_selections() const;
  /// Whether they know the update, to the bit.
  bool knows_update() const { return knows_selections() && lossless(); }
};

/// The rule of a selector; none: all entries.
choice rule_of(std::optional<oktopk::selection_promises> const& selector);

using numbers = std::vector<double>;

struct moment;

/// What a gradient is like, on all ranks in one call.
struct shape {
  char const* name;
  void (*fill)(moment& of);
};

/// All there are.
std::vector<shape> const& shapes();

/// How the input of a call is spoilt on some ranks.
enum class poison {
  none,
  nan, ///< of any payload
  infinity,
  all_ones,     ///< a run of 0xff bytes
  wrong_length, ///< of the accumulator or gradient
  wrong_weights,
};

struct planned_call {
  shape const* gradient = nullptr;
  poison spoilt = poison::none;
  double scale = 1;
};

/// How calls are made.
enum class way {
  bare,    ///< the algorithm is called with an accumulator
  fused,   ///< through `sgd`, which accumulates and selects in one pass
  hooked,  ///< through `sgd` with a hook, which must see the accumulator first
  strided, ///< through `sgd` with a gradient and weights that are not contiguous
};

struct bad_option;

/// One case: all that is decided beforehand. Gradients follow from the seed.
struct fuzz_case {
  std::uint64_t seed = 0;
  value_type values;
  int ranks = 1;
  bool far = false; ///< whether the communicator reaches no memory
  options how;
  std::int64_t k = 0; ///< that the options come to
  way calls_made = way::bare;
  bool feedback = true; ///< of bare calls: what is left over goes into the next accumulator
  double learning_rate = 0.1;
  int new_rate_before = -1;                  ///< call before which the learning rate changes
  bad_option const* refused_first = nullptr; ///< of an object that must not be made
  bool refused_on_one_rank = false;
  int replica_before = -1; ///< call before which a replica is made of a checkpoint
  int damage_before = -1;  ///< call before which an altered state is restored
  std::vector<planned_call> calls;

  bool feeds_back() const { return calls_made == way::bare && feedback; }
};

/// What is changed about a drawn case, to make it smaller: `ranks`, `calls`, `length` and `k`, and 0 for the parts that
/// it shall not have: `replica`, `damage`, `refusal`, `poison`, `sgd`, `feedback`.
using limits = std::map<std::string, std::int64_t>;

/// Draws the case of a number.
fuzz_case draw_case(facts const& about, std::uint64_t seed, std::uint64_t number, bool far, limits const& within);

/// A line that says what it is.
std::string in_words(fuzz_case const& what);

/// What a rank hands over in a call: a gradient, which may be spoilt, and the length of its weights.
struct handed_over {
  numbers gradient;
  std::int64_t weights = 0;
  bool strided = false;                 ///< of a bare call: not contiguous, which is refused
  oktopk::detail::fault_report fails{}; ///< of a bare call: handed over in place of the accumulator, unless it is none
};

/// The same for the same arguments. A smaller case has the same first elements.
handed_over gradient_of(fuzz_case const& what, int rank, int call);

/// Options and learning rate with something wrong, and the error that every rank must get.
struct bad_options {
  options how;
  double learning_rate = 0.1;
  oktopk::fault code = oktopk::fault::none;
};

/// The options of a rank where the case has an object that must be refused.
bad_options refused_options(facts const& about, fuzz_case const& what, int rank);

} // namespace oktopk_fuzz
