// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text.hpp"

#include "../device/errors.hpp"

#include <cstdlib>

namespace cuda_emulator {

ptx_type type_named(std::string_view name) {
  struct named {
    std::string_view name;
    ptx_type type;
  };
  static constexpr named table[] = {
      {"u8", ptx_type::u8},     {"s8", ptx_type::s8},         {"b8", ptx_type::u8},   {"u16", ptx_type::u16},
      {"s16", ptx_type::s16},   {"b16", ptx_type::u16},       {"u32", ptx_type::u32}, {"s32", ptx_type::s32},
      {"b32", ptx_type::u32},   {"u64", ptx_type::u64},       {"s64", ptx_type::s64}, {"b64", ptx_type::u64},
      {"f16", ptx_type::f16},   {"f32", ptx_type::f32},       {"f64", ptx_type::f64}, {"f16x2", ptx_type::f16x2},
      {"bf16", ptx_type::bf16}, {"pred", ptx_type::predicate}};
  for (named const& each : table) {
    if (each.name == name) {
      return each.type;
    }
  }
  return ptx_type::none;
}

u32 size_of(ptx_type type) {
  switch (type) {
  case ptx_type::none: return 0;
  case ptx_type::u8:
  case ptx_type::s8:
  case ptx_type::predicate: return 1;
  case ptx_type::u16:
  case ptx_type::s16:
  case ptx_type::f16:
  case ptx_type::bf16: return 2;
  case ptx_type::u32:
  case ptx_type::s32:
  case ptx_type::f32:
  case ptx_type::f16x2: return 4;
  default: return 8;
  }
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_space(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t const begin = text.find_first_not_of(" \t\r\n", at);
    if (begin == text.npos) {
      break;
    }
    at = std::min(text.find_first_of(" \t\r\n", begin), text.size());
    words.push_back(text.substr(begin, at - begin));
  }
  return words;
}

std::vector<std::string_view> items_of(std::string_view text) {
  std::vector<std::string_view> items;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    char const c = at < text.size() ? text[at] : ',';
    depth += c == '{' || c == '[' || c == '(' ? 1 : 0;
    depth -= c == '}' || c == ']' || c == ')' ? 1 : 0;
    if (at == text.size() || (c == ',' && depth == 0)) {
      items.push_back(trimmed(text.substr(begin, at - begin)));
      begin = at + 1;
    }
  }
  if (!items.empty() && items.back().empty()) {
    items.pop_back();
  }
  return items;
}

std::size_t closing_bracket(std::string_view text, std::size_t place) {
  char const open = text[place];
  char const close = open == '(' ? ')' : '}';
  int depth = 0;
  for (bool quoted = false; place < text.size(); ++place) {
    quoted = quoted != (text[place] == '"');
    if (!quoted) {
      depth += text[place] == open ? 1 : 0;
      depth -= text[place] == close ? 1 : 0;
      if (depth == 0) {
        return place;
      }
    }
  }
  stop("brackets of the PTX are not closed");
}

std::size_t find_outside_quotes(std::string_view text, char what, std::size_t place) {
  for (bool quoted = false; place < text.size(); ++place) {
    quoted = quoted != (text[place] == '"');
    if (!quoted && text[place] == what) {
      break;
    }
  }
  return place;
}

bool read_number(std::string_view text, ptx_type type, u64& bits) {
  bool const negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (negative || text.front() == '+')) {
    text.remove_prefix(1);
  }
  if (text.empty() || !is_digit(text.front())) {
    return false;
  }
  std::string const digits(text);
  char const kind = digits[0] == '0' && digits.size() > 1 ? static_cast<char>(std::tolower(digits[1])) : ' ';
  char* end = nullptr;
  if (kind == 'f' || kind == 'd') {
    bits = std::strtoull(digits.c_str() + 2, &end, 16);
    double number = kind == 'f' ? from_register<f32>(bits) : from_register<f64>(bits);
    number = negative ? -number : number;
    if (type == ptx_type::f32 || type == ptx_type::f64) { // bits of a NaN must not pass through arithmetic
      bool const same = (kind == 'f') == (type == ptx_type::f32) && !negative;
      bits = same ? bits : type == ptx_type::f32 ? to_register(static_cast<f32>(number)) : to_register(number);
    }
    return *end == '\0';
  }
  u64 const number = kind == 'b' ? std::strtoull(digits.c_str() + 2, &end, 2) : std::strtoull(digits.c_str(), &end, 0);
  while (*end == 'U' || *end == 'u') {
    ++end;
  }
  bits = negative ? 0 - number : number;
  return *end == '\0';
}

} // namespace cuda_emulator
