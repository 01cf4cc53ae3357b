// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include "program.hpp"
#include "text.hpp"

namespace cuda_emulator {

// One statement of PTX: "@%p1 ld.global.u32 %r1, [%rd1+8];" has the name ld, the modifiers global and u32, two
// operands.
struct statement {
  explicit statement(std::string_view text);

  bool has(std::string_view modifier) const {
    return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
  }
  memory_space space() const;

  std::string_view guard; // with its '!'
  std::string_view name;
  std::vector<std::string_view> modifiers;
  std::vector<std::string_view> operands;
  ptx_type type; // the last modifier
};

// Turns the body of a function into instructions. Its public members are what the groups of instructions read operands
// with; each returns false for what it does not know.
class decoder {
public:
  explicit decoder(function& decoded);

  void run();

  bool source(std::string_view text, operand& read_here, ptx_type type);
  bool destination(std::string_view text, u32& index) const;                    // "_" is no_register
  bool destination_with_predicate(std::string_view text, instruction& i) const; // "%r1|%p1"
  bool destinations(std::string_view text, instruction& i) const;               // "{%r1, %r2}" or one
  bool sources(std::string_view text, instruction& i, ptx_type type);
  bool address(std::string_view text, instruction& i);

  // The usual shape: a destination and `count` sources of the statement's type.
  bool usual(statement const& s, instruction& i, handler run, std::size_t count);

  variable const* variable_named(std::string_view name) const;
  function* function_named(std::string_view name) const;
  bool is_kernel() const { return function_.is_kernel; }

  void jump_to(std::string_view label); // of the instruction being decoded
  void jump_by_table(std::string_view label);

private:
  struct place_of_register {
    u32 index;
    bool is_predicate;
  };
  struct scope {
    std::unordered_map<std::string, place_of_register> registers;
    std::unordered_map<std::string, variable> variables; // and parameters
    std::unordered_map<std::string, u32> labels;
    u64 parameter_end = 0;
  };
  struct jump {
    u32 from;
    std::string label;
    std::size_t depth; // of the scopes that it may be in
    i32 entry;         // of a table of targets; -1: no table
  };

  // Of the innermost scope that has the name.
  template <typename Value>
  Value const* in_scopes(std::unordered_map<std::string, Value> scope::*names, std::string_view name) const {
    for (auto at = scopes_.rbegin(); at != scopes_.rend(); ++at) {
      auto const& here = (*at).*names;
      if (auto const found = here.find(std::string(name)); found != here.end()) {
        return &found->second;
      }
    }
    return nullptr;
  }
  bool find_register(std::string_view name, u32& index, bool& is_predicate) const;
  void declare(std::string_view text);
  void declare_registers(std::string_view text);
  void add(std::string_view text);
  bool label(std::string_view& rest);
  void end_scope();

  function& function_;
  module& module_;
  std::vector<scope> scopes_;
  std::unordered_map<std::string, std::vector<std::string>> tables_;
  std::vector<jump> jumps_;
  std::vector<std::pair<u32, std::string>> table_jumps_;
};

// Each group decodes the instructions it knows, and returns false for others and for forms it does not know.
bool decode_integer(statement const& s, decoder& d, instruction& i);
bool decode_floating_point(statement const& s, decoder& d, instruction& i);
bool decode_comparison(statement const& s, decoder& d, instruction& i);
bool decode_move(statement const& s, decoder& d, instruction& i);
bool decode_conversion(statement const& s, decoder& d, instruction& i);
bool decode_memory(statement const& s, decoder& d, instruction& i);
bool decode_atomic(statement const& s, decoder& d, instruction& i);
bool decode_warp(statement const& s, decoder& d, instruction& i);
bool decode_control(statement const& s, decoder& d, instruction& i);

} // namespace cuda_emulator
