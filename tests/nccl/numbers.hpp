// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/message_group.hpp>

#include <Kokkos_Core.hpp>

// Numbers in the memory of a device, and messages of them.
namespace oktopk_tests {

using device = Kokkos::DefaultExecutionSpace;
using device_memory = device::memory_space;
using numbers = Kokkos::View<int*, device_memory>;

inline std::span<std::byte> bytes_of(numbers const& all) {
  return std::as_writable_bytes(std::span<int>(all.data(), all.extent(0)));
}

/// Sends to one rank and receives from another, in one group.
template <class Comm>
void pass_on(Comm& comm, device const& exec, numbers const& out, int to, numbers const& in, int from) {
  oktopk::detail::message_group<Comm> messages;
  messages.reset(2);
  oktopk::detail::cancel_on_unwind const guard(comm, messages.requests());
  messages.receive(bytes_of(in), from, oktopk::phase::reduce, oktopk::detail::message_size::known);
  messages.send(bytes_of(out), to, oktopk::phase::reduce, oktopk::detail::message_size::known);
  messages.start(exec, comm);
  messages.wait_all(comm);
}

inline int first_of(device const& exec, numbers const& all) {
  auto const host = Kokkos::create_mirror_view(all);
  Kokkos::deep_copy(exec, host, all);
  exec.fence();
  return host(0);
}

} // namespace oktopk_tests
