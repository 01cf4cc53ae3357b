// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

namespace oktopk_fuzz {

enum class family { ok_topk, topk_a, topk_dsa, gtopk, dense };

/// How entries are chosen.
enum class choice {
  none,      ///< all of them
  exact,     ///< the k largest
  reused,    ///< a threshold that is evaluated anew when it is due or its count leaves a band
  unguarded, ///< the same without the band
  gathered,  ///< a threshold from a gather of all candidates
  gaussian,  ///< a threshold from mean and standard deviation
};

enum class rounding { none, bfloat16, block_float, zfp };

/// Which options a subject has, so that they can be drawn and spoilt.
struct option_names {
  bool k = false;
  bool tau = false;
  bool rounds = false;
  bool bucket = false;
  bool ratio = false;
  bool local_tau_prime = false;
  bool local_band = false;
  bool global_tau_prime = false;
  bool global_band = false;
  bool codec_rate = false;
  bool segment = false;
  bool chunks = false;
};

/// What is promised of an algorithm with its policies, as far as the checks need to know.
struct facts {
  std::string name;
  family kind = family::dense;
  choice local = choice::none;
  choice global = choice::none;
  bool uniform_regions = false;
  bool paper_gather = false;   ///< balances above 4 x the mean and not otherwise
  bool sums_round_once = true; ///< of a codec: each rank rounds a value once, not once a step
  rounding codec = rounding::none;
  int value_bytes = 4;
  int index_bytes = 4;
  bool exact_size = true; ///< of the format: `entry_words()` times the entries is what a message holds
  /// The most bytes of so many entries of a gradient of this length, in one message.
  std::int64_t (*most_bytes)(std::int64_t entries, std::int64_t length) = nullptr;
  std::int64_t piece_bytes = 0; ///< the most that a message takes more for each piece that it is cut into
  std::string state_type;
  option_names has;

  double entry_words() const { return (value_bytes + index_bytes) / 4.0; }
  bool lossless() const { return codec == rounding::none; }
  /// Whether all that is selected contributes.
  bool all_contribute() const { return kind == family::topk_a || kind == family::topk_dsa || kind == family::dense; }
};

} // namespace oktopk_fuzz
