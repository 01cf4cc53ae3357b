// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/case.hpp"

#include "support/pairwise.hpp"

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
  facts const& about;
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
  bool of_k; ///< whether it is the k of an algorithm
  void (*spoil)(spoilt at);
  bool (*fits)(facts const& about, fuzz_case const& what) = nullptr;
  bool on_all_ranks = false;

  bool of_one_rank() const { return code == oktopk::fault::ranks_disagree; }
};

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t most_int64 = std::numeric_limits<std::int64_t>::max();

/// An option in the text of a subject, with its values and one that is refused; none where the text has no options.
struct option_in_text {
  std::string key;
  std::string value;
  oktopk_tests::text_option of;
};

std::vector<option_in_text> const& options_in(std::string const& text) {
  static std::map<std::string, std::vector<option_in_text>> known;
  auto const [at, is_new] = known.try_emplace(text);
  std::vector<option_in_text>& found = at->second;
  if (!is_new) {
    return found;
  }
  auto const request = oktopk::detail::allreduce_request::parse(text);
  for (auto const& algorithm : oktopk::list_allreduces()) {
    if (algorithm.name != request.name) {
      continue;
    }
    for (oktopk_tests::text_option const& each : oktopk_tests::options_of(algorithm)) {
      if (each.of.empty() && each.values.size() > 1) {
        std::string const* const given = request.find(each.key);
        found.push_back({each.key, given == nullptr ? each.values.front() : *given, each});
      }
    }
  }
  return found;
}

/// The text with another value of an option of the algorithm.
std::string changed(std::string const& text, std::string const& key, std::string const& value) {
  auto const request = oktopk::detail::allreduce_request::parse(text);
  std::string inside = key + "=" + value;
  for (auto const& [other, its] : request.options) {
    inside += other == key ? "" : ", " + other + "=" + its;
  }
  return request.name + "(" + inside + ")";
}

// A value that is refused, or another one than the subject's.
void spoil_text(spoilt a, bool refused) {
  std::vector<std::string> possible;
  for (option_in_text const& each : options_in(a.about.name)) {
    for (std::string const& value : each.of.values) {
      if (!refused && value != each.value.substr(0, each.value.find('('))) {
        possible.push_back(changed(a.about.name, each.key, value));
      }
    }
    if (refused && !each.of.wrong.empty()) {
      possible.push_back(changed(a.about.name, each.key, each.of.wrong));
    }
  }
  a.how.text = a.draw.one_of(possible);
}

bool has_options(facts const& about, fuzz_case const&) {
  return about.has_text && !options_in(about.name).empty();
}

bool has_refusable(facts const& about, fuzz_case const& what) {
  return has_options(about, what) &&
         std::ranges::any_of(options_in(about.name), [](option_in_text const& each) { return !each.of.wrong.empty(); });
}

using enum oktopk::fault;

bad_option const bad_option_list[] = {
    {"negative length", option_out_of_range, false,
     [](spoilt a) {
       a.how.length = -a.draw.between(1, 10);
       a.size({}, 0.5); // no k fits
     }},
    {"negative k", k_out_of_range, true, [](spoilt a) { a.size(-a.draw.between(1, 5), {}); }},
    {"k beyond the length", k_out_of_range, true,
     [](spoilt a) { a.size(a.how.length + a.one_of(1, 1000, most_int64 - a.how.length), {}); }},
    {"k and density", k_out_of_range, true, [](spoilt a) { a.size(0, 0.5); }},
    {"no k", k_out_of_range, true, [](spoilt a) { a.size({}, {}); }},
    {"density that is no number", density_out_of_range, true, [](spoilt a) { a.size({}, nan); }},
    {"density of 0 or less", density_out_of_range, true, [](spoilt a) { a.size({}, a.one_of(0.0, -0.5, -infinity)); }},
    {"density beyond 1", density_out_of_range, true, [](spoilt a) { a.size({}, a.one_of(1.0000001, 50.0, infinity)); }},
    {"length beyond the index", index_overflow, false,
     [](spoilt a) { a.how.length = std::numeric_limits<std::int32_t>::max() + a.draw.between(1, 1000); },
     [](facts const& about, fuzz_case const&) { return about.index_bytes == 4; }},
    {"option of the text", option_out_of_range, false, [](spoilt a) { spoil_text(a, true); }, has_refusable,
     true}, // else the texts differ as well
    {"learning rate", option_out_of_range, false, [](spoilt a) { a.learning_rate = a.one_of(nan, infinity); },
     [](facts const&, fuzz_case const& what) { return what.calls_made != way::bare; }},
    {"other length", ranks_disagree, false, [](spoilt a) { a.how.length += 1; }},
    {"other k", ranks_disagree, true, [](spoilt a) { a.size(a.what.k > 0 ? a.what.k - 1 : 1, {}); },
     [](facts const&, fuzz_case const& what) { return what.how.length > 1; }},
    {"other option of the text", ranks_disagree, false, [](spoilt a) { spoil_text(a, false); }, has_options},
};

// Whether it can be put into a case of this algorithm.
bool fits(bad_option const& one, facts const& about, fuzz_case const& what) {
  return (!one.of_k || !about.is_dense()) && (what.ranks > 1 || !one.of_one_rank()) &&
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
                                     {"altered state", what.damage_before}}) {
    text << (before < 0 ? "" : std::string(", ") + name + " before call " + std::to_string(before));
  }
  if (what.refused_first != nullptr) {
    text << ", bad " << what.refused_first->name << (what.refused_on_one_rank ? " on one rank" : " on all ranks");
  }
  text << "; shapes";
  for (planned_call const& each : what.calls) {
    text << " " << each.gradient->name << (each.spoilt == poison::none ? "" : "!");
  }
  return text.str();
}

bad_options refused_options(facts const& about, fuzz_case const& what, int rank) {
  bad_option const& which = *what.refused_first;
  bad_options made{what.how, what.learning_rate, which.code};
  draws draw(mixed({what.seed, 4}));
  if (which.on_all_ranks || (!what.refused_on_one_rank && !which.of_one_rank()) ||
      rank == static_cast<int>(draw.between(0, what.ranks - 1))) {
    which.spoil({made.how, made.learning_rate, about, what, draw});
  }
  return made;
}

} // namespace oktopk_fuzz
