// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/catalogue/request.hpp>
#include <oktopk/core/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace oktopk {

/// One option of an algorithm of the catalogue.
struct listed_option {
  std::string key;
  std::string value; ///< by default
  std::string about;
  std::vector<std::string> goes_with{}; ///< the choices that have it, such as `format=packed`; none where all have it
};

namespace detail {

/// Names separated by commas, or by something else.
inline std::string joined(std::vector<std::string> const& names, char const* separator = ", ") {
  std::string text;
  for (std::string const& each : names) {
    text += (text.empty() ? "" : separator) + each;
  }
  return text;
}

/// The names of a list of alternatives.
template <class... Alternatives>
std::vector<std::string> names_of(std::tuple<Alternatives...> const& list) {
  return std::apply([](auto const&... each) { return std::vector<std::string>{std::string(each.name)...}; }, list);
}

} // namespace detail

/// Fills options from a request, and writes down which options there are.
///
/// Every option is offered by its key: it takes the value of the request where that has the key, and keeps its own
/// otherwise. A reader without a request visits all alternatives of every choice: it makes the list of all options.
/// Faults are an `error` (option_out_of_range) that lists the right keys or values.
class option_reader {
public:
  option_reader() = default;
  explicit option_reader(allreduce_request request) : request_(std::move(request)), reads_(true) {}

  /// A number.
  template <class Number>
    requires std::integral<Number> || std::floating_point<Number>
  void operator()(std::string_view key, Number& value, std::string_view about) {
    std::string const* const given = offer(key, text_of(value), std::string(about));
    if (given == nullptr) {
      return;
    }
    auto const [end, failure] = std::from_chars(given->data(), given->data() + given->size(), value);
    if (failure != std::errc() || end != given->data() + given->size()) {
      refuse(key, *given,
             std::integral<Number> ? "is no integer of " + std::to_string(8 * sizeof(Number)) + " bits"
                                   : std::string("is no number"));
    }
  }

  /// A number that may be missing; gives whether the request has it.
  template <class Number>
  bool operator()(std::string_view key, std::optional<Number>& value, std::string_view about) {
    if (offer(key, "none", std::string(about)) == nullptr) {
      return false;
    }
    (*this)(key, value.emplace(), about);
    return true;
  }

  /// A value that has a name each.
  template <class T, std::size_t Count>
  void operator()(std::string_view key, T& value, std::array<std::pair<std::string_view, T>, Count> const& names,
                  std::string_view about) {
    std::vector<std::string> known;
    std::string own;
    for (auto const& [name, of_name] : names) {
      known.emplace_back(name);
      own = of_name == value ? std::string(name) : own;
    }
    if (std::string const* const given = offer(key, own, std::string(about) + ": " + detail::joined(known))) {
      auto const found =
          std::find_if(names.begin(), names.end(), [&](auto const& each) { return each.first == *given; });
      if (found == names.end()) {
        refuse(key, *given, "is unknown; there are " + detail::joined(known));
      }
      value = found->second;
    }
  }

  void operator()(std::string_view key, bool& value, std::string_view about) {
    constexpr std::array<std::pair<std::string_view, bool>, 2> names{{{"true", true}, {"false", false}}};
    (*this)(key, value, names, about);
  }

  /// One of several alternatives, each with a `name`: `visit(alternative)` for the chosen one.
  template <class... Alternatives, class Visit>
  void choose(std::string_view key, std::tuple<Alternatives...> const& list, std::string_view by_default,
              std::string_view about, Visit const& visit) {
    std::string const known = detail::joined(detail::names_of(list));
    std::string const* const given = offer(key, std::string(by_default), std::string(about) + ": " + known);
    std::string const chosen = given != nullptr ? *given : std::string(by_default);
    bool found = false;
    std::vector<listed_option> of_alternatives;
    auto const visit_if_chosen = [&](auto const& each) {
      if (!reads_) {
        std::vector<listed_option> before = std::exchange(known_, {});
        visit(each);
        for (listed_option& option : known_) {
          if (option.goes_with.empty()) {
            option.goes_with.push_back(std::string(key) + "=" + std::string(each.name));
          }
          merge(of_alternatives, option);
        }
        known_ = std::move(before);
      } else if (each.name == chosen) {
        found = true;
        visit(each);
      }
    };
    std::apply([&](auto const&... each) { (visit_if_chosen(each), ...); }, list);
    if (reads_ && !found) {
      refuse(key, chosen, "is unknown; there are " + known);
    }
    for (listed_option& option : of_alternatives) {
      auto const times =
          std::count_if(option.goes_with.begin(), option.goes_with.end(),
                        [&](std::string const& choice) { return choice.starts_with(std::string(key) + "="); });
      if (static_cast<std::size_t>(times) == sizeof...(Alternatives)) { // the choice does not matter
        option.goes_with.clear();
      }
      merge(known_, option);
    }
  }

  /// To be called when all options were offered: refuses keys of the request that none of them has, and says which
  /// choice has the key. `offer_all(reader)` offers the same options again, to a reader that visits all choices.
  template <class OfferAll>
  void finish(OfferAll const& offer_all) const {
    for (auto const& [key, value] : request_.options) {
      if (find(key) == nullptr) {
        option_reader all;
        offer_all(all);
        if (listed_option const* const elsewhere = all.find(key)) {
          throw error(fault::option_out_of_range,
                      request_.name + ": " + key + " goes with " + detail::joined(elsewhere->goes_with, " or "));
        }
        std::vector<std::string> keys;
        for (listed_option const& each : known_) {
          keys.push_back(each.key);
        }
        throw error(fault::option_out_of_range,
                    request_.name + " has no option \"" + key + "\" here" +
                        (keys.empty() ? ", nor any other" : "; it has " + detail::joined(keys)));
      }
    }
  }

  /// Of the algorithm that the request names.
  std::string const& name() const { return request_.name; }

  /// The options that were offered, each key once.
  std::vector<listed_option> const& known() const { return known_; }

private:
  template <class Number>
  static std::string text_of(Number value) {
    std::array<char, 32> text{};
    auto const end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    return {text.data(), end};
  }

  listed_option const* find(std::string_view key) const {
    auto const found =
        std::find_if(known_.begin(), known_.end(), [&](listed_option const& each) { return each.key == key; });
    return found == known_.end() ? nullptr : &*found;
  }

  static void merge(std::vector<listed_option>& list, listed_option const& option) {
    auto const known = std::find_if(list.begin(), list.end(), [&](auto const& each) { return each.key == option.key; });
    if (known == list.end()) {
      list.push_back(option);
    } else if (option.goes_with.empty()) {
      known->goes_with.clear();
    } else if (!known->goes_with.empty()) {
      for (std::string const& choice : option.goes_with) {
        if (std::find(known->goes_with.begin(), known->goes_with.end(), choice) == known->goes_with.end()) {
          known->goes_with.push_back(choice);
        }
      }
    }
  }

  std::string const* offer(std::string_view key, std::string value, std::string about) {
    if (find(key) == nullptr) {
      known_.push_back({std::string(key), std::move(value), std::move(about)});
    }
    if (reads_) {
      for (auto const& [name, given] : request_.options) {
        if (name == key) {
          return &given;
        }
      }
    }
    return nullptr;
  }

  [[noreturn]] void refuse(std::string_view key, std::string const& given, std::string const& why) const {
    throw error(fault::option_out_of_range, request_.name + ": " + std::string(key) + " = \"" + given + "\" " + why);
  }

  allreduce_request request_;
  bool reads_ = false; // else it lists
  std::vector<listed_option> known_;
};

} // namespace oktopk
