// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The declarations of a module: functions, their parameters, variables. Bodies stay text until they are executed.

#include "../device/errors.hpp"
#include "program.hpp"
#include "text.hpp"

#include <cstdlib>

namespace cuda_emulator {

namespace {

// Nor with what stands in quotes.
std::string without_comments(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
      result += '\n';
    } else if (text[at] == '"') {
      at = std::min(text.find('"', at + 1), text.size());
    } else {
      result += text[at];
    }
  }
  return result;
}

// ".visible .func (.param .b32 result) name (.param .b64 one, .param .b64 other)"
void read_function(module& owner, std::string_view head, std::string_view body) {
  bool const is_kernel = head.find(".entry") != head.npos;
  head = head.substr(head.find(is_kernel ? ".entry" : ".func"));
  while (head.starts_with('.')) {
    head = trimmed(head.substr(std::min(head.find_first_of(spaces), head.size())));
  }
  u64 place = 0;
  auto const list = [&] {
    std::vector<variable> variables;
    std::size_t const end = head.starts_with('(') ? closing_bracket(head, 0) : 0;
    for (std::string_view const each : items_of(head.substr(0, end).substr(end != 0 ? 1 : 0))) {
      variable& read_here = variables.emplace_back(read_variable(each));
      read_here.address = aligned(place, std::max<u32>(read_here.alignment, 8));
      place = read_here.address + read_here.size;
    }
    head = trimmed(head.substr(end != 0 ? end + 1 : 0));
    return variables;
  };
  auto const results = list();
  std::string const name(head.substr(0, head.find_first_of(" \t\r\n(")));
  head = trimmed(head.substr(name.size()));
  std::unique_ptr<function>& found = owner.functions[name];
  if (!found) {
    found = std::make_unique<function>();
  }
  function& read_here = *found;
  read_here.owner = &owner;
  read_here.name = name;
  read_here.is_kernel = is_kernel;
  read_here.results = results;
  read_here.parameters = list();
  read_here.parameter_bytes = static_cast<u32>(place);
  constexpr std::string_view most_threads = ".maxntid"; // in up to three directions
  if (std::size_t const at = head.find(most_threads); at != head.npos) {
    std::string_view const numbers = head.substr(at + most_threads.size());
    read_here.most_threads = 1;
    for (std::string_view const each : items_of(numbers.substr(0, numbers.find('.')))) {
      read_here.most_threads *= static_cast<u32>(std::atoi(std::string(each).c_str()));
    }
  }
  if (!body.empty()) {
    read_here.body = body;
  }
}

} // namespace

// ".global .align 8 .u64 name[4] = {...}", ".param .u64 .ptr .align 1 name"; after ".ptr" stands the alignment of what it
// points to.
variable read_variable(std::string_view text) {
  variable result;
  std::size_t const equals = std::min(text.find('='), text.size());
  result.initial = text.substr(std::min(equals + 1, text.size()));
  text = text.substr(0, equals);
  u64 elements = 1;
  for (std::size_t at = text.find('['); at != text.npos; at = text.find('[', at + 1)) {
    elements *= std::strtoull(std::string(text.substr(at + 1)).c_str(), nullptr, 0); // 0 where it has no size
  }
  auto const words = words_of(text.substr(0, text.find('[')));
  for (std::size_t at = 0; at < words.size(); ++at) {
    std::string_view const word = words[at];
    if (word == ".align") {
      ++at;
      bool const of_pointee = words[at - 2] == ".ptr";
      result.alignment = of_pointee ? result.alignment : static_cast<u32>(std::atoi(std::string(words[at]).c_str()));
    } else if (word.front() != '.') {
      result.name = word;
    } else if (memory_space const space = space_named(word.substr(1)); space != memory_space::generic) {
      result.space = space;
    } else if (ptx_type const type = type_named(word.substr(1)); type != ptx_type::none) {
      result.type = type;
    }
  }
  result.size = size_of(result.type) * elements;
  result.alignment = std::max({1U, result.alignment, size_of(result.type)});
  return result;
}

void place_shared(variable& placed, module& owner) {
  if (placed.space == memory_space::shared) {
    placed.address = placed.size != 0 ? aligned(owner.shared_bytes, placed.alignment) : dynamic_shared;
    owner.shared_bytes = static_cast<u32>(placed.size != 0 ? placed.address + placed.size : owner.shared_bytes);
  }
}

void read(module& read_module) {
  if (read_module.is_read) {
    return;
  }
  read_module.is_read = true;
  std::string const whole = without_comments(read_module.text);
  for (std::string_view rest = trimmed(whole); !rest.empty(); rest = trimmed(rest)) {
    if (rest.starts_with(".version") || rest.starts_with(".target") || rest.starts_with(".address_size")) {
      rest.remove_prefix(std::min(rest.find('\n'), rest.size()));
      continue;
    }
    std::size_t const first = std::min(rest.find_first_of("{=;"), rest.size() - 1);
    bool const has_body = rest[first] == '{';
    std::size_t const end = has_body ? closing_bracket(rest, first) : std::min(rest.find(';'), rest.size() - 1);
    std::string_view const head = rest.substr(0, first);
    if (head.find(".func") != head.npos || head.find(".entry") != head.npos) {
      read_function(read_module, head, has_body ? rest.substr(first + 1, end - first - 1) : "");
    } else {
      variable found = read_variable(rest.substr(0, end));
      place_shared(found, read_module);
      if (head.find(".extern") == head.npos || read_module.variables.count(found.name) == 0) {
        read_module.variables[found.name] = found;
      }
    }
    rest.remove_prefix(end + 1);
  }
  read_module.shared_bytes = read_module.shared_by_all = static_cast<u32>(aligned(read_module.shared_bytes, 16));
  place_variables(read_module);
}

} // namespace cuda_emulator
