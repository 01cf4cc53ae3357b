// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "decoder.hpp"

#include "../device/errors.hpp"
#include "../instructions/groups.hpp"

#include <algorithm>
#include <cstdlib>

namespace cuda_emulator {

namespace {

bool splits_offset(std::string_view text, std::string_view& base, i64& offset) {
  std::size_t const sign = text.find_first_of("+-", 1);
  base = trimmed(text.substr(0, sign));
  u64 bits = 0;
  if (sign != text.npos) {
    std::size_t const number = text[sign] == '+' ? sign + 1 : sign;
    if (!read_number(trimmed(text.substr(number)), ptx_type::u64, bits)) {
      return false;
    }
  }
  offset = static_cast<i64>(bits);
  return true;
}

std::string_view without_brackets(std::string_view text) {
  return trimmed(text.substr(1, text.size() - 2));
}

} // namespace

statement::statement(std::string_view text) : type(ptx_type::none) {
  if (text.front() == '@') {
    std::size_t const end = std::min(text.find_first_of(" \t\r\n"), text.size());
    guard = text.substr(1, end - 1);
    text = trimmed(text.substr(end));
  }
  std::size_t const end = std::min(text.find_first_of(" \t\r\n"), text.size());
  std::string_view head = text.substr(0, end);
  operands = items_of(text.substr(end));
  name = head.substr(0, head.find('.'));
  while (head.find('.') != head.npos) {
    head.remove_prefix(head.find('.') + 1);
    modifiers.push_back(head.substr(0, head.find('.')));
  }
  type = modifiers.empty() ? ptx_type::none : type_named(modifiers.back());
}

bool statement::has(std::string_view modifier) const {
  for (std::string_view const each : modifiers) {
    if (each == modifier) {
      return true;
    }
  }
  return false;
}

memory_space statement::space() const {
  for (std::string_view const each : modifiers) {
    std::string_view const word = each.substr(0, each.find("::")); // .shared::cta
    if (word == "global") {
      return memory_space::global;
    }
    if (word == "shared") {
      return memory_space::shared;
    }
    if (word == "local") {
      return memory_space::local;
    }
    if (word == "const") {
      return memory_space::constant;
    }
    if (word == "param") {
      return memory_space::parameter;
    }
  }
  return memory_space::generic;
}

decoder::decoder(function& decoded) : function_(decoded), module_(*decoded.owner) {
  function_.registers = special_count;
  scopes_.emplace_back();
  u32 place = 0;
  for (auto* const list : {&function_.results, &function_.parameters}) {
    for (parameter& each : *list) {
      if (!is_kernel()) { // in a frame; those of a kernel lie where the launch put them
        each.offset = aligned(place, std::max<u32>(each.alignment, 8));
        place = each.offset + each.size;
      }
      formal_[each.name] = each;
    }
  }
  scopes_.back().parameter_end = place;
  function_.call_bytes = place;
  function_.shared.begin = module_.shared_bytes;
}

operand decoder::constant(u64 bits) {
  auto const [place, is_new] = function_.constants.try_emplace(bits);
  if (is_new) {
    place->second.fill(bits);
  }
  operand result;
  result.kind = operand::kinds::constant;
  result.values = &place->second;
  return result;
}

bool decoder::find_register(std::string_view name, u32& index, bool& is_predicate) const {
  if (!name.empty() && name.front() == '%') {
    for (u32 k = 0; k < std::size(special_names); ++k) {
      if (name.substr(1) == special_names[k]) {
        index = k;
        is_predicate = false;
        function_.specials_used |= u32(1) << k;
        return true;
      }
    }
  }
  std::size_t digits = name.size();
  while (digits > 0 && is_digit(name[digits - 1])) {
    --digits;
  }
  std::string const whole(name);
  std::string const prefix(name.substr(0, digits));
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    auto found = scope->registers.find(whole);
    u32 number = 0;
    if (found == scope->registers.end() || found->second.count != 0) {
      found = scope->registers.find(prefix);
      number = static_cast<u32>(std::atoi(whole.c_str() + digits));
      if (found == scope->registers.end() || digits == name.size() || number >= found->second.count) {
        continue;
      }
    }
    index = found->second.first + number;
    is_predicate = found->second.is_predicate;
    return true;
  }
  return false;
}

bool decoder::source(std::string_view text, operand& read_here, ptx_type type) {
  read_here = operand();
  bool const negated = !text.empty() && text.front() == '!';
  text = trimmed(text.substr(negated ? 1 : 0));
  u64 bits = 0;
  bool is_predicate = false;
  if (find_register(text, read_here.index, is_predicate)) {
    read_here.kind = is_predicate ? operand::kinds::predicate : operand::kinds::value;
  } else if (read_number(text, type, bits)) {
    read_here = constant(bits);
  } else {
    std::string_view base;
    i64 offset = 0;
    if (text.empty() || !splits_offset(text, base, offset)) {
      return false;
    }
    variable const* const found = variable_named(base);
    function const* const callee = function_named(base);
    auto const formal = formal_.find(std::string(base));
    if (found != nullptr && found->space != memory_space::local) {
      bits = address_of(*found);
    } else if (callee != nullptr) {
      bits = callee->address;
    } else if (formal != formal_.end() && is_kernel()) {
      bits = formal->second.offset;
    } else {
      return false;
    }
    read_here = constant(bits + static_cast<u64>(offset));
  }
  read_here.negated = negated;
  return true;
}

bool decoder::destination(std::string_view text, u32& index) const {
  bool is_predicate = false;
  index = no_register;
  return text == "_" || find_register(text, index, is_predicate);
}

bool decoder::destination_with_predicate(std::string_view text, instruction& i) const {
  std::size_t const bar = text.find('|');
  return destination(trimmed(text.substr(0, bar)), i.destinations[0]) &&
         (bar == text.npos || destination(trimmed(text.substr(bar + 1)), i.predicate));
}

bool decoder::destinations(std::string_view text, instruction& i) const {
  if (text.front() != '{') {
    return destination(text, i.destinations[0]);
  }
  auto const items = items_of(without_brackets(text));
  i.width = static_cast<u8>(items.size());
  for (std::size_t k = 0; k < items.size(); ++k) {
    if (k == i.destinations.size() || !destination(items[k], i.destinations[k])) {
      return false;
    }
  }
  return true;
}

bool decoder::sources(std::string_view text, instruction& i, ptx_type type) {
  if (text.front() != '{') {
    return source(text, i.sources[0], type);
  }
  auto const items = items_of(without_brackets(text));
  i.width = static_cast<u8>(items.size());
  for (std::size_t k = 0; k < items.size(); ++k) {
    if (k == i.sources.size() || !source(items[k], i.sources[k], type)) {
      return false;
    }
  }
  return true;
}

// "[%rd1+8]", "[name]", "[1024]". The offset counts from a register, from 0, or where `flag` says so from the frame's
// local memory; a parameter of a call has the space parameter and the variant 1.
bool decoder::address(std::string_view text, instruction& i) {
  std::string_view base;
  if (text.size() < 3 || text.front() != '[' || !splits_offset(without_brackets(text), base, i.offset)) {
    return false;
  }
  bool is_predicate = false;
  u32 place = 0;
  u64 bits = 0;
  if (find_register(base, i.address.index, is_predicate)) {
    i.address.kind = operand::kinds::value;
  } else if (call_parameter(base, place)) {
    i.offset += place;
    i.space = memory_space::parameter;
    i.variant = is_kernel() && formal_.count(std::string(base)) != 0 ? 0 : 1;
  } else if (variable const* const found = variable_named(base)) {
    i.offset += static_cast<i64>(address_of(*found));
    i.flag = found->space == memory_space::local;
  } else if (read_number(base, ptx_type::u64, bits)) {
    i.offset += static_cast<i64>(bits);
  } else {
    return false;
  }
  return true;
}

bool decoder::usual(statement const& s, instruction& i, handler run, std::size_t count) {
  if (run == nullptr || s.operands.size() < count + 1 || !destination(s.operands[0], i.destinations[0])) {
    return false;
  }
  i.run = run;
  for (std::size_t k = 0; k < count; ++k) {
    if (!source(s.operands[k + 1], i.sources[k], s.type)) {
      return false;
    }
  }
  return true;
}

variable const* decoder::variable_named(std::string_view name) const {
  std::string const key(name);
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (auto const found = scope->variables.find(key); found != scope->variables.end()) {
      return &found->second;
    }
  }
  auto const found = module_.variables.find(key);
  return found == module_.variables.end() ? nullptr : &found->second;
}

u64 decoder::address_of(variable const& found) {
  bool const sized_by_launch = found.space == memory_space::shared && found.external && found.size == 0;
  return sized_by_launch ? dynamic_shared : found.address;
}

bool decoder::call_parameter(std::string_view name, u32& offset) const {
  std::string const key(name);
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (auto const found = scope->parameters.find(key); found != scope->parameters.end()) {
      offset = found->second;
      return true;
    }
  }
  auto const found = formal_.find(key);
  offset = found == formal_.end() ? 0 : found->second.offset;
  return found != formal_.end();
}

function* decoder::function_named(std::string_view name) const {
  auto const found = module_.functions.find(std::string(name));
  return found == module_.functions.end() ? nullptr : found->second.get();
}

void decoder::jump_to(std::string_view label) {
  jumps_.push_back({static_cast<u32>(function_.code.size()), std::string(label), scopes_.size(), -1});
}

void decoder::jump_by_table(std::string_view label) {
  table_jumps_.emplace_back(static_cast<u32>(function_.code.size()), std::string(label));
}

// ".reg .b32 %r<5>", ".reg .pred p, q"
void decoder::declare_registers(std::string_view text) {
  std::string_view const type = words_of(text)[1];
  bool const is_predicate = type == ".pred";
  u32& end = is_predicate ? function_.predicates : function_.registers;
  for (std::string_view const each : items_of(text.substr(text.find(type) + type.size()))) {
    std::size_t const bracket = each.find('<');
    bool const is_range = bracket != each.npos;
    u32 const count = is_range ? static_cast<u32>(std::atoi(std::string(each.substr(bracket + 1)).c_str())) : 0;
    scopes_.back().registers[std::string(each.substr(0, bracket))] = {end, count, is_predicate};
    end += is_range ? count : 1;
  }
}

void decoder::declare(std::string_view text) {
  auto const starts = [text](std::string_view word) { return text.substr(0, word.size()) == word; };
  scope& here = scopes_.back();
  if (starts(".reg")) {
    declare_registers(text);
  } else if (starts(".param")) {
    parameter const found = read_parameter(text);
    u32 const place = aligned(here.parameter_end, std::max<u32>(found.alignment, 8));
    here.parameters[found.name] = place;
    here.parameter_end = place + found.size;
    function_.call_bytes = std::max(function_.call_bytes, here.parameter_end);
  } else if (starts(".local")) {
    variable found = read_variable(text, nullptr);
    found.address = aligned(function_.local_bytes, found.alignment);
    function_.local_bytes = static_cast<u32>(found.address + found.size);
    here.variables[found.name] = found;
  } else if (starts(".shared")) {
    variable const found = read_variable(text, &module_.shared_bytes);
    here.variables[found.name] = found;
  }
}

void decoder::add(std::string_view text) {
  if (text.empty()) {
    return;
  }
  if (text.front() == '.') {
    declare(text);
    return;
  }
  statement const s(text);
  instruction i;
  using group = bool (*)(statement const&, decoder&, instruction&);
  static constexpr group groups[] = {decode_integer, decode_floating_point, decode_comparison,
                                     decode_move,    decode_memory,         decode_conversion,
                                     decode_control, decode_atomic,         decode_warp};
  bool known = false;
  for (group const decode_group : groups) {
    i = instruction();
    i.type = s.type;
    i.space = s.space();
    known = decode_group(s, *this, i);
    if (known) {
      break;
    }
  }
  if (!known) {
    i = instruction();
    i.step = step_kind::unknown;
  }
  if (!s.guard.empty()) {
    i.guard_negated = s.guard.front() == '!';
    u32 index = 0;
    if (!destination(s.guard.substr(i.guard_negated ? 1 : 0), index)) {
      i.step = step_kind::unknown;
    } else {
      i.guard = static_cast<i32>(index);
    }
  }
  i.text = text;
  function_.code.push_back(std::move(i));
}

// "$L__BB0_2:", also before the targets of a jump by table and the prototype of a call by pointer.
bool decoder::label(std::string_view& rest) {
  std::size_t end = 0;
  while (end < rest.size() && (std::isalnum(static_cast<unsigned char>(rest[end])) != 0 || rest[end] == '_' ||
                               rest[end] == '$' || rest[end] == '%')) {
    ++end;
  }
  std::string_view const after = trimmed(rest.substr(end));
  if (end == 0 || after.empty() || after.front() != ':' || after.substr(0, 2) == "::") {
    return false;
  }
  std::string const name(rest.substr(0, end));
  rest = trimmed(after.substr(1));
  constexpr std::string_view targets = ".branchtargets";
  std::size_t const stop_here = std::min(rest.find(';'), rest.size());
  if (rest.substr(0, targets.size()) == targets) {
    for (std::string_view const each : items_of(rest.substr(targets.size(), stop_here - targets.size()))) {
      tables_[name].emplace_back(each);
    }
    rest.remove_prefix(stop_here + 1);
  } else if (rest.substr(0, 14) == ".callprototype") {
    rest.remove_prefix(stop_here + 1);
  } else {
    scopes_.back().labels[name] = static_cast<u32>(function_.code.size());
  }
  return true;
}

// A label is known where it stands and within: others may have its name elsewhere, as assembly that is inlined twice
// has.
void decoder::end_scope() {
  scope const& ended = scopes_.back();
  auto const resolved = [&](jump const& each) {
    auto const found = ended.labels.find(each.label);
    if (each.depth < scopes_.size() || found == ended.labels.end()) {
      return false;
    }
    (each.entry < 0 ? function_.code[each.from].target
                    : function_.code[each.from].targets[static_cast<std::size_t>(each.entry)]) = found->second;
    return true;
  };
  std::erase_if(jumps_, resolved);
  for (jump& each : jumps_) {
    each.depth = std::min(each.depth, scopes_.size() - 1);
  }
  scopes_.pop_back();
}

void decoder::run() {
  std::string_view rest = trimmed(function_.body);
  while (!rest.empty()) {
    if (rest.front() == '{') {
      u32 const end = scopes_.back().parameter_end;
      scopes_.emplace_back().parameter_end = end;
      rest.remove_prefix(1);
    } else if (rest.front() == '}') {
      end_scope();
      rest.remove_prefix(1);
    } else if (rest.substr(0, 4) == ".loc" && is_space(rest[4])) {
      rest.remove_prefix(std::min(rest.find('\n'), rest.size()));
    } else if (!label(rest)) {
      std::size_t const end = find_outside_quotes(rest, ';', 0);
      add(trimmed(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    rest = trimmed(rest);
  }
  instruction last;
  last.step = is_kernel() ? step_kind::exit : step_kind::leave;
  last.text = "(end)";
  function_.code.push_back(std::move(last));
  for (auto const& [from, table] : table_jumps_) {
    for (std::string const& label : tables_[table]) {
      jumps_.push_back({from, label, 1, static_cast<i32>(function_.code[from].targets.size())});
      function_.code[from].targets.push_back(0);
    }
  }
  end_scope();
  if (!jumps_.empty()) {
    stop("no label %s in %s", jumps_.front().label.c_str(), function_.name.c_str());
  }
  function_.call_bytes = aligned(function_.call_bytes, 16);
  module_.shared_bytes = aligned(module_.shared_bytes, 16);
  function_.shared.end = module_.shared_bytes;
  if (module_.shared_bytes > dynamic_shared) {
    stop("the kernels of one translation unit have %u bytes of shared memory, which is too much", module_.shared_bytes);
  }
  function_.is_decoded = true;
}

void decode(function& decoded) {
  if (!decoded.is_decoded) {
    decoder(decoded).run();
  }
}

std::vector<range> const& shared_memory_of(function& kernel) {
  std::vector<range>& found = kernel.shared_in_all;
  if (!found.empty()) {
    return found;
  }
  module& owner = *kernel.owner;
  found.push_back({0, owner.shared_by_all}); // also where that is nothing
  std::vector<function*> reached{&kernel};
  auto const reach = [&reached](function* callee) {
    if (callee->has_body && std::find(reached.begin(), reached.end(), callee) == reached.end()) {
      reached.push_back(callee);
    }
  };
  for (std::size_t next = 0; next < reached.size(); ++next) {
    decode(*reached[next]);
    if (reached[next]->shared.begin != reached[next]->shared.end) {
      found.push_back(reached[next]->shared);
    }
    for (instruction const& i : reached[next]->code) {
      if (i.call != nullptr && i.call->callee != nullptr) {
        reach(i.call->callee);
      } else if (i.call != nullptr) { // by a pointer, to any of them
        for (auto const& [name, each] : owner.functions) {
          each->is_kernel ? void() : reach(each.get());
        }
      }
    }
  }
  return found;
}

} // namespace cuda_emulator
