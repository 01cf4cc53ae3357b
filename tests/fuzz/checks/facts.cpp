// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/case.hpp"

#include <oktopk/exchange/radix.hpp>

// What the checks know of the rules that a promise names.
namespace oktopk_fuzz {

double option_in(std::string const& text, std::string const& key) {
  auto const first = text.find("(" + key + " ");
  auto const at = first != text.npos ? first : text.find(" " + key + " ");
  return at == text.npos ? 0 : std::strtod(text.c_str() + at + key.size() + 2, nullptr);
}

choice rule_of(std::optional<oktopk::selection_promises> const& selector) {
  constexpr std::pair<std::string_view, choice> names[] = {
      {"exact", choice::exact},       {"foreseen", choice::exact},
      {"gaussian", choice::gaussian}, {"reused_threshold", choice::reused},
      {"chunked", choice::chunked},   {"gathered_threshold", choice::gathered}};
  for (auto const& [name, which] : names) {
    if (selector && policy_in(selector->rule) == name && option_in(selector->rule, "per_chunk") == 0) {
      return which;
    }
  }
  return selector ? choice::other : choice::none;
}

rounding facts::codec() const {
  constexpr std::pair<std::string_view, rounding> names[] = {{"bfloat16", rounding::bfloat16},
                                                             {"float16", rounding::float16},
                                                             {"block_float", rounding::block_float},
                                                             {"zfp", rounding::zfp}};
  for (auto const& [code, which] : names) {
    if (is_dense() && policy_in(promised.rounding) == code) {
      return which;
    }
  }
  return lossless() ? rounding::none : rounding::other;
}

bool facts::knows_selections() const {
  return !is_dense() && promised.sums != order::any && rule_of(promised.local) != choice::other;
}

std::vector<int> facts::cuts(int ranks, std::int64_t length, std::int64_t k) const {
  auto const number = [&](char const* key) { return static_cast<int>(option_in(promised.schedule, key)); };
  return policy_in(promised.schedule) == "radix"
             ? oktopk::radix({number("bucket"), number("radix")}).groups(ranks, length, k)
             : std::vector<int>();
}

} // namespace oktopk_fuzz
