// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <optional>

namespace oktopk_tests {

/// What std::chrono::steady_clock::now() gives in a program that was made by `oktopk_replace_clock` (tests/functions.cmake),
/// while it gives a time; else now() gives the real one.
inline std::optional<std::chrono::steady_clock::time_point> (*replaced_clock)() = nullptr;

/// False where the linker cannot do that.
extern bool const can_replace_clock;

} // namespace oktopk_tests
