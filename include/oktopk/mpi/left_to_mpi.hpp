// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace oktopk::detail {

/// Memory of messages that were given up, and that MPI may still read or write: it is kept until the program ends.
inline std::vector<std::unique_ptr<std::byte[]>>& left_to_mpi() {
  static std::vector<std::unique_ptr<std::byte[]>> kept;
  return kept;
}

} // namespace oktopk::detail
