// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include "../ptx/decoder.hpp"

namespace cuda_emulator {

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
