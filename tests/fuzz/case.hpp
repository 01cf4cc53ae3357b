// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/draws.hpp"
#include "fuzz/options.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace oktopk_fuzz {

/// What a gradient is like, on all ranks in one call.
enum class shape {
  normal,
  lasting, ///< much the same in every call, large in the same places on all ranks
  heavy_tailed,
  zeros,
  signed_zeros,
  equal,         ///< one value everywhere
  nearly_equal,  ///< neighbours in the last bits
  few_values,    ///< ties
  whole_numbers, ///< sums are exact
  few_nonzero,
  denormal,
  near_overflow, ///< sums may overflow
  large,         ///< sums just do not overflow
  half_way_up,   ///< squares overflow, sums do not
  one_rank_all,  ///< all others have zeros
  disjoint,      ///< each rank is large in a stretch of its own
  next_region,   ///< each rank is large in another one's stretch
  moving_peaks,
  crowded,       ///< all mass in a few neighbours
  jumping,       ///< up and down by 1e20 from call to call
  cancelling,    ///< ranks in pairs whose sums are zero
  powers_of_two, ///< of all exponents
  top_powers,    ///< of the highest exponents
  one_power,     ///< the same high power everywhere, so that the sums are one
  all_exponents,
};

/// How the input of a call is spoilt on some ranks.
enum class poison {
  none,
  nan, ///< of any payload
  infinity,
  all_ones,     ///< a run of 0xff bytes
  wrong_length, ///< of the accumulator or gradient
  wrong_weights,
};

/// What is wrong with the options of an object that must not be made.
enum class bad_option {
  none,
  k_negative,
  k_beyond,
  k_and_density,
  no_k,
  density_not_a_number,
  density_zero,
  density_beyond,
  length_negative,
  length_beyond_index,
  tau,
  rounds,
  bucket,
  ratio,
  local_tau_prime,
  local_band,
  global_tau_prime,
  global_band,
  rate,
  segment,
  chunk,
  learning_rate,
  other_k, ///< on one rank: the ranks disagree
  other_length,
  other_tau,
  other_bucket,
  other_rate,
};

struct planned_call {
  shape gradient = shape::normal;
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

/// One case: all that is decided beforehand. Gradients follow from the seed.
struct fuzz_case {
  std::uint64_t seed = 0;
  int ranks = 1;
  bool far = false; ///< whether the communicator reaches no memory
  options how;
  std::int64_t k = 0; ///< that the options come to
  way calls_made = way::bare;
  bool feedback = true; ///< of bare calls: what is left over goes into the next accumulator
  double learning_rate = 0.1;
  int new_rate_before = -1; ///< call before which the learning rate changes
  bad_option refused_first = bad_option::none;
  bool refused_on_one_rank = false;
  int replica_before = -1; ///< call before which a replica is made of a checkpoint
  int damage_before = -1;  ///< call before which an altered state is restored
  int file_before = -1;    ///< call before which a damaged checkpoint is read
  std::vector<planned_call> calls;

  bool feeds_back() const { return calls_made == way::bare && feedback; }
};

/// What may be changed about a drawn case, to make it smaller.
struct limits {
  int ranks = -1;
  int calls = -1;
  std::int64_t length = -1;
  std::int64_t k = -1;
  std::vector<std::string> without; ///< of: replica, damage, file, refusal, sgd, options, poison, feedback
};

/// Draws the case of a number.
fuzz_case draw_case(facts const& about, std::uint64_t seed, std::uint64_t number, bool far, limits const& within);

/// A line that says what it is.
std::string in_words(fuzz_case const& what);

/// What a rank hands over in a call: a gradient, which may be spoilt, and the length of its weights.
template <class Value>
struct handed_over {
  std::vector<Value> gradient;
  std::int64_t weights = 0;
};

/// The same for the same arguments. A smaller case has the same first elements.
template <class Value>
handed_over<Value> gradient_of(fuzz_case const& what, int rank, int call);

/// Options and learning rate with something wrong, and the error that every rank must get.
struct bad_options {
  options how;
  double learning_rate = 0.1;
  oktopk::fault code = oktopk::fault::none;
};

/// The options of a rank where the case has an object that must be refused.
bad_options refused_options(fuzz_case const& what, int rank);

} // namespace oktopk_fuzz
