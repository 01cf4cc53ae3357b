// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What communicators around another one pass on, that they have no more than it has, and that requests which they lend
// to a wait come back.

#include "comm/suite.hpp"
#include "comm/testing.hpp"
#include "support/foreign_transport.hpp"

#include <oktopk/comm/decorator.hpp>
#include <oktopk/comm/self.hpp>

using namespace oktopk_tests;

namespace {

/// Changes nothing.
template <oktopk::communicator Comm>
class transparent : public oktopk::communicator_decorator<Comm> {
public:
  explicit transparent(Comm inner) : oktopk::communicator_decorator<Comm>(std::move(inner)) {}
};

template <class Comm>
concept has_time_limit = requires(Comm comm) { comm.set_time_limit(comm.time_limit()); };

using around_world = transparent<in_process_communicator>;
using around_self = transparent<oktopk::self_communicator>;

static_assert(oktopk::communicator<around_world> && oktopk::communicator<around_self>);
static_assert(has_time_limit<around_world>);
static_assert(!has_time_limit<around_self> && !has_time_limit<oktopk::self_communicator>);
static_assert(has_time_limit<oktopk::counted<around_world>>);

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
  STATIC_REQUIRE(around_world::tells_sizes());
  STATIC_REQUIRE(!around_world::ordered_by_instance());
  oktopk::in_process::run(2, [](in_process_communicator inner) {
    CHECK(!transparent(inner).takes_other_threads());
    CHECK(transparent(inner).can_access<Kokkos::HostSpace>());
  });
  CHECK(around_self(oktopk::self_communicator()).takes_other_threads());
  CHECK(outcome_of([] { around_self(oktopk::self_communicator()).set_time_limits({}); }).code ==
        fault::option_out_of_range);
}

TEST_CASE_ON(inner, 2, "a decorator passes on time limits") {
  transparent comm{oktopk::counted(inner)};
  comm.set_time_limit(std::chrono::seconds(7));
  CHECK((inner.time_limit() == std::chrono::seconds(7) && comm.time_limit() == std::chrono::seconds(7)));
}

TEMPLATE_TEST_CASE("a rank that gives up throws its reason, and all others hear it, also through decorators", "",
                   in_process_communicator, counted, transparent<counted>) {
  oktopk::error const reason(fault::damaged_message, "a bit fell over");
  int const ranks = GENERATE(2, 3, 5);
  oktopk::in_process::run(ranks, [&](in_process_communicator inner) {
    TestType comm = [&] {
      if constexpr (std::is_same_v<TestType, transparent<counted>>) {
        return TestType(counted(inner));
      } else {
        return TestType(inner);
      }
    }();
    comm.begin_operation("dance", 7);
    int number = 0;
    if (comm.rank() == 1) {
      CHECK(outcome_of([&] { oktopk::detail::abort(comm, reason); }) == outcome{reason.code(), reason.what()});
    } else {
      CHECK(unlike(outcome_of([&] { receive_number<int>(comm, 1, phase::balance); }), fault::abandoned,
                   "rank 1 has given up (this rank was in dance, call 7): a bit fell over") == "");
    }
    CHECK(outcome_of([&] {
            comm.isend(bytes_of(number), comm.rank() == 0 ? 1 : 0, phase::balance);
          }).says("cannot be used any more"));
  });
}

TEST_CASE("a communicator that cannot tell the others is left all the same") {
  struct silent : oktopk::communicator_base {
    struct request {};
    int cancelled = 0;
    void cancel(std::span<request> requests) noexcept { cancelled += requests.empty() ? 1 : 100; }
  } comm;
  CHECK(outcome_of([&] { oktopk::detail::abort(comm, oktopk::error(fault::bad_file, "no disk")); }) ==
        outcome{fault::bad_file, "oktopk: no disk"});
  CHECK(comm.cancelled == 1);
}

namespace {

using part = std::unique_ptr<int>; // which can only be moved

struct two_parts {
  part bytes;
  part trailer;
};

using lent = oktopk::detail::lent_requests<two_parts, part>;

std::vector<two_parts> two_requests() {
  std::vector<two_parts> requests(2);
  for (int i = 0; i < 2; ++i) {
    requests[static_cast<std::size_t>(i)] = {std::make_unique<int>(i), std::make_unique<int>(10 + i)};
  }
  return requests;
}

void check_back(std::vector<two_parts> const& requests) {
  for (int i = 0; i < 2; ++i) {
    auto const& each = requests[static_cast<std::size_t>(i)];
    REQUIRE((each.bytes && each.trailer));
    CHECK((*each.bytes == i && *each.trailer == 10 + i));
  }
}

} // namespace

TEST_CASE("two parts of all requests are lent side by side, and come back, also from a wait that fails") {
  auto requests = two_requests();
  std::vector<part> storage;
  try {
    lent const first(requests, &two_parts::bytes, storage);
    lent const second(requests, &two_parts::trailer, storage);
    REQUIRE(storage.size() == 4);
    CHECK((*storage[0] == 0 && *storage[1] == 1 && *storage[2] == 10 && *storage[3] == 11));
    CHECK((!requests[0].bytes && !requests[1].trailer));
    throw std::runtime_error("too late");
  } catch (std::runtime_error const&) {
    check_back(requests);
  }
}

TEST_CASE_ON(comm, 2, "a lone rank takes calls from any thread, ranks that share one take none from others") {
  CHECK(oktopk::self_communicator().takes_other_threads());
  CHECK(oktopk::counted(oktopk::self_communicator()).takes_other_threads());
  CHECK(!comm.takes_other_threads());
  CHECK(!oktopk::counted(comm).takes_other_threads());
  CHECK(!foreign_communicator(comm).takes_other_threads());
}
