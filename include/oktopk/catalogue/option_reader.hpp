// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/catalogue/any_allreduce.hpp>
#include <oktopk/core/number_text.hpp>
#include <oktopk/core/options.hpp>

#include <algorithm>
#include <functional>
#include <list>
#include <tuple>
#include <utility>

namespace oktopk::detail {

inline bool is_word(std::string_view text) {
  constexpr std::string_view in_words = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  return !text.empty() && text.find_first_not_of(in_words) == text.npos;
}

/// True if the text ends with the parenthesis that closes its first one.
inline bool is_closed_at_end(std::string_view text) {
  int depth = 0;
  for (std::size_t at = text.find('('); at < text.size(); ++at) {
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    if (depth <= 0) {
      return at + 1 == text.size();
    }
  }
  return false;
}

/// Joins the names of a list, as `name_of` returns them, with a separator.
template <class List, class Name = std::identity>
std::string joined(List const& list, char const* separator = ", ", Name const& name_of = {}) {
  std::string text;
  for (auto const& each : list) {
    text += (text.empty() ? "" : separator) + std::invoke(name_of, each);
  }
  return text;
}

template <class... Alternatives>
std::vector<std::string> names_of(std::tuple<Alternatives...> const& list) {
  return std::apply([](auto const&... each) { return std::vector<std::string>{std::string(each.name)...}; }, list);
}

inline bool has(std::vector<std::string> const& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

/// Splits a list at its commas; a comma inside parentheses belongs to the item. Blanks at both ends of an item are
/// removed. An empty text has no item.
inline std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> items;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < list.size(); ++at) {
    depth += list[at] == '(' ? 1 : list[at] == ')' ? -1 : 0;
    if (list[at] == ',' && depth == 0) {
      items.push_back(detail::trimmed(list.substr(begin, at - begin)));
      begin = at + 1;
    }
  }
  if (std::string last = detail::trimmed(list.substr(begin)); !last.empty() || !items.empty()) {
    items.push_back(std::move(last));
  }
  return items;
}

/// An algorithm as a text names it: `NAME` or `NAME(KEY=VALUE, ...)`, blanks anywhere between words. The value of a
/// policy has the same form; NAME(NUMBER) stands for NAME(NAME=NUMBER) there.
struct allreduce_request {
  std::string name;
  std::vector<std::pair<std::string, std::string>> options; ///< key and value, in the order given; each key once

  /// Throws `option_out_of_range` if the text has another form. The catalogue checks if name, keys and values are
  /// known.
  static allreduce_request parse(std::string_view text, char const* kind = "an algorithm", bool of_policy = false) {
    auto const refuse = [&](std::string const& what) -> void {
      throw error(fault::option_out_of_range,
                  "\"" + std::string(text) + "\" " + what + "; " + kind + " is NAME or NAME(KEY=VALUE, ...)");
    };
    std::string const whole = detail::trimmed(text);
    std::size_t const open = whole.find('(');
    allreduce_request request;
    request.name = detail::trimmed(whole.substr(0, open));
    if (!detail::is_word(request.name)) {
      refuse(request.name.empty() ? "has no name" : "has no name of letters, digits and underscores");
    }
    if (open == whole.npos) {
      return request;
    }
    if (!detail::is_closed_at_end(whole)) {
      refuse("has not one pair of parentheses at its end");
    }
    for (std::string const& item : split_list(whole.substr(open + 1, whole.size() - open - 2))) {
      std::size_t const equals = item.find('=');
      bool const is_named = equals != item.npos || !of_policy || item.find_first_not_of("0123456789") != item.npos;
      std::string const key = is_named ? detail::trimmed(item.substr(0, equals)) : request.name;
      std::string const value = !is_named             ? item
                                : equals == item.npos ? std::string()
                                                      : detail::trimmed(item.substr(equals + 1));
      if (!detail::is_word(key) || value.empty()) {
        refuse("has \"" + item + "\" where KEY=VALUE should be");
      }
      if (request.find(key) != nullptr) {
        refuse("has the option " + key + " twice");
      }
      request.options.emplace_back(key, value);
    }
    return request;
  }

  /// The value of a key; null if the request does not have it.
  std::string const* find(std::string_view key) const {
    auto const found =
        std::find_if(options.begin(), options.end(), [&](auto const& each) { return each.first == key; });
    return found == options.end() ? nullptr : &found->second;
  }
};

/// Fills options from a request, and lists all options that there are.
///
/// Every option is offered with its key. It takes the value of the request if the request has the key, and keeps its
/// own value otherwise. The options of a chosen policy stand behind its name, `local=reused(tau_prime=16)`, or among
/// those of the algorithm if only one policy can be meant. A reader without a request visits all alternatives of every
/// choice: it makes the list of all options. Faults are an `error` (option_out_of_range) that lists the right keys or
/// values.
class option_reader {
public:
  /// One of the values of `choose`.
  struct choice {
    std::string name;
    std::function<void()> visit;
  };

  option_reader() = default;
  explicit option_reader(allreduce_request request) : request_(std::move(request)), reads_(true) {
    for (auto& [key, value] : request_.options) { // older names of keys
      std::string const now = key == "local_select" ? "local" : key == "global_select" ? "global" : key;
      if (now != key && request_.find(now) != nullptr) {
        throw error(fault::option_out_of_range, request_.name + " has the option " + now + " twice");
      }
      key = now;
    }
  }

  template <class Number>
    requires std::integral<Number> || std::floating_point<Number>
  void operator()(std::string_view key, Number& value, std::string_view about, option_range const& range = {}) {
    std::string const limits = detail::range_text(range);
    std::string const* const given =
        offer(key, detail::option_text(value), std::string(about) + (limits.empty() ? "" : ", ") + limits);
    if (given == nullptr) {
      return;
    }
    if (!read_number(*given, value)) {
      refuse(key, *given,
             std::integral<Number> ? "is no integer of " + std::to_string(8 * sizeof(Number)) + " bits"
                                   : std::string("is no number"));
    }
  }

  void operator()(std::string_view key, element_count& value, std::string_view about) {
    std::int64_t number = value;
    (*this)(key, number, about);
    value = number;
  }

  /// A number that may be missing, as "none" says, too. Returns true if the request has it.
  template <class Number>
  bool operator()(std::string_view key, std::optional<Number>& value, std::string_view about) {
    std::string const* const given = offer(key, "none", std::string(about));
    if (given == nullptr || *given == "none") {
      return false;
    }
    (*this)(key, value.emplace(), about);
    return true;
  }

  /// An option whose values have names.
  template <class T, std::size_t Count>
  void operator()(std::string_view key, T& value, option_names<T, Count> const& names, std::string_view about) {
    std::vector<choice> list;
    for (auto const& [name, named] : names) {
      list.push_back({std::string(name), [&value, chosen = named] { value = chosen; }});
    }
    if (std::string const* const given =
            offer(key, detail::option_text(value, names), std::string(about) + ": " + names_of(list))) {
      find_choice(key, list, *given).visit();
    }
  }

  /// A text; "none" is an empty one. Returns true if the request has it.
  bool operator()(std::string_view key, std::string& value, std::string_view about) {
    std::string const* const given = offer(key, value.empty() ? "none" : value, std::string(about));
    value = given == nullptr ? value : *given == "none" ? "" : *given;
    return given != nullptr;
  }

  void operator()(std::string_view key, bool& value, std::string_view about) {
    (*this)(key, value, detail::names_of_bool, about);
  }

  /// One of several alternatives: visits the chosen one, or all of them if the reader makes the list.
  void choose(std::string_view key, std::vector<choice> const& list, std::string_view by_default,
              std::string_view about) {
    std::string const* const given = offer(key, std::string(by_default), std::string(about) + ": " + names_of(list));
    if (!reads_) {
      visit_all(key, list);
      return;
    }
    place own{std::string(key), {given != nullptr ? *given : std::string(by_default), {}}, {}};
    if (own.request.name.find('(') != std::string::npos) {
      own.request = allreduce_request::parse(own.request.name, "a policy", true);
    }
    choice const& found = find_choice(key, list, own.request.name);
    places_.push_back(std::move(own));
    found.visit();
  }

  /// The same for a list of alternatives with a `name` each: `visit(alternative)`.
  template <class... Alternatives, class Visit>
  void choose(std::string_view key, std::tuple<Alternatives...> const& list, std::string_view by_default,
              std::string_view about, Visit const& visit) {
    std::apply(
        [&](auto const&... each) {
          choose(key, {choice{std::string(each.name), [&] { visit(each); }}...}, by_default, about);
        },
        list);
  }

  /// Calls `action`, which offers the options of the policy that was chosen with this key.
  template <class Action>
  void within(std::string_view key, Action const& action) {
    place* const outer = std::exchange(inside_, find_key(places_, key));
    action();
    inside_ = outer;
  }

  /// To be called when all options were offered. Refuses keys that no option has, and says which choice has the key.
  /// Refuses keys that could be meant for different policies. `offer_all(reader)` offers the same options again, to a
  /// reader that visits all choices.
  template <class OfferAll>
  void finish(OfferAll const& offer_all) const {
    auto const check = [&](std::string const& who, allreduce_request const& request,
                           std::vector<std::string> const& keys, char const* here) {
      for (auto const& [key, value] : request.options) {
        if (detail::has(keys, key)) {
          continue;
        }
        option_reader all;
        offer_all(all);
        auto const* const elsewhere = find_key(all.known_, key);
        if (elsewhere != nullptr && !elsewhere->goes_with.empty()) {
          throw error(fault::option_out_of_range,
                      request_.name + ": " + key + " goes with " + detail::joined(elsewhere->goes_with, " or "));
        }
        throw error(fault::option_out_of_range,
                    who + " has no option \"" + key + "\"" + here +
                        (keys.empty() ? ", nor any other" : "; it has " + detail::joined(keys)));
      }
    };
    std::vector<std::string> keys;
    for (listed_option const& each : known_) {
      keys.push_back(each.key);
    }
    check(request_.name, request_, keys, " here");
    for (place const& each : places_) {
      check(request_.name + ": " + each.text(), each.request, each.keys, "");
    }
    for (auto const& [key, value] : request_.options) {
      check_meaning(key, value);
    }
  }

  /// The name of the algorithm in the request.
  std::string const& name() const { return request_.name; }

  /// The options that were offered, each key once.
  std::vector<listed_option> const& known() const { return known_; }

private:
  /// A policy that was chosen: its key, its name and own options, and the keys that it has.
  struct place {
    std::string key;
    allreduce_request request;
    std::vector<std::string> keys;

    std::string text() const { return key + "=" + request.name; }
  };

  static std::string names_of(std::vector<choice> const& list) { return joined(list, ", ", &choice::name); }

  choice const& find_choice(std::string_view key, std::vector<choice> const& list, std::string const& name) const {
    auto const found = std::find_if(list.begin(), list.end(), [&](choice const& each) { return each.name == name; });
    if (found == list.end()) {
      refuse(key, name, "is unknown; there are " + names_of(list));
    }
    return *found;
  }

  void visit_all(std::string_view key, std::vector<choice> const& list) {
    std::string const begin = std::string(key) + "=";
    std::vector<listed_option> of_alternatives;
    for (choice const& each : list) {
      std::vector<listed_option> before = std::exchange(known_, {});
      each.visit();
      for (listed_option& option : known_) {
        if (option.goes_with.empty()) {
          option.goes_with.push_back(begin + each.name);
        }
        merge(of_alternatives, option);
      }
      known_ = std::move(before);
    }
    for (listed_option& option : of_alternatives) {
      auto const times = std::count_if(option.goes_with.begin(), option.goes_with.end(),
                                       [&](std::string const& each) { return each.starts_with(begin); });
      if (static_cast<std::size_t>(times) == list.size()) { // the choice does not matter
        option.goes_with.clear();
      }
      merge(known_, option);
    }
  }

  // Refuses an option of the algorithm that could be meant for different policies. One policy in several places is
  // allowed.
  void check_meaning(std::string const& key, std::string const& value) const {
    std::vector<std::string> takers;
    std::vector<std::string> right;
    bool one = true;
    for (place const& each : places_) {
      if (detail::has(each.keys, key)) {
        one = one && each.request.find(key) == nullptr &&
              (takers.empty() || takers.front().ends_with("=" + each.request.name));
        takers.push_back(each.text());
        right.push_back(each.text() + "(" + key + "=" + value + ")");
      }
    }
    if (!one) {
      throw error(fault::option_out_of_range, request_.name + ": " + key + " is an option of " +
                                                  detail::joined(takers, " and of ") + "; write " +
                                                  detail::joined(right));
    }
  }

  // Null if there is none.
  template <class List>
  static std::remove_reference_t<decltype(*std::declval<List&>().begin())>* find_key(List& list, std::string_view key) {
    auto const found = std::find_if(list.begin(), list.end(), [&](auto const& each) { return each.key == key; });
    return found == list.end() ? nullptr : &*found;
  }

  static void merge(std::vector<listed_option>& list, listed_option const& option) {
    auto* const known = find_key(list, option.key);
    if (known == nullptr) {
      list.push_back(option);
      return;
    }
    if ((" or " + known->value + " or ").find(" or " + option.value + " or ") == std::string::npos) {
      known->value += " or " + option.value; // by choice
    }
    if (option.goes_with.empty()) {
      known->goes_with.clear();
    } else if (!known->goes_with.empty()) {
      for (std::string const& choice : option.goes_with) {
        if (!detail::has(known->goes_with, choice)) {
          known->goes_with.push_back(choice);
        }
      }
    }
  }

  std::string const* offer(std::string_view key, std::string value, std::string about) {
    if (find_key(known_, key) == nullptr) {
      known_.push_back({std::string(key), std::move(value), std::move(about)});
    }
    if (inside_ != nullptr) {
      inside_->keys.emplace_back(key);
      if (std::string const* const own = inside_->request.find(key)) {
        return own;
      }
    }
    return request_.find(key);
  }

  [[noreturn]] void refuse(std::string_view key, std::string const& given, std::string const& why) const {
    throw error(fault::option_out_of_range, request_.name + ": " + std::string(key) + " = \"" + given + "\" " + why);
  }

  allreduce_request request_;
  bool reads_ = false; // else it makes the list
  std::vector<listed_option> known_;
  std::list<place> places_;
  place* inside_ = nullptr; // the place whose options are offered
};

} // namespace oktopk::detail
