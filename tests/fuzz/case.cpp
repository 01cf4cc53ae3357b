// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/case.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace oktopk_fuzz {

namespace {

constexpr std::int64_t most_int64 = std::numeric_limits<std::int64_t>::max();

int draw_ranks(draws& draw) {
  double const at = draw.real(0, 1);
  if (at < 0.7) {
    return static_cast<int>(draw.between(1, 5));
  }
  return static_cast<int>(at < 0.9 ? draw.between(6, 13) : draw.between(14, 33));
}

std::int64_t draw_length(draws& draw, int ranks) {
  double const at = draw.real(0, 1);
  if (at < 0.4) {
    return draw.between(0, 40);
  }
  if (at < 0.7) {
    return draw.between(41, 400);
  }
  if (at < 0.93) {
    return draw.one_of({draw.between(401, 2500), std::int64_t(64) * ranks * draw.between(1, 12)});
  }
  return draw.between(2500, 20000);
}

std::int64_t draw_k(draws& draw, std::int64_t length, int ranks) {
  switch (draw.between(0, 9)) {
  case 0: return 0;
  case 1: return std::min<std::int64_t>(1, length);
  case 2: return length;
  case 3: return std::min<std::int64_t>(draw.between(0, ranks), length);
  case 4:
  case 5:
  case 6: return std::min<std::int64_t>(length, 1 + length / draw.between(5, 200));
  default: return draw.between(0, length);
  }
}

void draw_options(draws& draw, options& how) {
  if (draw.chance(0.6)) {
    how.tau = draw.one_of<std::int64_t>({1, 2, 3, 7, 64, most_int64});
    how.local_tau_prime = draw.one_of<std::int64_t>({1, 2, 3, 5, 32, most_int64});
    how.global_tau_prime = draw.one_of<std::int64_t>({1, 2, 3, 5, 32, most_int64});
  }
  if (draw.chance(0.5)) {
    how.rounds = draw.one_of({0, 1, 3, 5, 17});
    how.bucket = draw.one_of({1, 2, 3, 5, 40, std::numeric_limits<int>::max()});
  }
  if (draw.chance(0.5)) {
    how.ratio = draw.one_of({1.0, 1.5, 4.0, 1e9, std::numeric_limits<double>::infinity()});
    how.bound_sent = draw.chance(0.5);
    how.message_entries = draw.one_of<std::int64_t>({-1, 0, 1, 5, 2048, most_int64, -most_int64 - 1});
  }
  for (auto [low, high] : {std::pair(&how.local_low, &how.local_high), std::pair(&how.global_low, &how.global_high)}) {
    if (draw.chance(0.3)) {
      *low = draw.one_of({0.0, 0.3, 1.0});
      *high = draw.one_of({1.0, 1.1, 3.0, 1e300, std::numeric_limits<double>::infinity()});
    }
  }
  how.return_dropped = draw.chance(0.8);
  how.codec_rate = static_cast<int>(draw.chance(0.4) ? 8 : draw.between(4, 16));
  how.by_message = draw.chance(0.3);
  how.segment = draw.one_of<std::int64_t>({1, 63, 64, 100, 1000, std::int64_t(1) << 19, most_int64});
  how.cutoff_bytes = draw.one_of<std::int64_t>({0, 0, 0, 400, std::int64_t(1) << 19, most_int64, -most_int64});
  how.chunk_bytes = draw.one_of<std::int64_t>({8, 12, 64, 1000, std::int64_t(1) << 20, most_int64});
  how.ahead = draw.one_of<std::int64_t>({1, 2, 4, 100, most_int64});
}

shape draw_shape(draws& draw) {
  return static_cast<shape>(draw.between(0, static_cast<std::int64_t>(shape::all_exponents)));
}

void draw_calls(draws& draw, fuzz_case& what) {
  bool const mixed_shapes = draw.chance(0.35);
  bool const poisoned = draw.chance(0.4);
  shape const theme = draw_shape(draw);
  // The k-th sum is a high power of two, and then sums overflow.
  bool const ladder = draw.chance(0.05);
  int step = 0;
  for (planned_call& each : what.calls) {
    each.gradient = mixed_shapes ? draw_shape(draw) : theme;
    if (ladder) {
      each.gradient = step++ % 2 == 0 ? shape::one_power : shape::near_overflow;
    }
    if (poisoned && draw.chance(0.35)) {
      each.spoilt = static_cast<poison>(draw.between(1, static_cast<std::int64_t>(poison::wrong_weights)));
    }
    each.scale = draw.chance(0.1) ? draw.one_of({1e-3, 10.0, 1e3}) : 1;
  }
}

// What an object must refuse, of what the algorithm has.
bad_option draw_bad_option(draws& draw, facts const& about, fuzz_case const& what) {
  using enum bad_option;
  option_names const& has = about.has;
  std::vector<bad_option> possible{length_negative};
  auto const add = [&](bool there, std::initializer_list<bad_option> some) {
    possible.insert(possible.end(), some.begin(), there ? some.end() : some.begin());
  };
  add(has.k, {k_negative, k_beyond, k_and_density, no_k, density_not_a_number, density_zero, density_beyond});
  add(about.index_bytes == 4, {length_beyond_index});
  add(has.tau, {tau});
  add(has.rounds, {rounds});
  add(has.bucket, {bucket});
  add(has.ratio, {ratio});
  add(has.local_tau_prime, {local_tau_prime});
  add(has.local_band, {local_band});
  add(has.global_tau_prime, {global_tau_prime});
  add(has.global_band, {global_band});
  add(has.codec_rate, {rate});
  add(has.segment, {segment});
  add(has.chunks, {chunk});
  add(what.calls_made != way::bare, {learning_rate});
  bool const many = what.ranks > 1;
  add(many, {other_length});
  add(many && has.k && what.how.length > 1, {other_k});
  add(many && has.tau, {other_tau});
  add(many && has.bucket && about.kind == family::ok_topk, {other_bucket});
  add(many && has.codec_rate, {other_rate});
  return draw.one_of(possible);
}

// A case must not take long, however many ranks it has.
void keep_small(draws& draw, fuzz_case& what, bool many_calls) {
  std::int64_t const budget = draw.chance(0.05) ? 1'500'000 : 300'000;
  auto const calls = static_cast<std::int64_t>(what.calls.size());
  std::int64_t const most = std::max<std::int64_t>(budget / (what.ranks * calls), many_calls ? 40 : 10);
  if (what.how.length > most) {
    what.how.length = most - draw.between(0, most / 4);
  }
}

void apply(limits const& within, fuzz_case& what) {
  auto const has = [&](char const* name) {
    return std::find(within.without.begin(), within.without.end(), name) != within.without.end();
  };
  what.ranks = within.ranks > 0 ? within.ranks : what.ranks;
  if (within.calls > 0) {
    what.calls.resize(std::min(what.calls.size(), static_cast<std::size_t>(within.calls)));
  }
  if (has("options")) {
    options const defaults;
    options const drawn = what.how;
    what.how = defaults;
    what.how.length = drawn.length;
    what.how.k = drawn.k;
    what.how.density = drawn.density;
    what.how.return_dropped = drawn.return_dropped;
  }
  if (within.length >= 0 || within.k >= 0) {
    what.how.length = within.length >= 0 ? within.length : what.how.length;
    what.k = std::min(within.k >= 0 ? within.k : what.k, what.how.length);
    what.how.k = what.k;
    what.how.density.reset();
  }
  if (has("sgd")) {
    what.calls_made = way::bare;
  }
  if (has("feedback")) {
    what.feedback = false;
  }
  if (has("refusal") || (what.ranks == 1 && what.refused_first >= bad_option::other_k) ||
      (what.calls_made == way::bare && what.refused_first == bad_option::learning_rate)) {
    what.refused_first = bad_option::none;
  }
  what.replica_before = has("replica") ? -1 : what.replica_before;
  what.damage_before = has("damage") ? -1 : what.damage_before;
  what.file_before = has("file") ? -1 : what.file_before;
  for (planned_call& each : what.calls) {
    each.spoilt = has("poison") ? poison::none : each.spoilt;
  }
}

} // namespace

fuzz_case draw_case(facts const& about, std::uint64_t seed, std::uint64_t number, bool far, limits const& within) {
  fuzz_case what;
  what.seed = mixed({seed, number, std::uint64_t(0x6f6b746f)});
  for (char const letter : about.name) {
    what.seed = mixed({what.seed, static_cast<std::uint64_t>(letter)});
  }
  draws draw(what.seed);
  what.far = far;
  what.ranks = draw_ranks(draw);
  what.how.length = draw_length(draw, what.ranks);
  bool const many_calls = draw.chance(0.02);
  what.calls.resize(static_cast<std::size_t>(many_calls ? draw.between(66, 80) : draw.between(1, 8)));
  keep_small(draw, what, many_calls);
  what.k = draw_k(draw, what.how.length, what.ranks);
  draw_options(draw, what.how);
  if (many_calls) { // with the periods that are the defaults
    options const defaults;
    what.how.tau = defaults.tau;
    what.how.local_tau_prime = defaults.local_tau_prime;
    what.how.global_tau_prime = defaults.global_tau_prime;
  }
  what.how.by_message = what.how.by_message && about.codec != rounding::zfp; // it is not stable, and refused
  what.how.k = what.k;
  if (draw.chance(0.1)) {
    what.how.density = draw.chance(0.5) ? draw.real(0.0001, 1) : 0.01;
    what.how.k.reset();
    auto const wanted = static_cast<std::int64_t>(std::round(*what.how.density * static_cast<double>(what.how.length)));
    what.k = std::min(what.how.length, std::max<std::int64_t>(1, wanted));
  }
  draw_calls(draw, what);
  what.calls_made = draw.chance(0.5) ? way::bare : draw.one_of({way::fused, way::fused, way::hooked, way::strided});
  what.feedback = draw.chance(0.6);
  what.learning_rate = draw.one_of({1.0, 1.0, 0.1, -1.0, 0.0, 1e-3, 1e3});
  auto const some_call = [&](double p) {
    bool const there = draw.chance(p);
    auto const at = static_cast<int>(draw.between(0, static_cast<std::int64_t>(what.calls.size()) - 1));
    return there ? at : -1;
  };
  what.new_rate_before = some_call(0.2);
  what.replica_before = some_call(0.35);
  what.damage_before = some_call(0.2);
  what.file_before = some_call(0.2);
  bool const refusal = draw.chance(0.1);
  bad_option const which = draw_bad_option(draw, about, what);
  what.refused_first = refusal ? which : bad_option::none;
  what.refused_on_one_rank = draw.chance(0.5);
  apply(within, what);
  return what;
}

std::string in_words(fuzz_case const& what) {
  std::ostringstream text;
  text << what.ranks << " ranks" << (what.far ? " (staged)" : "") << ", n " << what.how.length << ", k " << what.k
       << ", " << what.calls.size() << " calls ";
  switch (what.calls_made) {
  case way::bare: text << (what.feedback ? "with residuals" : "each for itself"); break;
  case way::fused: text << "by sgd"; break;
  case way::hooked: text << "by sgd with a hook"; break;
  case way::strided: text << "by sgd, strided"; break;
  }
  if (what.calls_made != way::bare) {
    text << " at rate " << what.learning_rate;
  }
  auto const event = [&](char const* name, int before) {
    if (before >= 0) {
      text << ", " << name << " before call " << before;
    }
  };
  event("new rate", what.new_rate_before);
  event("replica", what.replica_before);
  event("altered state", what.damage_before);
  event("damaged file", what.file_before);
  if (what.refused_first != bad_option::none) {
    text << ", bad option " << static_cast<int>(what.refused_first)
         << (what.refused_on_one_rank ? " on one rank" : " on all ranks");
  }
  options const& how = what.how;
  text << "; tau " << how.tau << ", rounds " << how.rounds << ", bucket " << how.bucket << ", ratio " << how.ratio
       << (how.bound_sent ? ", bounded" : "") << ", message " << how.message_entries << ", local tau' "
       << how.local_tau_prime << " band " << how.local_low << " to " << how.local_high << ", global tau' "
       << how.global_tau_prime << " band " << how.global_low << " to " << how.global_high
       << (how.return_dropped ? "" : ", dropped are lost") << ", codec rate " << how.codec_rate
       << (how.by_message ? " by message" : "") << ", segment " << how.segment << ", cutoff " << how.cutoff_bytes
       << ", chunk " << how.chunk_bytes << ", ahead " << how.ahead << "; shapes";
  for (planned_call const& each : what.calls) {
    text << " " << static_cast<int>(each.gradient);
    if (each.spoilt != poison::none) {
      text << "!" << static_cast<int>(each.spoilt);
    }
  }
  return text.str();
}

bad_options refused_options(fuzz_case const& what, int rank) {
  using enum bad_option;
  using oktopk::fault;
  bad_option const which = what.refused_first;
  bad_options made{what.how, what.learning_rate,
                   which >= other_k                                           ? fault::ranks_disagree
                   : which == length_beyond_index                             ? fault::index_overflow
                   : which >= k_negative && which <= no_k                     ? fault::k_out_of_range
                   : which >= density_not_a_number && which <= density_beyond ? fault::density_out_of_range
                                                                              : fault::option_out_of_range};
  draws draw(mixed({what.seed, 4}));
  if ((what.refused_on_one_rank || which >= other_k) && rank != static_cast<int>(draw.between(0, what.ranks - 1))) {
    return made;
  }
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  options& how = made.how;
  auto const size = [&](std::optional<std::int64_t> k, std::optional<double> density) {
    how.k = k;
    how.density = density;
  };
  switch (which) {
  case none: break;
  case k_negative: size(-draw.between(1, 5), {}); break;
  case k_beyond: size(how.length + draw.one_of<std::int64_t>({1, 1000, most_int64 - how.length}), {}); break;
  case k_and_density: size(0, 0.5); break;
  case no_k: size({}, {}); break;
  case density_not_a_number: size({}, nan); break;
  case density_zero: size({}, draw.one_of({0.0, -0.5, -infinity})); break;
  case density_beyond: size({}, draw.one_of({1.0000001, 50.0, infinity})); break;
  case length_negative:
    how.length = -draw.between(1, 10);
    size({}, 0.5); // no k fits
    break;
  case length_beyond_index: how.length = std::numeric_limits<std::int32_t>::max() + draw.between(1, 1000); break;
  case tau: how.tau = draw.one_of<std::int64_t>({0, -3}); break;
  case rounds: how.rounds = -1; break;
  case bucket: how.bucket = draw.one_of({0, -4}); break;
  case ratio: how.ratio = draw.one_of({0.5, nan, -1.0}); break;
  case local_tau_prime: how.local_tau_prime = draw.one_of<std::int64_t>({0, -1}); break;
  case global_tau_prime: how.global_tau_prime = draw.one_of<std::int64_t>({0, -1}); break;
  case local_band:
  case global_band: {
    bool const local = which == local_band;
    if (draw.chance(0.5)) {
      (local ? how.local_low : how.global_low) = draw.one_of({-0.1, 1.1, nan});
    } else {
      (local ? how.local_high : how.global_high) = draw.one_of({0.9, nan});
    }
    break;
  }
  case rate: how.codec_rate = draw.one_of({3, 17, 0, -8, 1000}); break;
  case segment: how.segment = draw.one_of<std::int64_t>({0, -1}); break;
  case chunk: draw.chance(0.5) ? how.chunk_bytes = 3 : how.ahead = 0; break;
  case learning_rate: made.learning_rate = draw.one_of({nan, infinity}); break;
  case other_k: size(what.k > 0 ? what.k - 1 : 1, {}); break;
  case other_length: how.length += 1; break;
  case other_tau: how.tau = how.tau == 1 ? 2 : 1; break;
  case other_bucket: how.bucket = how.bucket == 1 ? 2 : 1; break;
  case other_rate: how.codec_rate = how.codec_rate == 8 ? 9 : 8; break;
  }
  return made;
}

} // namespace oktopk_fuzz
