// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/collect.hpp"

#include <oktopk/comm/call_context.hpp>

namespace oktopk_tests {

/// One for all calls. Kokkos 5.2 ends a program whose execution spaces outlive `Kokkos::finalize`.
inline execution const& shared_execution() {
  static std::unique_ptr<execution const> exec = [] {
    Kokkos::push_finalize_hook([] { exec.reset(); });
    return std::make_unique<execution const>();
  }();
  return *exec;
}

/// A call as an algorithm makes it, for steps that are tested alone. The communicator outlives it.
template <oktopk::communicator Comm>
oktopk::call_context<execution, Comm> call_on(Comm& comm, std::int64_t length, std::int64_t k = 0,
                                              std::int64_t iteration = 0) {
  return {shared_execution(), comm, "test", length, k, iteration, {}, {}};
}

} // namespace oktopk_tests
