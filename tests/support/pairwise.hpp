// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/catalogue/option_reader.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

// Texts of the catalogue, made from its own list of options: a new algorithm, policy or option stands in them without a
// line of a test.
namespace oktopk_tests {

/// An option of an algorithm in one place of a text, and the values that tests give it.
struct text_option {
  std::string key;
  std::string of{};                   ///< key of the choice that has it, such as `local`; empty: the algorithm has it
  std::vector<std::string> choices{}; ///< values of `of` with this option
  std::vector<std::string> values{};  ///< the default is the first
  std::string wrong{};                ///< a value that is refused; empty if there is none
};

/// What is chosen for each option of an algorithm: the position of a value; nothing if no choice has the option.
using chosen_values = std::vector<std::optional<std::size_t>>;

namespace detail {

template <class Number>
std::optional<Number> number_in_text(std::string const& text) {
  Number value{};
  auto const [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// The values of an option, as its description has them: names behind a colon; a range behind a comma, of which the ends
/// are taken and the default; or a number without a range. Choices that have the option may have different defaults.
inline void fill_values(text_option& option, oktopk::detail::listed_option const& listed) {
  auto const add = [&](std::string const& value) {
    if (!oktopk::detail::has(option.values, value)) {
      option.values.push_back(value);
    }
  };
  std::string const& about = listed.about;
  for (std::size_t begin = 0, end = 0; end != listed.value.npos; begin = end + 4) {
    end = listed.value.find(" or ", begin);
    add(listed.value.substr(begin, end - begin));
  }
  if (std::size_t const colon = about.rfind(": "); colon != about.npos) {
    auto const names = oktopk::detail::split_list(about.substr(colon + 2));
    if (oktopk::detail::has(names, option.values.front())) {
      std::for_each(names.begin(), names.end(), add);
      option.wrong = "no_such_value";
      return;
    }
  }
  auto const is = number_in_text<double>(option.values.front());
  if (!is) {
    return; // a text has its default alone
  }
  auto const written = [&](double value) { return oktopk::detail::limit_text(value); };
  std::string const range = about.substr(about.rfind(", ") == about.npos ? 0 : about.rfind(", ") + 2);
  std::string const at_least = "at least ";
  std::size_t const to = range.find(" to ");
  if (range.starts_with(at_least)) {
    double const low = number_in_text<double>(range.substr(at_least.size())).value();
    add(written(low));
    add(written(low + 2));
    add("2147483647"); // never, or without end
    option.wrong = written(low - 1);
  } else if (to != range.npos && number_in_text<double>(range.substr(0, to))) {
    add(range.substr(0, to));
    add(range.substr(to + 4));
    option.wrong = written(number_in_text<double>(range.substr(0, to)).value() - 1);
  } else {
    add("0");
    add("5");
  }
}

} // namespace detail

/// The options of an algorithm, a choice before the options that it has. Length, density and k are the program's, which
/// draws them anew for each object.
inline std::vector<text_option> options_of(oktopk::detail::listed_allreduce const& algorithm) {
  std::vector<text_option> all;
  for (auto const& listed : algorithm.options) {
    if (listed.key == "k" || listed.key == "density") {
      continue;
    }
    std::map<std::string, std::vector<std::string>> places; // the key of a choice, and its values with the option
    for (std::string const& choice : listed.goes_with) {
      std::size_t const equals = choice.find('=');
      places[choice.substr(0, equals)].push_back(choice.substr(equals + 1));
    }
    if (places.empty()) {
      places[""];
    }
    for (auto const& [of, choices] : places) {
      text_option one{.key = listed.key, .of = of, .choices = choices};
      detail::fill_values(one, listed);
      all.push_back(one);
    }
  }
  std::stable_partition(all.begin(), all.end(), [](text_option const& each) { return each.of.empty(); });
  return all;
}

namespace detail {

inline std::size_t place_of(std::vector<text_option> const& options, std::string const& key) {
  return static_cast<std::size_t>(
      std::find_if(options.begin(), options.end(),
                   [&](text_option const& each) { return each.of.empty() && each.key == key; }) -
      options.begin());
}

/// Whether what is chosen so far has this option.
inline bool is_there(std::vector<text_option> const& options, std::size_t which, chosen_values const& chosen) {
  text_option const& option = options[which];
  if (option.of.empty()) {
    return true;
  }
  std::size_t const parent = place_of(options, option.of);
  return chosen[parent] && oktopk::detail::has(option.choices, options[parent].values[*chosen[parent]]);
}

} // namespace detail

/// The text of an algorithm with these values; what is the default is left out.
inline std::string text_of(std::string const& name, std::vector<text_option> const& options,
                           chosen_values const& chosen) {
  std::string inside;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (!options[i].of.empty()) {
      continue;
    }
    std::string value = options[i].values[chosen[i].value()];
    std::string own;
    for (std::size_t j = 0; j < options.size(); ++j) {
      if (options[j].of == options[i].key && chosen[j].value_or(0) > 0) {
        own += (own.empty() ? "" : ", ") + options[j].key + "=" + options[j].values[*chosen[j]];
      }
    }
    if (*chosen[i] > 0 || !own.empty()) {
      inside += (inside.empty() ? "" : ", ") + options[i].key + "=" + value + (own.empty() ? "" : "(" + own + ")");
    }
  }
  return inside.empty() ? name : name + "(" + inside + ")";
}

/// Sets of values of an algorithm's options: each value of an option stands in one of them, and with `pairs` each two
/// values of two options that go together. The first has all defaults.
inline std::vector<chosen_values> covering(std::vector<text_option> const& options, bool pairs) {
  using part = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>; // option and value, option and value
  std::size_t const count = options.size();
  auto const begin_with = [&](std::vector<std::pair<std::size_t, std::size_t>> const& wanted) {
    std::optional<chosen_values> chosen(std::in_place, count);
    auto const set = [&](std::size_t i, std::size_t value) {
      bool const fits = !(*chosen)[i] || *(*chosen)[i] == value;
      (*chosen)[i] = value;
      return fits;
    };
    for (auto const& [i, value] : wanted) {
      if (!set(i, value)) {
        return std::optional<chosen_values>();
      }
    }
    for (auto const& [i, value] : wanted) { // choices that have the options
      if (options[i].of.empty()) {
        continue;
      }
      std::size_t const parent = detail::place_of(options, options[i].of);
      std::vector<std::string> common;
      for (std::string const& each : options[parent].values) {
        bool const fits = std::all_of(wanted.begin(), wanted.end(), [&](auto const& other) {
          text_option const& one = options[other.first];
          return one.of != options[i].of || oktopk::detail::has(one.choices, each);
        });
        if (fits) {
          common.push_back(each);
        }
      }
      if ((*chosen)[parent] ? !detail::is_there(options, i, *chosen) : common.empty()) {
        return std::optional<chosen_values>();
      }
      if (!(*chosen)[parent]) {
        auto const& values = options[parent].values;
        (*chosen)[parent] =
            static_cast<std::size_t>(std::find(values.begin(), values.end(), common.front()) - values.begin());
      }
    }
    return chosen;
  };
  std::set<part> missing;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t a = 0; a < options[i].values.size(); ++a) {
      missing.emplace(i, a, i, a);
      for (std::size_t j = i + 1; pairs && j < count; ++j) {
        for (std::size_t b = 0; b < options[j].values.size(); ++b) {
          if (begin_with({{i, a}, {j, b}})) {
            missing.emplace(i, a, j, b);
          }
        }
      }
    }
  }
  std::vector<chosen_values> all;
  // In an order of the options: a choice comes before the options that it has.
  auto const completed = [&](chosen_values chosen, std::vector<std::size_t> const& order, bool by_default) {
    std::vector<bool> set(count);
    for (std::size_t i = 0; i < count; ++i) {
      set[i] = chosen[i].has_value();
    }
    for (std::size_t const i : order) { // the value of most pairs that are missing
      if (set[i] || !detail::is_there(options, i, chosen)) {
        continue;
      }
      std::size_t best = 0;
      std::int64_t most = -1;
      for (std::size_t a = 0; a < (by_default ? 1 : options[i].values.size()); ++a) {
        std::int64_t gained = 0;
        for (std::size_t j = 0; j < count; ++j) {
          if (j == i) {
            gained += missing.contains({i, a, i, a}) ? 1 : 0;
          } else if (set[j]) {
            gained += missing.contains(j < i ? part(j, *chosen[j], i, a) : part(i, a, j, *chosen[j])) ? 1 : 0;
          }
        }
        // What other options need of this choice, too.
        for (std::size_t j = 0; j < count; ++j) {
          bool const has = options[j].of == options[i].key && options[i].of.empty() &&
                           oktopk::detail::has(options[j].choices, options[i].values[a]);
          for (std::size_t b = 0; has && b < options[j].values.size(); ++b) {
            for (std::size_t l = 0; l < count; ++l) {
              gained += l == j ? (missing.contains({j, b, j, b}) ? 1 : 0)
                        : set[l] && missing.contains(l < j ? part(l, *chosen[l], j, b) : part(j, b, l, *chosen[l])) ? 1
                                                                                                                    : 0;
            }
          }
        }
        if (gained > most) {
          most = gained;
          best = a;
        }
      }
      chosen[i] = best;
      set[i] = true;
    }
    return chosen;
  };
  auto const each_pair_of = [&](chosen_values const& chosen, auto const& action) {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = i; j < count; ++j) {
        if (chosen[i] && chosen[j]) {
          action(part(i, *chosen[i], j, *chosen[j]));
        }
      }
    }
  };
  std::vector<std::size_t> forwards(count);
  std::iota(forwards.begin(), forwards.end(), std::size_t(0));
  std::vector<std::size_t> backwards = forwards;
  auto const first_of_choices =
      std::find_if(options.begin(), options.end(), [](auto const& o) { return !o.of.empty(); });
  auto const parents = first_of_choices - options.begin();
  std::reverse(backwards.begin(), backwards.begin() + parents);
  std::reverse(backwards.begin() + parents, backwards.end());
  auto const complete = [&](chosen_values const& begun, bool by_default) {
    chosen_values best;
    std::int64_t most = -1;
    for (auto const& order : {forwards, backwards}) { // the one that has more of what is missing
      chosen_values candidate = completed(begun, order, by_default);
      std::int64_t gained = 0;
      each_pair_of(candidate, [&](part const& pair) { gained += missing.contains(pair) ? 1 : 0; });
      if (gained > most) {
        most = gained;
        best = std::move(candidate);
      }
    }
    each_pair_of(best, [&](part const& pair) { missing.erase(pair); });
    all.push_back(std::move(best));
  };
  complete(chosen_values(count), true);
  while (!missing.empty()) {
    auto const [i, a, j, b] = *missing.begin();
    complete(begin_with({{i, a}, {j, b}}).value(), false);
  }
  return all;
}

/// The texts of an algorithm; see `covering`.
inline std::vector<std::string> covering_texts(oktopk::detail::listed_allreduce const& algorithm, bool pairs) {
  auto const options = options_of(algorithm);
  std::vector<std::string> texts;
  for (chosen_values const& each : covering(options, pairs)) {
    texts.push_back(text_of(algorithm.name, options, each));
  }
  return texts;
}

} // namespace oktopk_tests
