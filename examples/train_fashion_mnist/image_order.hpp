// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "types.hpp"

#include <cstdint>

namespace fashion {

/// Positions 0, 1, 2, ... of `size` images.
order_view in_order(execution const& exec, std::int64_t size);

/// A permutation of the positions drawn from seed and epoch: the same on every rank, library and machine.
void shuffle(execution const& exec, order_view const& order, std::int64_t seed, std::int64_t epoch);

} // namespace fashion
