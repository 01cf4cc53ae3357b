// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>

#include <span>

namespace oktopk {

/// Leaves all ranks of a communicator for a reason that this rank alone may have found: it can use the communicator no
/// more, and a communicator that can tells the others why. Not collective.
template <class Comm>
void leave(Comm& comm, error const& why) noexcept {
  if constexpr (requires { comm.give_up(why); }) {
    comm.give_up(why);
  }
  comm.cancel(std::span<typename Comm::request>());
}

/// The same; throws the reason.
template <class Comm>
[[noreturn]] void give_up(Comm& comm, error const& why) {
  leave(comm, why);
  throw why;
}

} // namespace oktopk
