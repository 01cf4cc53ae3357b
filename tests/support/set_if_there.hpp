// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Sets an option of whatever has it, in a template.
#define SET_IF_THERE(option, ...)                                                                                      \
  if constexpr (requires { option; }) {                                                                                \
    option = __VA_ARGS__;                                                                                              \
  }
