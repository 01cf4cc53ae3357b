// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The communicator over TCP goes through the same suite as every communicator.

#include "tcp/ranks.hpp"

#include "comm/suite.hpp"

using namespace oktopk_tests;

static_assert(oktopk::communicator<oktopk::tcp_communicator>);

TEST_CASE("ranks that TCP connects keep the contract of a communicator, over one link and over two") {
  check_communicator([](auto const& body) {
    for (auto const& links : {std::vector<std::string>{"127.0.0.1"}, {"lo", "127.0.0.1"}}) {
      on_all_ranks([&] { body(connected({std::chrono::minutes(1), links})); });
    }
  });
}
