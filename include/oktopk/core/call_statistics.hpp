// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

namespace oktopk {

/// Figures of one call of an algorithm, as this rank saw it.
struct call_statistics {
  std::int64_t local_selected = 0;  ///< entries this rank put in
  std::int64_t global_selected = 0; ///< entries of the update
  double select_seconds = 0;        ///< choosing entries, local and global, messages of the global choice included
  double exchange_seconds = 0;      ///< the rest of the call
  bool local_reevaluated = false;
  bool global_reevaluated = false;
  bool repartitioned = false;
  bool balanced = false;
};

} // namespace oktopk
