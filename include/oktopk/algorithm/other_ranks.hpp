// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace oktopk {

/// A state to go on from with another number of ranks, such as those that are left when one has died.
///
/// Of an algorithm or of an optimizer, whose residual and learning rate it keeps; so the residual of a rank that is
/// gone is lost, and nothing else. Forgets the regions, which are P+1 boundaries: the next call makes them anew; of
/// `bucketed` also the thresholds of its buckets. Thresholds stay otherwise, since sums of fewer ranks are about as
/// large; where they are not, the next evaluation that is due mends them. Ranks whose last call failed may be one call
/// behind ranks that had completed it: all go on from the state before the earliest of these calls. Sends nothing.
template <class State>
State for_other_ranks(State state) {
  static_assert(
      !requires { State::of_any_allreduce; },
      "oktopk: the state of an any_allreduce is known to it alone: for_other_ranks(state, allreduce)");
  if constexpr (requires { state.allreduce; }) {
    state.allreduce = for_other_ranks(state.allreduce);
  } else if constexpr (requires { state.boundaries.clear(); }) {
    state.boundaries.clear();
  } else if constexpr (requires { state.bucket_tensors.clear(); }) {
    state.bucket_sizes.clear(); // of no plan
    state.bucket_tensors.clear();
    state.allreduces.clear();
  }
  return state;
}

/// The same for an algorithm of the catalogue, or an optimizer over one: `of` is an `any_allreduce` with the algorithm
/// that the state is of, for any number of ranks. An `error` (bad_state) on this rank where it is of another one.
template <class State, class Allreduce>
State for_other_ranks(State state, Allreduce const& of) {
  if constexpr (requires { state.allreduce; }) {
    state.allreduce = of.for_other_ranks(state.allreduce);
    return state;
  } else {
    return of.for_other_ranks(state);
  }
}

} // namespace oktopk
