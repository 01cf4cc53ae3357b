// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A communicator whose type is known at run time is the communicator inside: its contract, its bits, its sentences.

#include "comm/suite.hpp"
#include "comm/testing.hpp"
#include "support/archetype_communicator.hpp"
#include "support/foreign_transport.hpp"
#include "support/ordered_transport.hpp"
#include "support/seeded.hpp"

#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/any_communicator.hpp>
#ifdef OKTOPK_TESTS_WITH_XXHASH
#include <oktopk/comm/checked.hpp>
#endif
#include <oktopk/comm/self.hpp>

using namespace oktopk_tests;
using oktopk::any_communicator;
using namespace std::chrono_literals;

namespace {

/// Ranks in process, with a count of the requests that exist, active or not.
class tallied : public oktopk::communicator_decorator<in_process_communicator> {
public:
  class request {
  public:
    request() { tally(); }
    explicit request(in_process_communicator::request started) : inner(std::move(started)) { tally(); }
    request(request&& other) noexcept : inner(std::move(other.inner)) { tally(); }
    request& operator=(request&&) = default;
    ~request() { --count; }
    bool active() const { return inner.active(); }
    std::size_t bytes() const { return inner.bytes(); }

    static void tally() { most = std::max(most, ++count); }

    static inline int count = 0;
    static inline int most = 0;
    in_process_communicator::request inner{};
  };
  using bulk_request = request;

  explicit tallied(in_process_communicator inner) : communicator_decorator(std::move(inner)) {}
  request isend(std::span<std::byte const> out, int peer, oktopk::phase use) {
    return request(inner().isend(out, peer, use));
  }
  request irecv(std::span<std::byte> in, int peer, oktopk::phase use) { return request(inner().irecv(in, peer, use)); }
  template <oktopk::execution_space E>
  void start(E const&, std::span<oktopk::bulk_message const> messages, std::span<request> requests) {
    oktopk::start_one_by_one(*this, messages, requests);
  }
  void wait_all(std::span<request> requests) {
    for (request& each : requests) {
      inner().wait_all(std::span(&each.inner, 1));
    }
  }
  void cancel(std::span<request> requests) noexcept {
    for (request& each : requests) {
      inner().cancel(std::span(&each.inner, 1));
    }
  }
};

/// Ranks in process where the second message of a group cannot be started.
class breaking : public oktopk::communicator_decorator<in_process_communicator> {
public:
  breaking(in_process_communicator inner, int& cancelled) : communicator_decorator(inner), cancelled_(&cancelled) {}

  template <oktopk::execution_space E>
  void start(E const&, std::span<oktopk::bulk_message const> messages, std::span<request> requests) {
    oktopk::start_one_by_one(inner(), messages.first(1), requests.first(1));
    throw oktopk::error(oktopk::fault::communication, "the network is down");
  }
  void cancel(std::span<request> requests) noexcept {
    *cancelled_ += static_cast<int>(std::ranges::count_if(requests, &request::active));
    inner().cancel(requests);
  }

private:
  int* cancelled_; // messages that were under way
};

} // namespace

static_assert(oktopk::communicator<any_communicator> && oktopk::communicator<oktopk::counted<any_communicator>>);

TEMPLATE_TEST_CASE("a communicator of any type keeps the contract of the one inside", "", in_process_communicator,
                   oktopk::counted<in_process_communicator>, foreign_communicator, ordered_communicator,
                   archetype_communicator) {
  for (int const ranks : {1, 2, 5}) {
    check_communicator([&](auto const& body) {
      oktopk::in_process::run(ranks, [&](in_process_communicator inner) { body(any_communicator(TestType(inner))); });
    });
  }
}

TEST_CASE("a communicator of any type stands for itself in a decorator, which stands in another one") {
  check_communicator([](auto const& body) {
    oktopk::in_process::run(3, [&](in_process_communicator inner) {
      body(any_communicator(oktopk::counted(any_communicator(foreign_communicator(inner)))));
    });
  });
  check_communicator([](auto const& body) { body(any_communicator(oktopk::self_communicator())); });
}

TEST_CASE_ON(comm, 2, "an assigned decorator of any communicator is not lost") {
  any_communicator base(comm);
  base = oktopk::counted(base);
  using counting_any = oktopk::counted<any_communicator>;
  REQUIRE(base.target<counting_any>() != nullptr);
  oktopk::detail::notify_all(base, true, true, oktopk::phase::control);
  CHECK(base.target<counting_any>()->total().messages_sent == 1);
}

TEST_CASE_ON(comm, 3, "an algorithm over any communicator gives and sends what it does over the one inside") {
  // Here over one that does not tell sizes; over ranks in process see tests/catalogue.
  oktopk::counted counted{foreign_communicator(comm)};
  oktopk::ok_topk typed(execution(), counted, {.length = 500, .k = 30});
  auto erased = oktopk::make_allreduce(execution(), counted, "ok_topk", {.length = 500, .k = 30});
  for (int iteration = 0; iteration < 3; ++iteration) {
    auto const accumulator = seeded_accumulator<float>(500, comm.rank(), iteration);
    counted.reset();
    auto const values = to_vector(typed(accumulator).values());
    auto const traffic = counted.total();
    counted.reset();
    CHECK(to_vector(erased(accumulator).values()) == values);
    CHECK(counted.total().messages_sent == traffic.messages_sent);
    CHECK(counted.total().bytes_received == traffic.bytes_received);
    CHECK(counted.total().words_sent() <= erased.bound_words());
    CHECK(erased.bound_words() == typed.bound_words()); // with the sizes
  }
}

TEST_CASE("any communicator keeps no more requests than were under way at one time") {
  auto const most_in = [](int calls) {
    tallied::request::most = 0;
    oktopk::in_process::run(2, [&](in_process_communicator inner) {
      any_communicator const comm{tallied(inner)};
      auto allreduce = oktopk::make_allreduce(execution(), comm, "ok_topk", {.length = 300, .k = 20});
      for (int iteration = 0; iteration < calls; ++iteration) {
        allreduce(seeded_accumulator<float>(300, inner.rank(), 0));
      }
    });
    return tallied::request::most;
  };
  CHECK(most_in(3) == most_in(30));
  CHECK(tallied::request::count == 0);
}

TEST_CASE("a wait over any communicator fails with the sentence of the one inside") {
  auto const waits = [](bool erased) {
    return outcomes_of(2, [&](in_process_communicator inner) {
      auto const exchange = [](auto comm) {
        oktopk::time_limit_scope const limit(comm, 20ms);
        comm.begin_operation("exchange", 7);
        std::array<std::byte, 8> here{};
        std::vector<typename decltype(comm)::request> all;
        all.push_back(comm.irecv(here, 1 - comm.rank(), oktopk::phase::reduce));
        all.push_back(comm.isend(here, 1 - comm.rank(), oktopk::phase::gather));
        if (comm.rank() == 0) {
          comm.abort(oktopk::error(oktopk::fault::bad_file, "no more files"));
        }
        comm.wait_all(std::span(all));
      };
      erased ? exchange(any_communicator(inner)) : exchange(inner);
    });
  };
  CHECK(waits(true) == waits(false));
}

TEST_CASE_ON(inner, 2, "messages of a group that have started are cancelled where another one cannot be") {
  if (inner.rank() == 0) { // rank 1 hears of it
    int cancelled = 0;
    any_communicator comm{breaking(inner, cancelled)};
    std::array<std::byte, 8> here{};
    std::array<oktopk::bulk_message, 2> const group{
        {{here, 1, oktopk::phase::reduce, true}, {here, 1, oktopk::phase::gather, true}}};
    std::array<any_communicator::request, 2> requests;
    CHECK(outcome_of([&] { comm.start(execution(), group, requests); }).says("the network is down"));
    CHECK(cancelled == 1);
  }
}

TEST_CASE("limits, numbers and the communicator inside are reached through any communicator") {
  oktopk::in_process::run(2, [](in_process_communicator inner) {
    any_communicator comm(inner);
    comm.set_time_limit(3s);
    CHECK((comm.time_limit() == 3s && inner.time_limit() == 3s));
    std::int64_t const number = comm.number_object();
    CHECK(inner.number_object() == number + 1);
    CHECK(comm.untagged_objects() == inner.untagged_objects());
    REQUIRE(comm.target<in_process_communicator>() != nullptr);
    CHECK(comm.target<in_process_communicator>()->rank() == comm.rank());
    CHECK(comm.target<oktopk::self_communicator>() == nullptr);
    CHECK(comm.time_limits() == oktopk::time_limit_pair{3s, 3s});
  });
  any_communicator alone{oktopk::self_communicator()};
  CHECK(outcome_of([&] { alone.set_time_limit(1s); }).says("this communicator has no time limit"));
  std::array<std::byte, 8> here{};
  oktopk::bulk_message const to_nobody{here, 1, oktopk::phase::reduce, false};
  any_communicator::request none;
  CHECK(outcome_of([&] {
          alone.start(execution(), std::span(&to_nobody, 1), std::span(&none, 1));
        }).says("a lone rank has nobody to exchange messages with"));
  alone.abort(oktopk::error(oktopk::fault::bad_file, "nobody hears it"));
  CHECK(alone.takes_other_threads());
}

TEST_CASE(
    "what cannot run over an ordered communicator is refused on every rank, where only the object knows its order") {
  auto const refused = [](auto const& body) {
    return outcomes_of(2, [&](in_process_communicator inner) { body(any_communicator(ordered_communicator(inner))); });
  };
  CHECK(unlike(refused([](any_communicator comm) {
                 oktopk::dense_ring<execution, any_communicator> ring(execution(), comm, {.length = 100});
                 ring(seeded_accumulator<float>(100, comm.rank(), 0));
               }),
               oktopk::fault::communication, "the textbook allreduces do not run over") == "");
#ifdef OKTOPK_TESTS_WITH_XXHASH
  CHECK(unlike(refused([](any_communicator comm) { oktopk::checked<any_communicator> const around(comm); }),
               oktopk::fault::communication, "checked takes no communicator that orders messages") == "");
#endif
}
