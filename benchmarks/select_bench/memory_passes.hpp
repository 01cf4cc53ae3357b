// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "inputs.hpp"

#include <cstdint>

// What selection is measured against: passes over the same arrays that do nothing else. Compiled by themselves, with
// aligned loops: where the compiler happens to put such a short loop makes a third of its time.
namespace select_bench {

/// Reads an array; gives a sum of its bits, which it would not read otherwise.
std::uint32_t read_pass(space const& exec, const_device_vector const& from);

/// Reads two arrays and writes a third: accumulator = residual + rate x gradient, and nothing else.
void read_read_write_pass(space const& exec, const_device_vector const& residual, const_device_vector const& gradient,
                          device_vector const& accumulator);

} // namespace select_bench
