// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/refusal.hpp"

#include <limits>

namespace oktopk_fuzz {

bad_options refused_options(fuzz_case const& what, int rank) {
  bad_options made{what.how, what.learning_rate, oktopk::fault::option_out_of_range};
  options& how = made.how;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  draws draw(mixed({what.seed, 4}));
  bool const one_rank = what.refused_on_one_rank || what.refused_first >= bad_option::other_k;
  bool const spoilt = !one_rank || rank == static_cast<int>(draw.between(0, what.ranks - 1));
  auto const set = [&](auto& option, auto value) { option = spoilt ? value : option; };
  auto const set_density = [&](double value) {
    if (spoilt) {
      how.k.reset();
      how.density = value;
    }
  };
  auto const set_k = [&](std::int64_t value) {
    if (spoilt) {
      how.density.reset();
      how.k = value;
    }
  };
  switch (what.refused_first) {
  case bad_option::none: break;
  case bad_option::k_negative:
    set_k(-draw.between(1, 5));
    made.code = oktopk::fault::k_out_of_range;
    break;
  case bad_option::k_beyond:
    set_k(how.length + draw.one_of<std::int64_t>({1, 1000, std::numeric_limits<std::int64_t>::max() - how.length}));
    made.code = oktopk::fault::k_out_of_range;
    break;
  case bad_option::k_and_density:
    if (spoilt) {
      how.k = 0;
      how.density = 0.5;
    }
    made.code = oktopk::fault::k_out_of_range;
    break;
  case bad_option::no_k:
    if (spoilt) {
      how.k.reset();
      how.density.reset();
    }
    made.code = oktopk::fault::k_out_of_range;
    break;
  case bad_option::density_not_a_number: set_density(nan); break;
  case bad_option::density_zero: set_density(draw.one_of({0.0, -0.5, -std::numeric_limits<double>::infinity()})); break;
  case bad_option::density_beyond:
    set_density(draw.one_of({1.0000001, 50.0, std::numeric_limits<double>::infinity()}));
    break;
  case bad_option::length_negative:
    if (spoilt) {
      how.length = -draw.between(1, 10);
      set_density(0.5); // no k fits
    }
    break;
  case bad_option::length_beyond_index:
    if (spoilt) {
      how.length = std::numeric_limits<std::int32_t>::max() + draw.between(1, 1000);
    }
    made.code = oktopk::fault::index_overflow;
    break;
  case bad_option::tau: set(how.tau, draw.one_of<std::int64_t>({0, -3})); break;
  case bad_option::rounds: set(how.rounds, -1); break;
  case bad_option::bucket: set(how.bucket, draw.one_of({0, -4})); break;
  case bad_option::ratio: set(how.ratio, draw.one_of({0.5, nan, -1.0})); break;
  case bad_option::local_tau_prime: set(how.local_tau_prime, draw.one_of<std::int64_t>({0, -1})); break;
  case bad_option::global_tau_prime: set(how.global_tau_prime, draw.one_of<std::int64_t>({0, -1})); break;
  case bad_option::local_band:
    draw.chance(0.5) ? set(how.local_low, draw.one_of({-0.1, 1.1, nan})) : set(how.local_high, draw.one_of({0.9, nan}));
    break;
  case bad_option::global_band:
    draw.chance(0.5) ? set(how.global_low, draw.one_of({-0.1, 1.1, nan}))
                     : set(how.global_high, draw.one_of({0.9, nan}));
    break;
  case bad_option::rate: set(how.codec_rate, draw.one_of({3, 17, 0, -8, 1000})); break;
  case bad_option::segment: set(how.segment, draw.one_of<std::int64_t>({0, -1})); break;
  case bad_option::chunk:
    draw.chance(0.5) ? set(how.chunk_bytes, std::int64_t(3)) : set(how.ahead, std::int64_t(0));
    break;
  case bad_option::learning_rate:
    set(made.learning_rate, draw.one_of({nan, std::numeric_limits<double>::infinity()}));
    break;
  case bad_option::other_k: set_k(what.k > 0 ? what.k - 1 : 1); break;
  case bad_option::other_length: set(how.length, how.length + 1); break;
  case bad_option::other_tau: set(how.tau, how.tau == 1 ? std::int64_t(2) : std::int64_t(1)); break;
  case bad_option::other_bucket: set(how.bucket, how.bucket == 1 ? 2 : 1); break;
  case bad_option::other_rate: set(how.codec_rate, how.codec_rate == 8 ? 9 : 8); break;
  }
  if (what.refused_first >= bad_option::density_not_a_number && what.refused_first <= bad_option::density_beyond) {
    made.code = oktopk::fault::density_out_of_range;
  }
  if (what.refused_first >= bad_option::other_k) {
    made.code = oktopk::fault::ranks_disagree;
  }
  return made;
}

} // namespace oktopk_fuzz
