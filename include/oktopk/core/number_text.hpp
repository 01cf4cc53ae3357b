// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/version.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <limits>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

// Numbers in texts and sentences, the same for every locale that the program has set.
namespace oktopk::detail {

/// A text in parts: 1000.5 has a point and no other mark in it. So ranks compare the same text, and every program reads it.
class plain_text : public std::ostringstream {
public:
  plain_text() { imbue(std::locale::classic()); }
};

/// A number with six decimals, as `std::to_string` writes it without a locale.
inline std::string decimal_text(double number) {
  std::array<char, std::numeric_limits<double>::max_exponent10 + 16> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed, 6).ptr};
}

/// The text without the blanks at its ends.
inline std::string trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\n\r";
  auto const first = text.find_first_not_of(blanks);
  return first == text.npos ? std::string()
                            : std::string(text.substr(first, text.find_last_not_of(blanks) - first + 1));
}

/// Reads a number that is the whole text: `5`, `005`, `+5`, `-5`; of an integer type also a whole number with an exponent
/// up to 2^53, `1e6`; else also `.5`, `5.` and `5e-3`. False, with `number` as before, for any other text and for a number
/// that the type does not hold.
template <class Number>
bool read_number(std::string_view text, Number& number) {
  bool const has_plus = text.size() > 1 && text[0] == '+' && text[1] != '-';
  text.remove_prefix(has_plus ? 1 : 0);
  char const* const end = text.data() + text.size();
  if constexpr (requires { std::from_chars(end, end, number); }) {
    Number read{};
    auto const [last, failure] = std::from_chars(text.data(), end, read);
    if (failure == std::errc() && last == end) {
      number = read;
      return true;
    }
  } else if (text.find_first_not_of("0123456789+-.eE") == text.npos) { // libc++ before 20 has no from_chars for it
    std::istringstream in{std::string(text)};
    in.imbue(std::locale::classic());
    Number read{};
    if (in >> read && in.peek() == std::istringstream::traits_type::eof()) {
      number = read;
      return true;
    }
  }
  if constexpr (std::is_integral_v<Number>) {
    double whole = 0;
    if (text.find_first_of("eE") != text.npos && read_number(text, whole) && whole == std::floor(whole) &&
        std::abs(whole) <= 0x1p53 && whole >= static_cast<double>(std::numeric_limits<Number>::min()) &&
        whole <= static_cast<double>(std::numeric_limits<Number>::max())) {
      number = static_cast<Number>(whole);
      return true;
    }
  }
  return false;
}

} // namespace oktopk::detail
