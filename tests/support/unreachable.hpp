// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/decorator.hpp>

#include <type_traits>
#include <utility>

namespace oktopk_tests {

/// A communicator that says it cannot reach the host's memory, as MPI says of a device's; or can, if it is told so when
/// it is made, so that one instantiation of an algorithm serves both.
///
/// On a CPU, kernels and messages then have arrays of their own, and everything that travels is copied between them:
/// the way a GPU without a GPU-aware MPI works, where the tests can watch it.
template <oktopk::communicator Comm>
class unreachable : public oktopk::communicator_decorator<Comm> {
  using decorator = oktopk::communicator_decorator<Comm>;

public:
  explicit unreachable(Comm inner, bool far = true) : decorator(std::move(inner)), far_(far) {}

  template <class MemorySpace>
  bool can_access() const {
    return !(far_ && std::is_same_v<MemorySpace, Kokkos::HostSpace>)&&decorator::template can_access<MemorySpace>();
  }

private:
  bool far_;
};

} // namespace oktopk_tests
