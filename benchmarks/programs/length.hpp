// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace oktopk_programs {

/// Throws where a gradient file has more values than 32-bit indices can name.
inline void check_length(std::string const& file, std::int64_t length) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (length > most) {
    throw std::runtime_error(file + " has " + std::to_string(length) + " values; at most " + std::to_string(most) +
                             " can be measured");
  }
}

} // namespace oktopk_programs
