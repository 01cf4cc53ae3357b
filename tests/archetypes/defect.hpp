// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// A struct `name` that is `base` but for one member, which hides that of `base`, and the assertion that `refused<name>`.
#define DEFECT(refused, name, base, ...)                                                                               \
  struct name : base {                                                                                                 \
    using base::base;                                                                                                  \
    __VA_ARGS__;                                                                                                       \
  };                                                                                                                   \
  static_assert(refused<name>)
