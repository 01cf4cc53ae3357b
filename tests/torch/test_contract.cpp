// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The communicator over a process group goes through the same suite as every communicator.

#include "torch/ranks.hpp"

#include "comm/suite.hpp"

#include <oktopk/comm/counted.hpp>

using namespace oktopk_tests;

static_assert(oktopk::communicator<oktopk::process_group_communicator>);

TEST_CASE("a process group keeps the contract of a communicator") {
  check_communicator([](auto const& body) { on_all_ranks([&] { body(connected()); }); });
}

TEST_CASE("a process group that is counted keeps the contract of a communicator") {
  check_communicator([](auto const& body) { on_all_ranks([&] { body(oktopk::counted(connected())); }); });
}
