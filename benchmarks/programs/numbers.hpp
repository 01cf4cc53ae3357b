// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

// Numbers of command lines, read alike by every program, and as the catalogue reads those of a scheme: to base 10 with a
// point, whatever the locale. CLI11's own reader takes 010 for 8, and 1'000 for a number since its version 2.4.
namespace oktopk_programs {

/// The number of the whole text; nothing for a text that is none, has a sign in front, or is too large.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  auto const* const end = text.data() + text.size();
  auto const [last, failure] = std::from_chars(text.data(), end, number);
  bool const good = failure == std::errc() && last == end && !text.starts_with('-');
  return good ? std::optional<Number>(number) : std::nullopt;
}

/// A whole number: its digits, or one with an exponent, as a double holds it exactly: 1e6 is 1000000, 016 is 16.
inline std::optional<std::uint64_t> whole_number_in(std::string_view text) {
  if (text.find_first_of("eE") == text.npos) {
    return number_in<std::uint64_t>(text);
  }
  auto const number = number_in<double>(text);
  bool const is_whole = number && *number == std::nearbyint(*number) && *number <= 0x1p53;
  return is_whole ? std::optional<std::uint64_t>(static_cast<std::uint64_t>(*number)) : std::nullopt;
}

/// For `transform` of an option: takes whole numbers of this range alone, and gives them to CLI11 without zeros in front.
/// Help shows a small range.
inline CLI::Validator whole_unsigned(std::uint64_t least, std::uint64_t most) {
  auto const read = [least, most](std::string& text) {
    auto const number = whole_number_in(text);
    if (!number || *number < least) {
      return text + " is no integer of at least " + std::to_string(least);
    }
    if (*number > most) {
      return text + " is more than " + std::to_string(most);
    }
    text = std::to_string(*number);
    return std::string();
  };
  return {read, most <= 1'000'000 ? std::to_string(least) + " to " + std::to_string(most) : std::string()};
}

/// The same for numbers of a signed type.
inline CLI::Validator whole(std::int64_t least, std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  return whole_unsigned(static_cast<std::uint64_t>(least), static_cast<std::uint64_t>(most));
}

/// For `check` of an option: takes finite numbers that `allowed` holds for; `what` ends the sentence about others.
inline CLI::Validator real(std::function<bool(double)> allowed, std::string what) {
  auto const check = [allowed = std::move(allowed), what = std::move(what)](std::string& text) {
    auto const number = number_in<double>(text);
    return number && std::isfinite(*number) && allowed(*number) ? std::string() : text + " is " + what;
  };
  return {check, std::string()};
}

/// The same for numbers over 0.
inline CLI::Validator positive() {
  return real([](double number) { return number > 0; }, "not a finite number over 0");
}

} // namespace oktopk_programs
