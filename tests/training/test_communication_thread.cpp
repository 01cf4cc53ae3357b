// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"

#include <oktopk/training/communication_thread.hpp>

#include <functional>
#include <memory>

namespace {

/// Calls a function when it is destroyed.
struct at_the_end {
  explicit at_the_end(std::function<void()> function) : call(std::move(function)) {}
  at_the_end(at_the_end const&) = delete;
  at_the_end& operator=(at_the_end const&) = delete;
  ~at_the_end() { call(); }

  std::function<void()> call;
};

} // namespace

TEST_CASE("pieces of work are done in the order in which they came, and the destructor does what is left") {
  std::vector<int> order;
  {
    oktopk::detail::communication_thread thread;
    for (int i = 0; i < 50; ++i) {
      thread.submit([&order, i] { order.push_back(i); });
    }
    thread.wait();
    REQUIRE(order.size() == 50);
    thread.submit([&order] { order.push_back(50); });
  }
  REQUIRE(order.size() == 51);
  for (int i = 0; i < 51; ++i) {
    CHECK(order[static_cast<std::size_t>(i)] == i);
  }
}

TEST_CASE("what a piece of work holds may give more work when it goes") {
  bool done = false;
  {
    oktopk::detail::communication_thread thread;
    auto held = std::make_shared<at_the_end>([&] { thread.submit([&done] { done = true; }); });
    thread.submit([&, piece = std::move(held)] {});
    thread.wait();
  }
  CHECK(done);
}
