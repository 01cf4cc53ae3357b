// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include "types.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace cuda_emulator {

inline constexpr std::string_view spaces = " \t\r\n";

std::string_view trimmed(std::string_view text);

// What stands between spaces.
std::vector<std::string_view> words_of(std::string_view text);

// What stands between commas, except within brackets.
std::vector<std::string_view> items_of(std::string_view text);

// The place of the bracket that closes the one at `place`.
std::size_t closing_bracket(std::string_view text, std::size_t place);

// A number as PTX writes it, also 0f3F800000 and 0d3FF0000000000000; those in the bits of `type`.
bool read_number(std::string_view text, ptx_type type, u64& bits);

} // namespace cuda_emulator
