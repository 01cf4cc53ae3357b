// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/unreachable.hpp"

#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>

namespace oktopk_fuzz {

/// The in-process communicator, which may say that it reaches no memory: then all that travels is staged.
using near_or_far = oktopk_tests::unreachable<oktopk::in_process_communicator>;

using communicator = oktopk::counted<near_or_far>;

} // namespace oktopk_fuzz
