// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

namespace cuda_emulator {

// Says on standard error what is wrong and ends the program by abort(), which test frameworks report.
[[noreturn]] void stop(char const* format, ...) __attribute__((format(printf, 1, 2)));

} // namespace cuda_emulator
