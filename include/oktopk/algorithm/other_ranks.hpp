// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace oktopk {

/// A state to go on from with another number of ranks, such as those that are left when one has died.
///
/// Of an algorithm or of `sgd`, whose residual and learning rate it keeps; so the residual of a rank that is gone is
/// lost, and nothing else. Forgets the regions, which are P+1 boundaries: the next call makes them anew. Thresholds
/// stay, since sums of fewer ranks are about as large; where they are not, the next evaluation that is due mends them.
/// Ranks whose last call failed may be one call behind ranks that had completed it: all go on from the state before the
/// earliest of these calls. Sends nothing.
template <class State>
State for_other_ranks(State state) {
  if constexpr (requires { state.allreduce; }) {
    state.allreduce = for_other_ranks(state.allreduce);
  } else if constexpr (requires { state.boundaries.clear(); }) {
    state.boundaries.clear();
  }
  return state;
}

} // namespace oktopk
