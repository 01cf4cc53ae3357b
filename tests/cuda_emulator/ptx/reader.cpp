// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The declarations of a module: functions, their parameters, variables. Bodies stay text until they are executed.

#include "../device/errors.hpp"
#include "program.hpp"
#include "text.hpp"

#include <cstdlib>

namespace cuda_emulator {

namespace {

constexpr u64 first_function = 0x740000000000;
constexpr u64 function_spacing = 16;

std::vector<function*>& functions_by_address() {
  static std::vector<function*> functions;
  return functions;
}

std::string without_comments(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    quoted = quoted != (text[at] == '"');
    std::string_view const two = text.substr(at, 2);
    if (!quoted && two == "//") {
      at = text.find('\n', at);
    } else if (!quoted && two == "/*") {
      at = text.find("*/", at) + 1;
    } else {
      result += text[at];
      continue;
    }
    if (at >= text.size()) {
      break;
    }
    result += text[at] == '\n' ? '\n' : ' ';
  }
  return result;
}

// The words of a declaration without its arrays: name, type and alignment.
struct declaration {
  std::string name;
  ptx_type type = ptx_type::none;
  u32 alignment = 0;
  u64 elements = 1;

  explicit declaration(std::string_view text) {
    for (std::size_t at = text.find('['); at != text.npos; at = text.find('[', at + 1)) {
      elements *= std::strtoull(std::string(text.substr(at + 1)).c_str(), nullptr, 0); // 0 where it has no size
    }
    auto const words = words_of(text.substr(0, text.find('[')));
    for (std::size_t at = 0; at < words.size(); ++at) {
      if (words[at] == ".align") {
        ++at;
        alignment = static_cast<u32>(std::atoi(std::string(words[at]).c_str()));
      } else if (words[at].front() != '.') {
        name = words[at];
      } else if (ptx_type const named = type_named(words[at].substr(1)); named != ptx_type::none) {
        type = named;
      }
    }
  }
};

std::vector<parameter> read_parameters(std::string_view text) {
  std::vector<parameter> result;
  for (std::string_view const each : items_of(text)) {
    result.push_back(read_parameter(each));
  }
  return result;
}

u32 lay_out(std::vector<parameter>& parameters) {
  u32 place = 0;
  for (parameter& each : parameters) {
    each.offset = aligned(place, each.alignment);
    place = each.offset + each.size;
  }
  return place;
}

// ".visible .func (.param .b32 result) name (.param .b64 one, .param .b64 other)"
void read_function(module& owner, std::string_view head, std::string_view const* body) {
  bool const is_kernel = head.find(".entry") != head.npos;
  head.remove_prefix(is_kernel ? head.find(".entry") + 6 : head.find(".func") + 5);
  head = trimmed(head);
  if (head.substr(0, 9) == ".noreturn") {
    head = trimmed(head.substr(9));
  }
  std::vector<parameter> results;
  if (head.front() == '(') {
    std::size_t const end = closing_bracket(head, 0);
    results = read_parameters(head.substr(1, end - 1));
    head = trimmed(head.substr(end + 1));
  }
  std::size_t const end_of_name = std::min(head.find_first_of(" \t\r\n("), head.size());
  std::string const name(head.substr(0, end_of_name));
  head = trimmed(head.substr(end_of_name));
  std::unique_ptr<function>& place = owner.functions[name];
  if (!place) {
    place = std::make_unique<function>();
    place->address = first_function + function_spacing * functions_by_address().size();
    functions_by_address().push_back(place.get());
  }
  function& read_here = *place;
  read_here.owner = &owner;
  read_here.name = name;
  read_here.is_kernel = is_kernel;
  read_here.results = results;
  read_here.parameters.clear();
  if (!head.empty() && head.front() == '(') {
    std::size_t const end = closing_bracket(head, 0);
    read_here.parameters = read_parameters(head.substr(1, end - 1));
    head = trimmed(head.substr(end + 1));
  }
  read_here.parameter_bytes = lay_out(read_here.parameters);
  constexpr std::string_view most_threads = ".maxntid"; // in up to three directions
  if (std::size_t const place = head.find(most_threads); place != head.npos) {
    std::string_view const numbers = head.substr(place + most_threads.size());
    read_here.most_threads = 1;
    for (std::string_view const each : items_of(numbers.substr(0, numbers.find('.')))) {
      read_here.most_threads *= static_cast<u32>(std::atoi(std::string(each).c_str()));
    }
  }
  if (body != nullptr) {
    read_here.body = *body;
    read_here.has_body = true;
  }
}

} // namespace

function* function_at(u64 address) {
  u64 const index = (address - first_function) / function_spacing;
  auto const& all = functions_by_address();
  return address >= first_function && index < all.size() ? all[index] : nullptr;
}

// ".param .align 8 .b8 name[104]"; after ".ptr" stands the alignment of what it points to.
parameter read_parameter(std::string_view text) {
  declaration const read_here(text);
  u32 const size = size_of(read_here.type);
  bool const of_pointee = text.find(".ptr") != text.npos;
  return {read_here.name, 0, static_cast<u32>(size * read_here.elements),
          std::max<u32>(1, read_here.alignment != 0 && !of_pointee ? read_here.alignment : size)};
}

// ".global .align 8 .u64 name[4] = {...}"
variable read_variable(std::string_view text, u32* shared_bytes) {
  std::size_t const equals = std::min(text.find('='), text.size());
  std::string_view const head = text.substr(0, equals);
  auto const says = [head](std::string_view word) { return head.find(word) != head.npos; };
  declaration const read_here(head);
  variable result;
  result.name = read_here.name;
  result.space = says(".shared")  ? memory_space::shared
                 : says(".const") ? memory_space::constant
                 : says(".local") ? memory_space::local
                                  : memory_space::global;
  result.type = read_here.type;
  result.size = size_of(read_here.type) * read_here.elements;
  result.alignment = std::max<u32>(1, read_here.alignment != 0 ? read_here.alignment : size_of(read_here.type));
  result.external = says(".extern");
  result.initial = equals < text.size() ? text.substr(equals + 1) : "";
  if (result.space == memory_space::shared && shared_bytes != nullptr && result.size != 0) {
    result.address = aligned(*shared_bytes, result.alignment);
    *shared_bytes = static_cast<u32>(result.address + result.size);
  }
  return result;
}

void read(module& read_module) {
  if (read_module.is_read) {
    return;
  }
  read_module.is_read = true;
  std::string const whole = without_comments(read_module.text);
  std::string_view rest = trimmed(whole);
  auto const starts = [&rest](std::string_view word) { return rest.substr(0, word.size()) == word; };
  while (!rest.empty() && rest.front() != '\0') {
    if (starts(".version") || starts(".target") || starts(".address_size") || starts(".file")) {
      rest.remove_prefix(std::min(rest.find('\n'), rest.size()));
    } else if (starts(".section")) {
      rest.remove_prefix(closing_bracket(rest, rest.find('{')) + 1);
    } else {
      std::size_t const end = std::min(find_outside_quotes(rest, ';', 0), rest.size());
      std::size_t const brace = std::min(find_outside_quotes(rest, '{', 0), rest.size());
      bool const is_function = rest.substr(0, std::min(end, brace)).find('=') == rest.npos && brace < end;
      std::string_view const head = rest.substr(0, is_function ? brace : end);
      bool const declares_function = head.find(".func") != head.npos || head.find(".entry") != head.npos;
      if (is_function) {
        std::size_t const close = closing_bracket(rest, brace);
        std::string_view const body = rest.substr(brace + 1, close - brace - 1);
        read_function(read_module, head, &body);
        rest.remove_prefix(close + 1);
      } else {
        if (declares_function) {
          read_function(read_module, head, nullptr);
        } else if (!starts(".pragma") && !starts(".alias")) {
          variable const found = read_variable(head, &read_module.shared_bytes);
          if (!found.external || read_module.variables.count(found.name) == 0) {
            read_module.variables[found.name] = found;
          }
        }
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
    rest = trimmed(rest);
  }
  read_module.shared_bytes = read_module.shared_by_all = aligned(read_module.shared_bytes, 16);
  place_variables(read_module);
}

} // namespace cuda_emulator
