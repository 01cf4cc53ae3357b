// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What communicators around another one pass on, that they have no more than it has, and that requests which they lend
// to a wait come back.

#include "comm/suite.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/foreign_transport.hpp"
#include "support/messages.hpp"

#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/decorator.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/comm/self.hpp>

#include <chrono>
#include <memory>
#include <stdexcept>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;
using oktopk::phase;
using oktopk::detail::takes_other_threads;

namespace {

/// Changes nothing.
template <oktopk::communicator Comm>
class transparent : public oktopk::communicator_decorator<Comm> {
public:
  explicit transparent(Comm inner) : oktopk::communicator_decorator<Comm>(std::move(inner)) {}
};

template <class Comm>
concept has_time_limit = requires(Comm comm) { comm.set_time_limit(comm.time_limit()); };

template <class Comm>
concept aborts = requires(Comm comm, oktopk::error why) { comm.abort(why); };

using around_world = transparent<in_process_communicator>;
using around_self = transparent<oktopk::self_communicator>;

static_assert(oktopk::communicator<around_world> && oktopk::communicator<around_self>);
static_assert(has_time_limit<around_world> && aborts<around_world>);
static_assert(has_time_limit<around_self> == has_time_limit<oktopk::self_communicator>);
static_assert(aborts<around_self> == aborts<oktopk::self_communicator>);
static_assert(has_time_limit<oktopk::counted<around_world>> && aborts<oktopk::counted<around_world>>);

} // namespace

TEST_CASE("a decorator that adds nothing keeps every promise of its communicator") {
  check_communicator([](auto const& body) {
    oktopk::in_process::run(3, [&](in_process_communicator comm) { body(transparent(comm)); });
  });
  check_communicator([](auto const& body) { // whose requests of bulk messages are of another type
    oktopk::in_process::run(3, [&](in_process_communicator comm) { body(transparent(foreign_communicator(comm))); });
  });
}

TEST_CASE("a decorator says of itself what its communicator says") {
  CHECK(around_world::tells_sizes == in_process_communicator::tells_sizes);
  CHECK(around_world::ordered_by_instance == in_process_communicator::ordered_by_instance);
  oktopk::in_process::run(2, [](in_process_communicator inner) {
    CHECK(oktopk::detail::takes_other_threads(transparent(inner)) == oktopk::detail::takes_other_threads(inner));
    CHECK(transparent(inner).can_access<Kokkos::HostSpace>());
  });
  CHECK(oktopk::detail::takes_other_threads(around_self(oktopk::self_communicator())) ==
        oktopk::detail::takes_other_threads(oktopk::self_communicator()));
}

TEST_CASE("a decorator passes on time limits, what messages are for, and that a rank gives up") {
  auto const threw = oktopk::in_process::run_and_collect(2, [](in_process_communicator inner) {
    transparent comm{oktopk::counted(inner)};
    CHECK(comm.rank() == inner.rank());
    CHECK(comm.size() == 2);
    comm.set_time_limit(std::chrono::seconds(7));
    CHECK(inner.time_limit() == std::chrono::seconds(7));
    CHECK(comm.time_limit() == std::chrono::seconds(7));
    comm.begin_operation("dance", 7);
    if (comm.rank() == 1) {
      comm.abort(oktopk::error(fault::damaged_message, "a bit fell over"));
      return;
    }
    int number = 0;
    auto never = comm.irecv(space_in(number), 1, phase::balance);
    auto const heard = outcome_of([&] { comm.wait_all(std::span(&never, 1)); });
    CHECK(unlike(heard, fault::abandoned, "rank 1 has given up (this rank was in dance, call 7): a bit fell over") ==
          "");
    comm.cancel(std::span(&never, 1));
  });
  CHECK((outcome_of(threw[0]).code == fault::none && outcome_of(threw[1]).code == fault::none));
}

namespace {

using inner = std::unique_ptr<int>; // which can only be moved

struct request {
  inner bytes;
  inner trailer;
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
    REQUIRE((each.bytes && each.trailer));
    CHECK((*each.bytes == i && *each.trailer == 10 + i));
  }
}

} // namespace

TEST_CASE("two parts of all requests are lent side by side, and come back to where they were") {
  auto requests = two_requests();
  std::vector<inner> storage;
  {
    lent const first(requests, &request::bytes, storage);
    lent const second(requests, &request::trailer, storage);
    REQUIRE(storage.size() == 4);
    CHECK((*storage[0] == 0 && *storage[1] == 1 && *storage[2] == 10 && *storage[3] == 11));
    CHECK((!requests[0].bytes && !requests[1].trailer));
  }
  check_back(requests);
}

TEST_CASE("requests come back from a wait that fails") {
  auto requests = two_requests();
  std::vector<inner> storage;
  try {
    lent const both(requests, &request::bytes, storage);
    throw std::runtime_error("too late");
  } catch (std::runtime_error const&) {
    check_back(requests);
  }
}

TEST_CASE("a lone rank takes calls from any thread, and so does what decorates it") {
  CHECK(takes_other_threads(oktopk::self_communicator()));
  CHECK(takes_other_threads(oktopk::counted(oktopk::self_communicator())));
}

TEST_CASE_ON(comm, 2, "ranks that share one thread take none from others, nor do a pair and a counter of them") {
  CHECK(!takes_other_threads(comm));
  CHECK(!takes_other_threads(oktopk::counted(comm)));
  CHECK(!takes_other_threads(foreign_communicator(comm)));
}
