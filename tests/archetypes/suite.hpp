// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include "support/catch.hpp"
#include "support/reference.hpp"
#include "support/seeded.hpp"

/// A struct `name` that is `base` but for one member, which hides that of `base`, and the assertion that `refused<name>`.
#define DEFECT(refused, name, base, ...)                                                                               \
  struct name : base {                                                                                                 \
    using base::base;                                                                                                  \
    __VA_ARGS__;                                                                                                       \
  };                                                                                                                   \
  static_assert(refused<name>)

namespace oktopk_tests {

/// A policy that can be copied and made from its options, and nothing else.
template <class Policy>
struct strict : Policy {
  explicit strict(typename Policy::options how) : Policy(how) {}
  strict(strict const&) = default;
  strict& operator=(strict const&) = delete;
};

} // namespace oktopk_tests
