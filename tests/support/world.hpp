// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

namespace oktopk_tests {

/// The processes that run the same test program side by side, as long as it lives: ranks of MPI, ranks that the environment
/// numbers, or one process alone.
struct world {
  world(int& argc, char**& argv);
  ~world();
  world(world const&) = delete;
  world& operator=(world const&) = delete;

  int rank = 0;
  std::string name = "oktopk tests"; ///< of this process
};

} // namespace oktopk_tests
