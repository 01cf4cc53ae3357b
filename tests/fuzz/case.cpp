// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/case.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>

namespace oktopk_fuzz {

/// What a bad option is put into.
struct spoilt {
  options& how;
  double& learning_rate;
  fuzz_case const& what;
  draws& draw;

  void size(std::optional<std::int64_t> k, std::optional<double> density) const {
    how.k = k;
    how.density = density;
  }
  template <class... T>
  auto one_of(T... choices) const {
    return draw.one_of<std::common_type_t<T...>>({choices...});
  }
};

/// What is wrong with the options of an object that must not be made.
struct bad_option {
  char const* name;
  oktopk::fault code;
  char const* of; ///< the option that an algorithm must have for it, if any
  void (*spoil)(spoilt at);
  bool (*fits)(facts const& about, fuzz_case const& what) = nullptr;

  bool of_one_rank() const { return code == oktopk::fault::ranks_disagree; }
};

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t most_int64 = std::numeric_limits<std::int64_t>::max();

void spoil_band(spoilt a, double& low, double& high) {
  if (a.draw.chance(0.5)) {
    low = a.one_of(-0.1, 1.1, nan);
  } else {
    high = a.one_of(0.9, nan);
  }
}

using enum oktopk::fault;

bad_option const bad_option_list[] = {
    {"negative length", option_out_of_range, nullptr,
     [](spoilt a) {
       a.how.length = -a.draw.between(1, 10);
       a.size({}, 0.5); // no k fits
     }},
    {"negative k", k_out_of_range, "k", [](spoilt a) { a.size(-a.draw.between(1, 5), {}); }},
    {"k beyond the length", k_out_of_range, "k",
     [](spoilt a) { a.size(a.how.length + a.one_of(1, 1000, most_int64 - a.how.length), {}); }},
    {"k and density", k_out_of_range, "k", [](spoilt a) { a.size(0, 0.5); }},
    {"no k", k_out_of_range, "k", [](spoilt a) { a.size({}, {}); }},
    {"density that is no number", density_out_of_range, "k", [](spoilt a) { a.size({}, nan); }},
    {"density of 0 or less", density_out_of_range, "k", [](spoilt a) { a.size({}, a.one_of(0.0, -0.5, -infinity)); }},
    {"density beyond 1", density_out_of_range, "k", [](spoilt a) { a.size({}, a.one_of(1.0000001, 50.0, infinity)); }},
    {"length beyond the index", index_overflow, nullptr,
     [](spoilt a) { a.how.length = std::numeric_limits<std::int32_t>::max() + a.draw.between(1, 1000); },
     [](facts const& about, fuzz_case const&) { return about.index_bytes == 4; }},
    {"tau", option_out_of_range, "tau", [](spoilt a) { a.how.tau = a.one_of(0, -3); }},
    {"rounds", option_out_of_range, "rounds", [](spoilt a) { a.how.rounds = -1; }},
    {"bucket", option_out_of_range, "bucket", [](spoilt a) { a.how.bucket = a.one_of(0, -4); }},
    {"ratio", option_out_of_range, "ratio", [](spoilt a) { a.how.ratio = a.one_of(0.5, nan, -1.0); }},
    {"local tau'", option_out_of_range, "local_tau_prime", [](spoilt a) { a.how.local_tau_prime = a.one_of(0, -1); }},
    {"local band", option_out_of_range, "local_low",
     [](spoilt a) { spoil_band(a, a.how.local_low, a.how.local_high); }},
    {"global tau'", option_out_of_range, "global_tau_prime",
     [](spoilt a) { a.how.global_tau_prime = a.one_of(0, -1); }},
    {"global band", option_out_of_range, "global_low",
     [](spoilt a) { spoil_band(a, a.how.global_low, a.how.global_high); }},
    {"codec rate", option_out_of_range, "codec_rate",
     [](spoilt a) { a.how.codec_rate = a.one_of(3, 17, 0, -8, 1000); }},
    {"segment", option_out_of_range, "segment", [](spoilt a) { a.how.segment = a.one_of(0, -1); }},
    {"chunks", option_out_of_range, "chunk_bytes",
     [](spoilt a) { (a.draw.chance(0.5) ? a.how.chunk_bytes = 3 : a.how.ahead = 0); }},
    {"learning rate", option_out_of_range, nullptr, [](spoilt a) { a.learning_rate = a.one_of(nan, infinity); },
     [](facts const&, fuzz_case const& what) { return what.calls_made != way::bare; }},
    {"other length", ranks_disagree, nullptr, [](spoilt a) { a.how.length += 1; }},
    {"other k", ranks_disagree, "k", [](spoilt a) { a.size(a.what.k > 0 ? a.what.k - 1 : 1, {}); },
     [](facts const&, fuzz_case const& what) { return what.how.length > 1; }},
    {"other tau", ranks_disagree, "tau", [](spoilt a) { a.how.tau = a.how.tau == 1 ? 2 : 1; }},
    {"other bucket", ranks_disagree, "bucket", [](spoilt a) { a.how.bucket = a.how.bucket == 1 ? 2 : 1; },
     [](facts const& about, fuzz_case const&) { return about.kind == family::ok_topk; }},
    {"other codec rate", ranks_disagree, "codec_rate",
     [](spoilt a) { a.how.codec_rate = a.how.codec_rate == 8 ? 9 : 8; }},
};

// Whether it can be put into a case of this algorithm.
bool fits(bad_option const& one, facts const& about, fuzz_case const& what) {
  return (one.of == nullptr || about.has(one.of)) && (what.ranks > 1 || !one.of_one_rank()) &&
         (one.fits == nullptr || one.fits(about, what));
}

int draw_ranks(draws& draw) {
  double const at = draw.real(0, 1);
  return static_cast<int>(at < 0.7 ? draw.between(1, 5) : at < 0.9 ? draw.between(6, 13) : draw.between(14, 33));
}

std::int64_t draw_length(draws& draw, int ranks) {
  double const at = draw.real(0, 1);
  return at < 0.4    ? draw.between(0, 40)
         : at < 0.7  ? draw.between(41, 400)
         : at < 0.93 ? draw.one_of({draw.between(401, 2500), std::int64_t(64) * ranks * draw.between(1, 12)})
                     : draw.between(2500, 20000);
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

shape const& shape_named(std::string_view name) {
  return *std::find_if(shapes().begin(), shapes().end(), [&](shape const& each) { return each.name == name; });
}

void draw_calls(draws& draw, fuzz_case& what) {
  bool const mixed_shapes = draw.chance(0.35);
  bool const poisoned = draw.chance(0.4);
  shape const* const theme = &draw.one_of(shapes());
  // The k-th sum is a high power of two, and then sums overflow.
  bool const ladder = draw.chance(0.05);
  int step = 0;
  for (planned_call& each : what.calls) {
    each.gradient = mixed_shapes ? &draw.one_of(shapes()) : theme;
    if (ladder) {
      each.gradient = &shape_named(step++ % 2 == 0 ? "one_power" : "near_overflow");
    }
    if (poisoned && draw.chance(0.35)) {
      each.spoilt = static_cast<poison>(draw.between(1, static_cast<std::int64_t>(poison::wrong_weights)));
    }
    each.scale = draw.chance(0.1) ? draw.one_of({1e-3, 10.0, 1e3}) : 1;
  }
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

void apply(limits const& within, facts const& about, fuzz_case& what) {
  auto const limit = [&](char const* name, std::int64_t drawn) {
    auto const at = within.find(name);
    return at == within.end() ? drawn : at->second;
  };
  auto const without = [&](char const* part) { return within.contains(part); };
  what.ranks = static_cast<int>(limit("ranks", what.ranks));
  auto const calls = static_cast<std::int64_t>(what.calls.size());
  what.calls.resize(static_cast<std::size_t>(std::min(calls, limit("calls", calls))));
  if (without("options")) {
    options const drawn = std::exchange(what.how, {});
    what.how.length = drawn.length;
    what.how.k = drawn.k;
    what.how.density = drawn.density;
    what.how.return_dropped = drawn.return_dropped;
  }
  if (within.contains("length") || within.contains("k")) {
    what.how.length = limit("length", what.how.length);
    what.k = std::min(limit("k", what.k), what.how.length);
    what.how.k = what.k;
    what.how.density.reset();
  }
  what.calls_made = without("sgd") ? way::bare : what.calls_made;
  what.feedback = what.feedback && !without("feedback");
  if (what.refused_first != nullptr && (without("refusal") || !fits(*what.refused_first, about, what))) {
    what.refused_first = nullptr;
  }
  what.replica_before = without("replica") ? -1 : what.replica_before;
  what.damage_before = without("damage") ? -1 : what.damage_before;
  what.file_before = without("file") ? -1 : what.file_before;
  for (planned_call& each : what.calls) {
    each.spoilt = without("poison") ? poison::none : each.spoilt;
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
  what.values = about.values;
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
  std::vector<bad_option const*> possible;
  for (bad_option const& each : bad_option_list) {
    if (fits(each, about, what)) {
      possible.push_back(&each);
    }
  }
  bad_option const* const which = draw.one_of(possible);
  what.refused_first = refusal ? which : nullptr;
  what.refused_on_one_rank = draw.chance(0.5);
  apply(within, about, what);
  return what;
}

std::string in_words(fuzz_case const& what) {
  constexpr char const* ways[] = {"each for itself", "by sgd", "by sgd with a hook", "by sgd, strided"};
  std::ostringstream text;
  text << what.ranks << " ranks" << (what.far ? " (staged)" : "") << ", n " << what.how.length << ", k " << what.k
       << ", " << what.calls.size() << " calls "
       << (what.feeds_back() ? "with residuals" : ways[static_cast<int>(what.calls_made)]) << " at rate "
       << what.learning_rate;
  for (auto const& [name, before] : {std::pair("new rate", what.new_rate_before),
                                     {"replica", what.replica_before},
                                     {"altered state", what.damage_before},
                                     {"damaged file", what.file_before}}) {
    text << (before < 0 ? "" : std::string(", ") + name + " before call " + std::to_string(before));
  }
  if (what.refused_first != nullptr) {
    text << ", bad " << what.refused_first->name << (what.refused_on_one_rank ? " on one rank" : " on all ranks");
  }
#define OKTOPK_FUZZ_TELL(type, name, value, member) text << ", " #name " " << what.how.name;
  OKTOPK_FUZZ_EACH_OPTION(OKTOPK_FUZZ_TELL)
#undef OKTOPK_FUZZ_TELL
  text << (what.how.by_message ? ", coded by message" : "") << "; shapes";
  for (planned_call const& each : what.calls) {
    text << " " << each.gradient->name << (each.spoilt == poison::none ? "" : "!");
  }
  return text.str();
}

bad_options refused_options(fuzz_case const& what, int rank) {
  bad_option const& which = *what.refused_first;
  bad_options made{what.how, what.learning_rate, which.code};
  draws draw(mixed({what.seed, 4}));
  if ((!what.refused_on_one_rank && !which.of_one_rank()) ||
      rank == static_cast<int>(draw.between(0, what.ranks - 1))) {
    which.spoil({made.how, made.learning_rate, what, draw});
  }
  return made;
}

} // namespace oktopk_fuzz
