// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace oktopk {

namespace detail {

inline std::string trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\n\r";
  auto const first = text.find_first_not_of(blanks);
  return first == text.npos ? std::string()
                            : std::string(text.substr(first, text.find_last_not_of(blanks) - first + 1));
}

inline bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

} // namespace detail

/// Splits a list at its commas; a comma inside parentheses belongs to the item. Items are without blanks at the ends.
/// An empty text has no item.
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

/// An algorithm as a text names it: `NAME` or `NAME(KEY=VALUE, ...)`, blanks anywhere between words.
struct allreduce_request {
  std::string name;
  std::vector<std::pair<std::string, std::string>> options; ///< key and value, in the order given; each key once

  /// Throws `option_out_of_range` where the text has another form. Whether name, keys and values are known, the
  /// catalogue tells.
  static allreduce_request parse(std::string_view text) {
    auto const refuse = [&](std::string const& what) -> void {
      throw error(fault::option_out_of_range,
                  "\"" + std::string(text) + "\" " + what + "; an algorithm is NAME or NAME(KEY=VALUE, ...)");
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
    if (whole.back() != ')' || std::count(whole.begin(), whole.end(), '(') != 1 ||
        std::count(whole.begin(), whole.end(), ')') != 1) {
      refuse("has not one pair of parentheses at its end");
    }
    for (std::string const& item : split_list(whole.substr(open + 1, whole.size() - open - 2))) {
      std::size_t const equals = item.find('=');
      std::string const key = detail::trimmed(item.substr(0, equals));
      std::string const value = equals == item.npos ? std::string() : detail::trimmed(item.substr(equals + 1));
      if (!detail::is_word(key) || value.empty()) {
        refuse("has \"" + item + "\" where KEY=VALUE should be");
      }
      if (std::any_of(request.options.begin(), request.options.end(),
                      [&](auto const& known) { return known.first == key; })) {
        refuse("has the option " + key + " twice");
      }
      request.options.emplace_back(key, value);
    }
    return request;
  }
};

} // namespace oktopk
