// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"

#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/comm/message_group.hpp>

using oktopk::phase;

TEST_CASE_ON(inner, 2, "an empty piece is no message, and waiting for none returns at once") {
  oktopk::counted comm(inner);
  Kokkos::DefaultHostExecutionSpace const exec;
  auto sent = oktopk::detail::start_send(exec, comm, std::span<std::byte>(), 1 - comm.rank(), phase::reduce);
  auto received = oktopk::detail::start_receive(exec, comm, std::span<std::byte>(), 1 - comm.rank(), phase::reduce);
  CHECK_FALSE(sent.active());
  CHECK_FALSE(received.active());
  oktopk::detail::wait_for(comm, sent);
  oktopk::detail::finish(comm, std::move(received));
  CHECK(comm.total().messages_sent == 0);
}

TEST_CASE_ON(inner, 2, "a piece that is not empty arrives") {
  oktopk::counted comm(inner);
  Kokkos::DefaultHostExecutionSpace const exec;
  std::vector<std::byte> mine(3, std::byte(comm.rank()));
  std::vector<std::byte> theirs(3);
  auto received =
      oktopk::detail::start_receive(exec, comm, std::span<std::byte>(theirs), 1 - comm.rank(), phase::reduce);
  auto sent = oktopk::detail::start_send(exec, comm, std::span<std::byte>(mine), 1 - comm.rank(), phase::reduce);
  oktopk::detail::wait_for(comm, received);
  CHECK_FALSE(received.active());
  oktopk::detail::finish(comm, std::move(sent));
  CHECK(theirs == std::vector<std::byte>(3, std::byte(1 - comm.rank())));
  CHECK(comm.total().messages_sent == 1);
}
