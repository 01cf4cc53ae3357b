// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Requests that are lent to one wait come back, also from one that fails.

#include "support/catch.hpp"

#include <oktopk/comm/decorator.hpp>

#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

namespace {

using inner = std::unique_ptr<int>; // which can only be moved

struct request {
  inner bytes;
  inner seal;
};

using lent = oktopk::detail::lent_requests<request, inner>;

std::vector<request> two_requests() {
  std::vector<request> requests(2);
  for (int i = 0; i < 2; ++i) {
    requests[static_cast<std::size_t>(i)] = {std::make_unique<int>(i), std::make_unique<int>(10 + i)};
  }
  return requests;
}

void check_back(std::vector<request> const& requests) {
  for (int i = 0; i < 2; ++i) {
    auto const& each = requests[static_cast<std::size_t>(i)];
    REQUIRE((each.bytes && each.seal));
    CHECK((*each.bytes == i && *each.seal == 10 + i));
  }
}

} // namespace

TEST_CASE("two parts of all requests are lent side by side, and come back to where they were") {
  auto requests = two_requests();
  std::vector<inner> room;
  {
    lent const first(requests, &request::bytes, room);
    lent const second(requests, &request::seal, room);
    REQUIRE(room.size() == 4);
    CHECK((*room[0] == 0 && *room[1] == 1 && *room[2] == 10 && *room[3] == 11));
    CHECK((!requests[0].bytes && !requests[1].seal));
  }
  check_back(requests);
}

TEST_CASE("requests come back from a wait that fails") {
  auto requests = two_requests();
  std::vector<inner> room;
  try {
    lent const both(requests, &request::bytes, room);
    throw std::runtime_error("too late");
  } catch (std::runtime_error const&) {
    check_back(requests);
  }
}
