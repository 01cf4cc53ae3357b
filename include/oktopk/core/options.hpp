// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

/// Options that describe themselves. A struct of options lists its members in one place:
///
///     template <class Options, class Visit>
///     static void each_option(Options& how, Visit& visit) {
///       visit("tau", how.tau, "iterations from one partition to the next", at_least(1));
///     }
///
/// The arguments are name, member, meaning and range. If the values of a member have names, its `option_names` come
/// before the meaning. The keys of texts (`catalogue/`), their list, and `describe()` and `problem()` of the policy
/// follow from it.
namespace oktopk {

namespace detail {

/// A policy that is made from its `options`. A requirement names the type, for as an argument alone Clang 23 takes a
/// private one, too.
template <class Policy>
concept made_from_options = requires { typename Policy::options; } && std::copyable<typename Policy::options> &&
                            std::constructible_from<Policy, typename Policy::options>;

/// Base of the bases of policies whose options are optional.
struct without_options {
  struct options {};

  static std::string problem() { return {}; }
};

/// Makes a policy from its options, if it has any.
template <class Policy>
Policy configured(typename Policy::options const& how) {
  if constexpr (std::is_same_v<typename Policy::options, without_options::options>) {
    return Policy();
  } else {
    return Policy(how);
  }
}

/// The values that a number may have; all, unless limits are given.
struct option_range {
  double low = -infinity<double>;
  double high = infinity<double>;
  std::string_view fault{}; ///< of a value outside, after "KEY = VALUE of POLICY "; made from the limits if empty
};

} // namespace detail

constexpr detail::option_range at_least(double low, std::string_view fault = {}) {
  return {low, detail::infinity<double>, fault};
}

constexpr detail::option_range between(double low, double high) {
  return {low, high};
}

/// The values of an option that has a name for each.
template <class T, std::size_t Count>
using option_names = std::array<std::pair<std::string_view, T>, Count>;

namespace detail {

inline constexpr option_names<bool, 2> names_of_bool{{{"true", true}, {"false", false}}};

template <class Number>
  requires std::is_arithmetic_v<Number>
std::string option_text(Number value) {
  if constexpr (std::is_same_v<Number, bool>) {
    return value ? "true" : "false";
  } else {
    std::array<char, 32> text{};
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
  }
}

template <class T, std::size_t Count>
std::string option_text(T const& value, option_names<T, Count> const& names, std::string_view = {}) {
  std::string text;
  for (auto const& [name, named] : names) {
    text = named == value ? std::string(name) : text;
  }
  return text;
}

/// A limit in a sentence: whole numbers without exponent.
inline std::string limit_text(double limit) {
  auto const whole = static_cast<std::int64_t>(limit);
  return static_cast<double>(whole) == limit ? option_text(whole) : option_text(limit);
}

inline std::string range_text(option_range const& range) {
  if (!is_finite(range.low)) {
    return {};
  }
  return is_finite(range.high) ? limit_text(range.low) + " to " + limit_text(range.high)
                               : "at least " + limit_text(range.low);
}

/// The name of an option in sentences: tau' for tau_prime.
inline std::string spelled(std::string_view key) {
  constexpr std::string_view prime = "_prime";
  return key.ends_with(prime) ? std::string(key.substr(0, key.size() - prime.size())) + "'" : std::string(key);
}

/// Visits options for `describe_options`. Inner policies describe their own options.
struct option_writer {
  std::string text;

  template <class T, class... About>
  void operator()(std::string_view key, T const& value, About const&... about) {
    if constexpr (std::is_arithmetic_v<T>) {
      add(key, option_text(value));
    } else if constexpr (std::is_enum_v<T>) {
      add(key, option_text(value, about...));
    }
  }

private:
  [[gnu::cold]] void add(std::string_view key, std::string const& value) {
    text += (text.empty() ? "" : ", ") + spelled(key) + " " + value;
  }
};

/// Visits options for `fault_of_options`.
struct option_checker {
  std::string policy;
  std::string fault{};

  template <class T, class... About>
  void operator()(std::string_view key, T const& value, About const&... about) {
    if constexpr (std::is_arithmetic_v<T> && sizeof...(About) == 2) {
      check(key, value, about...);
    }
  }

private:
  template <class Number>
  void check(std::string_view key, Number value, std::string_view, option_range const& range) {
    auto const number = static_cast<double>(value);
    // With -ffast-math a comparison with an infinite limit may be anything.
    bool const is_in = is_number(number) && (!is_finite(range.low) || number >= range.low) &&
                       (!is_finite(range.high) || number <= range.high);
    if (fault.empty() && !is_in) {
      fault = spelled(key) + " = " + option_text(value) + " of " + policy + " " +
              (is_number(number) ? because(range) : "is not a number");
    }
  }

  static std::string because(option_range const& range) {
    if (!range.fault.empty()) {
      return std::string(range.fault);
    }
    if (is_finite(range.high)) {
      return "is not between " + limit_text(range.low) + " and " + limit_text(range.high);
    }
    return range.low == 0 ? "is negative" : range.low == 1 ? "is not positive" : "is below " + limit_text(range.low);
  }
};

/// A policy's name and its options, for ranks to compare.
template <class Options>
[[gnu::cold]] std::string describe_options(std::string const& policy, Options const& how) {
  option_writer visit;
  Options::each_option(how, visit);
  return policy + " (" + visit.text + ")";
}

/// A sentence about the first option outside of its range; empty if there is none.
template <class Options>
[[gnu::cold]] std::string fault_of_options(std::string const& policy, Options const& how) {
  option_checker visit{policy};
  Options::each_option(how, visit);
  return visit.fault;
}

} // namespace detail
} // namespace oktopk
