// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "decoder.hpp"

#include "../device/errors.hpp"

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

// "{%r1, %r2}" or one: read(item, k) for each, of which there are up to four.
template <typename Read>
bool read_vector(std::string_view text, u8& width, Read const& read) {
  if (!text.starts_with('{')) {
    return read(text, 0);
  }
  auto const items = items_of(without_brackets(text));
  width = static_cast<u8>(items.size());
  bool known = items.size() <= 4;
  for (std::size_t k = 0; k < items.size() && known; ++k) {
    known = read(items[k], k);
  }
  return known;
}

} // namespace

statement::statement(std::string_view text) : type(ptx_type::none) {
  if (text.front() == '@') {
    std::size_t const end = std::min(text.find_first_of(spaces), text.size());
    guard = text.substr(1, end - 1);
    text = trimmed(text.substr(end));
  }
  std::size_t const end = std::min(text.find_first_of(spaces), text.size());
  std::string_view head = text.substr(0, end);
  operands = items_of(text.substr(end));
  name = head.substr(0, head.find('.'));
  while (head.find('.') != head.npos) {
    head.remove_prefix(head.find('.') + 1);
    modifiers.push_back(head.substr(0, head.find('.')));
  }
  type = modifiers.empty() ? ptx_type::none : type_named(modifiers.back());
}

memory_space statement::space() const {
  memory_space found = memory_space::generic;
  for (std::string_view const each : modifiers) {
    found = found != memory_space::generic ? found : space_named(each);
  }
  return found;
}

// The parameters of a kernel lie where the launch has put them, those of another function in its frame.
decoder::decoder(function& decoded) : function_(decoded), module_(*decoded.owner) {
  scope& outermost = scopes_.emplace_back();
  for (std::string_view const name : special_names) {
    outermost.registers['%' + std::string(name)] = {function_.registers++, false};
  }
  for (auto* const list : {&function_.results, &function_.parameters}) {
    for (variable each : *list) {
      each.space = is_kernel() ? memory_space::generic : memory_space::parameter;
      each.address += is_kernel() ? parameter_window : 0;
      outermost.variables[each.name] = each;
    }
  }
  outermost.parameter_end = is_kernel() ? 0 : function_.parameter_bytes;
  function_.call_bytes = static_cast<u32>(outermost.parameter_end);
  function_.shared.begin = module_.shared_bytes;
}

bool decoder::find_register(std::string_view name, u32& index, bool& is_predicate) const {
  place_of_register const* const found = in_scopes(&scope::registers, name);
  if (found == nullptr) {
    return false;
  }
  index = found->index;
  is_predicate = found->is_predicate;
  function_.specials_used |= !is_predicate && index < special_count ? u32(1) << index : 0;
  return true;
}

bool decoder::source(std::string_view text, operand& read_here, ptx_type type) {
  read_here = operand();
  read_here.negated = text.starts_with('!');
  text = trimmed(text.substr(read_here.negated ? 1 : 0));
  u64 bits = 0;
  i64 offset = 0;
  bool is_predicate = false;
  std::string_view base;
  if (find_register(text, read_here.index, is_predicate)) {
    read_here.kind = is_predicate ? operand::kinds::predicate : operand::kinds::value;
    return true;
  }
  if (!read_number(text, type, bits)) {
    if (!splits_offset(text, base, offset)) {
      return false;
    }
    variable const* const found = variable_named(base);
    if (found == nullptr || found->space == memory_space::local || found->space == memory_space::parameter) {
      return false;
    }
    bits = found->address + static_cast<u64>(offset);
  }
  auto const [place, is_new] = function_.constants.try_emplace(bits);
  if (is_new) {
    place->second.fill(bits);
  }
  read_here.kind = operand::kinds::constant;
  read_here.values = &place->second;
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
  return read_vector(text, i.width,
                     [&](std::string_view item, std::size_t k) { return destination(item, i.destinations[k]); });
}

bool decoder::sources(std::string_view text, instruction& i, ptx_type type) {
  return read_vector(text, i.width,
                     [&](std::string_view item, std::size_t k) { return source(item, i.sources[k], type); });
}

// "[%rd1+8]", "[name]". The offset counts from a register, from 0, or where `flag` says so from the frame's local
// memory. The space parameter is that of calls: the kernel's parameters have generic addresses.
bool decoder::address(std::string_view text, instruction& i) {
  std::string_view base;
  if (!splits_offset(text.starts_with('[') ? without_brackets(text) : text, base, i.offset)) {
    return false;
  }
  bool is_predicate = false;
  variable const* const found = variable_named(base);
  if (find_register(base, i.address.index, is_predicate)) {
    i.address.kind = operand::kinds::value;
  } else if (found != nullptr) {
    i.offset += static_cast<i64>(found->address);
    i.flag = found->space == memory_space::local;
  } else {
    return false;
  }
  bool const of_call = found != nullptr && found->space == memory_space::parameter;
  i.space = i.space == memory_space::parameter && !of_call ? memory_space::generic : i.space;
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
  if (variable const* const found = in_scopes(&scope::variables, name)) {
    return found;
  }
  auto const found = module_.variables.find(std::string(name));
  return found == module_.variables.end() ? nullptr : &found->second;
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
    std::size_t const bracket = std::min(each.find('<'), each.size());
    std::string const name(each.substr(0, bracket));
    int const count = std::atoi(std::string(each.substr(std::min(bracket + 1, each.size()))).c_str());
    for (int k = 0; k < std::max(count, 1); ++k) {
      scopes_.back().registers[count == 0 ? name : name + std::to_string(k)] = {end++, is_predicate};
    }
  }
}

void decoder::declare(std::string_view text) {
  if (text.starts_with(".reg")) {
    declare_registers(text);
    return;
  }
  variable found = read_variable(text);
  scope& here = scopes_.back();
  place_shared(found, module_);
  if (found.space == memory_space::parameter) {
    found.address = aligned(here.parameter_end, std::max<u32>(found.alignment, 8));
    here.parameter_end = found.address + found.size;
    function_.call_bytes = std::max(function_.call_bytes, static_cast<u32>(here.parameter_end));
  } else if (found.space == memory_space::local) {
    found.address = aligned(function_.local_bytes, found.alignment);
    function_.local_bytes = static_cast<u32>(found.address + found.size);
  }
  here.variables[found.name] = found;
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
  bool known = std::any_of(std::begin(groups), std::end(groups), [&](group decode_group) {
    i = instruction();
    i.type = s.type;
    i.space = s.space();
    return decode_group(s, *this, i);
  });
  if (!s.guard.empty()) {
    i.guard_negated = s.guard.front() == '!';
    known = destination(s.guard.substr(i.guard_negated ? 1 : 0), i.guard) && known;
  }
  i.step = known ? i.step : step_kind::unknown;
  i.text = text;
  function_.code.push_back(std::move(i));
}

// "$L__BB0_2:", also before the targets of a jump by table.
bool decoder::label(std::string_view& rest) {
  std::size_t const end = rest.find_first_of(":; \t\r\n");
  if (end == rest.npos || rest[end] != ':' || rest.substr(end).starts_with("::")) {
    return false;
  }
  std::string const name(rest.substr(0, end));
  rest = trimmed(rest.substr(end + 1));
  constexpr std::string_view targets = ".branchtargets";
  std::size_t const stop_here = std::min(rest.find(';'), rest.size());
  if (rest.starts_with(targets)) {
    for (std::string_view const each : items_of(rest.substr(targets.size(), stop_here - targets.size()))) {
      tables_[name].emplace_back(each);
    }
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
      u64 const end = scopes_.back().parameter_end;
      scopes_.emplace_back().parameter_end = end;
      rest.remove_prefix(1);
    } else if (rest.front() == '}') {
      end_scope();
      rest.remove_prefix(1);
    } else if (!label(rest)) {
      std::size_t const end = std::min(rest.find(';'), rest.size() - 1);
      add(trimmed(rest.substr(0, end)));
      rest.remove_prefix(end + 1);
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
  function_.call_bytes = static_cast<u32>(aligned(function_.call_bytes, 16));
  module_.shared_bytes = static_cast<u32>(aligned(module_.shared_bytes, 16));
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
  for (std::size_t next = 0; next < reached.size(); ++next) {
    decode(*reached[next]);
    if (reached[next]->shared.begin != reached[next]->shared.end) {
      found.push_back(reached[next]->shared);
    }
    for (instruction const& i : reached[next]->code) {
      function* const callee = i.call != nullptr ? i.call->callee : nullptr;
      if (callee != nullptr && !callee->body.empty() &&
          std::find(reached.begin(), reached.end(), callee) == reached.end()) {
        reached.push_back(callee);
      }
    }
  }
  return found;
}

} // namespace cuda_emulator
