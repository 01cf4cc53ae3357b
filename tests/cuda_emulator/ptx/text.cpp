// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text.hpp"

#include "../device/errors.hpp"

#include <cstdlib>
#include <string>

namespace cuda_emulator {

namespace {

int nesting(char c) {
  return c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
}

// The place of a name, or 0.
template <std::size_t Size>
std::size_t place_in(std::string_view const (&names)[Size], std::string_view name) {
  std::size_t place = Size - 1;
  while (place > 0 && names[place] != name) {
    --place;
  }
  return place;
}

} // namespace

ptx_type type_named(std::string_view name) {
  static constexpr std::string_view names[] = {"",    "u8",  "s8",  "u16", "s16", "u32",
                                               "s32", "u64", "s64", "f32", "f64", "pred"}; // as ptx_type has them
  return ptx_type(place_in(names, name.starts_with('b') ? 'u' + std::string(name.substr(1)) : name));
}

memory_space space_named(std::string_view name) {
  static constexpr std::string_view names[] = {"", "global", "const", "shared", "local", "param"}; // as memory_space
  return memory_space(place_in(names, name.substr(0, name.find("::"))));                           // .shared::cta
}

std::string_view trimmed(std::string_view text) {
  std::size_t const begin = std::min(text.find_first_not_of(spaces), text.size());
  return text.substr(begin, text.find_last_not_of(spaces) + 1 - begin);
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    words.push_back(text.substr(0, text.find_first_of(spaces)));
    text.remove_prefix(words.back().size());
  }
  return words;
}

std::vector<std::string_view> items_of(std::string_view text) {
  std::vector<std::string_view> items;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    char const c = at < text.size() ? text[at] : ',';
    depth += nesting(c);
    if (c == ',' && depth == 0) {
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
  for (int depth = 0; place < text.size(); ++place) {
    depth += nesting(text[place]);
    if (depth == 0) {
      return place;
    }
  }
  stop("brackets of the PTX are not closed");
}

bool read_number(std::string_view text, ptx_type type, u64& bits) {
  bool const negative = text.starts_with('-');
  text.remove_prefix(negative || text.starts_with('+') ? 1 : 0);
  if (text.empty() || text.front() < '0' || text.front() > '9') {
    return false;
  }
  std::string const digits(text);
  char const kind = digits[0] == '0' && digits.size() > 1 ? digits[1] : ' ';
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
  u64 const number = std::strtoull(digits.c_str(), &end, 0);
  bits = negative ? 0 - number : number;
  return *end == '\0' || std::string_view(end) == "U";
}

} // namespace cuda_emulator
