// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>

namespace oktopk {

/// Whether calls of a communicator may come from another thread than the one that has made it, one at a time.
///
/// Asks its member `takes_other_threads()`; a communicator without one takes none.
template <ranked Comm>
bool takes_other_threads([[maybe_unused]] Comm const& comm) {
  if constexpr (requires { comm.takes_other_threads(); }) {
    return comm.takes_other_threads();
  } else {
    return false;
  }
}

} // namespace oktopk
