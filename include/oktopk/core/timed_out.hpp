// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>

#include <chrono>
#include <string>

namespace oktopk::detail {

/// The error of a rank that has waited longer than the limit; `what` says for what: "to receive from rank 1 (gather)".
inline error timed_out(int rank, std::string const& what, std::chrono::nanoseconds limit) {
  return error(fault::timed_out, "rank " + std::to_string(rank) + " has waited " + what + " for more than " +
                                     std::to_string(std::chrono::duration<double>(limit).count()) +
                                     " s, the time limit");
}

} // namespace oktopk::detail
