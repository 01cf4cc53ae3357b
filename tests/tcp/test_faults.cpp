// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Time limits, ranks that give up, leave or die, and messages that are given up, over TCP.

#include "comm/suite.hpp"
#include "tcp/ranks.hpp"

#include <csignal>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <tuple>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::phase;
using oktopk::tcp_communicator;

namespace {

using request = tcp_communicator::request;
using clock_type = std::chrono::steady_clock;

bool is_soon(clock_type::time_point begun) {
  return clock_type::now() - begun < std::chrono::seconds(20); // on a busy machine
}

} // namespace

TEST_CASE("a wait over TCP that exceeds the time limit names the peer, the phase and the limit, and can be cancelled") {
  on_several_ranks([] {
    std::pair<std::chrono::nanoseconds, char const*> const limits[] = {{std::chrono::milliseconds(50), "0.05"},
                                                                       {std::chrono::nanoseconds(1), "1 ns"}};
    for (auto const& [limit, text] : limits) {
      auto comm = connected();
      comm.set_time_limit(limit);
      int number = 0;
      request never = comm.irecv(space_in(number), previous_rank(), phase::balance);
      auto const heard = outcome_of([&] { comm.wait_all(std::span(&never, 1)); });
      CHECK((heard.code == fault::timed_out || heard.code == fault::abandoned)); // the first one's reason
      CHECK(heard.says(std::string(" (balance) for more than ") + text));
      CHECK(heard.says(heard.code == fault::timed_out
                           ? "rank " + std::to_string(world_rank()) + " has waited to receive from rank " +
                                 std::to_string(previous_rank())
                           : " has given up: rank "));
      CHECK(never.active());
      comm.cancel(std::span(&never, 1));
      CHECK_FALSE(never.active());
      CHECK(outcome_of([&] {
              comm.isend(bytes_of(number), next_rank(), phase::control);
            }).says("cannot be used any more"));
      CHECK(same_everywhere("over"));
    }
  });
}

TEST_CASE("a wait in vain over TCP says what the ranks were doing, what has come and what has not") {
  on_several_ranks([] {
    auto comm = connected();
    if (world_rank() > 1) { // idle: nobody tells them in time
      CHECK(same_everywhere("over"));
      return;
    }
    int const peer = 1 - world_rank();
    comm.set_time_limit(std::chrono::milliseconds(200));
    comm.begin_operation("scheme", 12);
    int here = 0;
    int never = 0;
    int const mine = world_rank();
    std::vector<request> requests;
    requests.push_back(comm.irecv(space_in(here), peer, phase::reduce));
    requests.push_back(comm.isend(bytes_of(mine), peer, phase::reduce));
    requests.push_back(comm.irecv(space_in(never), peer, phase::gather));
    auto const heard = outcome_of([&] { comm.wait_all(std::span(requests)); });
    CHECK((heard.code == fault::timed_out || heard.code == fault::abandoned));
    CHECK(heard.says(" has waited to receive from rank " +
                     std::to_string(heard.code == fault::timed_out ? peer : mine) +
                     " (gather) in scheme, call 12 for more than 0.2"));
    CHECK(heard.says("complete: from rank "));
    CHECK(here == peer);
    comm.cancel(std::span(requests));
    CHECK(same_everywhere("over"));
  });
}

TEST_CASE("an allreduce over TCP that not everybody joins in time ends on every rank") {
  on_several_ranks([] {
    auto comm = connected();
    comm.set_time_limit(std::chrono::milliseconds(200));
    std::vector<float> numbers(10, 1.0F);
    if (world_rank() == 0) { // joins when all others have left
      CHECK(same_everywhere("left"));
    }
    auto const heard = outcome_of([&] { comm.allreduce(std::span(numbers), oktopk::reduction::sum, phase::reduce); });
    if (world_rank() != 0) {
      CHECK(same_everywhere("left"));
    }
    CHECK((heard.code == fault::timed_out || heard.code == fault::abandoned));
    CHECK(heard.says("has waited to receive from rank "));
    CHECK(outcome_of([&] { comm.isend({}, next_rank(), phase::control); }).says("cannot be used any more"));
    CHECK(same_everywhere("over"));
  });
}

TEST_CASE("a rank that gives up over TCP ends the waits of the others at once, with its reason") {
  on_several_ranks([] {
    for (bool const has_limit : {true, false}) {
      auto comm = connected({has_limit ? std::chrono::minutes(5) : std::chrono::minutes(0), {"127.0.0.1"}});
      auto const begun = clock_type::now();
      std::string const reason = "a bit fell over: " + std::string(3000, '-'); // longer than what is told
      if (world_rank() == 0) {
        comm.abort(oktopk::error(fault::damaged_message, reason));
        CHECK(outcome_of([&] { comm.isend({}, 1, phase::gather); }).code == fault::damaged_message);
      } else { // also those that wait for another one
        int number = 0;
        request never = comm.irecv(space_in(number), world_rank() == 1 ? 0 : 1, phase::balance);
        auto const heard = outcome_of([&] { comm.wait_all(std::span(&never, 1)); });
        CHECK(unlike(heard, fault::abandoned, "rank 0 has given up: a bit fell over") == "");
        comm.cancel(std::span(&never, 1));
      }
      CHECK(is_soon(begun));
      CHECK(same_everywhere("over"));
    }
  });
}

TEST_CASE("a rank that leaves by an exception tells the others, who wait for one another") {
  on_several_ranks([] {
    auto comm = connected();
    auto const begun = clock_type::now();
    if (world_rank() == 0) {
      CHECK_THROWS_AS(
          [&] {
            std::vector<std::byte> room(1000);
            request one;
            oktopk::detail::cancel_on_unwind const guard(comm, one);
            one = comm.irecv(room, 1, phase::reduce);
            throw std::runtime_error("in between");
          }(),
          std::runtime_error);
      communicating::check_left(comm, 1, 1);
    } else {
      auto const heard = outcome_of([&] { receive_number<int>(comm, previous_rank(), phase::gather); });
      CHECK(heard.says("rank 0 left a collective by an exception"));
      comm.cancel({});
    }
    CHECK(is_soon(begun));
    CHECK(same_everywhere("over"));
  });
}

TEST_CASE("memory of messages over TCP that are given up is not touched any more, whatever the peer does") {
  on_several_ranks([] {
    std::optional<tcp_communicator> comm = connected();
    constexpr std::size_t many = std::size_t(1) << 24; // more than the connection holds
    std::vector<std::byte> space(many, std::byte(7));
    auto sent = std::make_unique<std::vector<std::byte>>(many, std::byte(1));
    if (world_rank() == 0) {
      request receive = comm->irecv(space, 1, phase::reduce);
      CHECK(same_everywhere("posted"));
      comm->set_time_limit(std::chrono::milliseconds(100));
      CHECK(outcome_of([&] { comm->wait_all(std::span(&receive, 1)); }).code == fault::timed_out);
      CHECK(space.front() == std::byte(1)); // it has begun to arrive
      comm->cancel(std::span(&receive, 1));
      CHECK_FALSE(receive.active());
      std::vector<std::byte> const was = space;
      CHECK(same_everywhere("cancelled"));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      comm.reset();
      CHECK(space == was);
    } else {
      request send;
      if (world_rank() == 1) {
        send = comm->isend(*sent, 0, phase::reduce);
      }
      CHECK(same_everywhere("posted"));
      CHECK(same_everywhere("cancelled"));
      comm->cancel(std::span(&send, 1));
      sent.reset();
    }
    CHECK(same_everywhere("over"));
  });
}

TEST_CASE("messages that were complete before a rank leaves arrive, and so does all that it has sent at its end") {
  on_several_ranks([] {
    constexpr std::size_t many = std::size_t(1) << 22;
    std::vector<std::byte> space(many);
    {
      auto comm = connected();
      std::vector<std::byte> const sent(many, std::byte(world_rank() + 1));
      std::array<request, 2> both{comm.irecv(space, previous_rank(), phase::reduce),
                                  comm.isend(sent, next_rank(), phase::reduce)};
      comm.wait_all(both);
    } // without waiting for anybody
    CHECK(space == std::vector<std::byte>(many, std::byte(previous_rank() + 1)));
  });
}

TEST_CASE("a rank that ends without a word is named by those that wait for it, and by them to all others") {
  on_several_ranks([] {
    for (std::size_t const bytes : {std::size_t(4), std::size_t(1) << 26}) { // the second: in the middle of a message
      std::optional<tcp_communicator> comm = connected();
      int const last = world_size() - 1;
      std::vector<std::byte> space(bytes);
      request send;
      if (world_rank() == last && bytes > 4) { // a part of it: as much as the connection holds, while nobody reads
        send = comm->isend(space, 0, phase::reduce);
      }
      CHECK(same_everywhere("begun"));
      auto const begun = clock_type::now();
      if (world_rank() == last) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2)); // some wait by now
        send = {};
        comm.reset();
      } else { // rank 0 waits for the last one, 1 for 0, and so on
        request never;
        auto const heard = outcome_of([&] {
          never =
              comm->irecv(space, world_rank() == 0 ? last : world_rank() - 1, phase::reduce); // it may have gone by now
          comm->wait_all(std::span(&never, 1));
        });
        std::string const of_last = "rank " + std::to_string(last);
        CHECK(unlike(heard, world_rank() == 0 ? fault::communication : fault::abandoned,
                     " receive from " + of_last + " (reduce), and its connection to " + of_last + " has ended: ") ==
              "");
        CHECK(heard.says("rank 0 "));
        comm->cancel(std::span(&never, 1));
      }
      CHECK(is_soon(begun));
      CHECK(same_everywhere("over"));
    }
  });
}

TEST_CASE("a rank alone over TCP needs nobody, and no rank sends to itself or to one that there is not") {
  auto alone = tcp_communicator::rendezvous(std::filesystem::path("no folder"), "alone", 0, 1);
  double number = 2.5;
  alone.allreduce(std::span(&number, 1), oktopk::reduction::sum, phase::reduce);
  CHECK(number == 2.5);
  for (int const peer : {-1, 0, 1}) {
    CHECK(unlike(outcome_of([&] { alone.isend({}, peer, phase::control); }), fault::communication,
                 "rank 0 cannot send to rank " + std::to_string(peer) + " (control): there is no other such rank") ==
          "");
    CHECK(unlike(outcome_of([&] { alone.irecv({}, peer, phase::gather); }), fault::communication,
                 "cannot receive from rank " + std::to_string(peer) + " (gather)") == "");
  }
  CHECK(outcome_of([&] { alone.set_time_limit(std::chrono::nanoseconds(-1)); }).code == fault::option_out_of_range);
}

TEST_CASE("a message over TCP that exceeds the room of its receive is an error that says so, whichever is first") {
  on_several_ranks([] {
    for (bool const is_early : {false, true}) { // the message
      for (std::size_t const more : {std::size_t(1), std::size_t(1) << 24}) {
        auto comm = connected();
        std::vector<std::byte> const sent(1000 + more, std::byte(1));
        std::vector<std::byte> space(1000 + more, std::byte(7)); // of which the message may have 1000
        int const mine = world_rank();
        int const number = 1;
        request send;
        request behind;
        request receive;
        if (mine == 1 && is_early) {
          send = comm.isend(sent, 0, phase::reduce);
          behind = comm.isend(bytes_of(number), 0, phase::gather);
        }
        CHECK(same_everywhere("begun"));
        auto const heard = outcome_of([&] {
          if (mine == 0 && is_early && more == 1) {
            CHECK(receive_number<int>(comm, 1, phase::gather) == 1); // the other one has come as well
          }
          if (mine == 0) {
            receive = comm.irecv(std::span(space).first(1000), 1, phase::reduce);
          }
          CHECK(same_everywhere("expected"));
          if (mine == 1 && !is_early) {
            send = comm.isend(sent, 0, phase::reduce);
          }
          if (mine != 0) {
            receive_number<int>(comm, mine == 1 ? 0 : mine - 1, phase::balance); // which never comes
          }
          comm.wait_all(std::span(&receive, 1));
        });
        CHECK(unlike(heard, mine == 0 ? fault::communication : fault::abandoned,
                     std::to_string(1000 + more) + " bytes from rank 1 exceed the 1000 bytes of room for them") == "");
        CHECK(std::count(space.begin() + 1000, space.end(), std::byte(7)) == static_cast<std::ptrdiff_t>(more));
        std::array<request, 3> all{std::move(send), std::move(behind), std::move(receive)};
        comm.cancel(all);
        CHECK(same_everywhere("over"));
      }
    }
  });
}

TEST_CASE("another thread ends the wait of a rank over TCP, and so those of all ranks, with its reason") {
  on_several_ranks([] {
    for (bool const is_waiting : {true, false}) {
      auto comm = connected({std::chrono::minutes(0), {"127.0.0.1"}}); // no limit
      auto const begun = clock_type::now();
      std::thread other;
      if (world_rank() == 0) {
        other = std::thread([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(is_waiting ? 100 : 0));
          comm.abort_soon(oktopk::error(fault::damaged_message, "the program is to end"));
        });
        if (!is_waiting) {
          other.join();
        }
      }
      auto const heard = outcome_of([&] { receive_number<int>(comm, previous_rank(), phase::balance); });
      CHECK(unlike(heard, world_rank() == 0 ? fault::damaged_message : fault::abandoned, "the program is to end") ==
            "");
      if (other.joinable()) {
        other.join();
      }
      CHECK(is_soon(begun));
      CHECK(same_everywhere("over"));
    }
  });
}

TEST_CASE("a reduction over TCP gives the same for every length, by blocks of any size") {
  on_all_ranks([] {
    auto comm = connected();
    for (int const length : {0, 1, 2, 3, 5, 1000, 300'001}) {
      std::vector<double> numbers;
      std::vector<double> expected;
      int const ranks = world_size();
      for (int i = 0; i < length; ++i) {
        numbers.push_back(i % 1009 + world_rank());
        expected.push_back(ranks * (i % 1009) + ranks * (ranks - 1) / 2);
      }
      comm.allreduce(std::span(numbers), oktopk::reduction::sum, phase::reduce);
      CHECK((numbers == expected));
    }
  });
}

TEST_CASE("a communicator over TCP goes from thread to thread") {
  on_several_ranks([] {
    auto comm = connected();
    CHECK(comm.takes_other_threads());
    int heard = -1;
    std::thread([&] { heard = pass_around(comm, world_rank()); }).join();
    CHECK(heard == previous_rank());
    CHECK(pass_around(comm, world_rank()) == previous_rank());
  });
}

TEST_CASE("messages over TCP of any size arrive whole, in whatever order both sides start them") {
  on_several_ranks([] {
    struct message {
      int from;
      int to;
      phase use;
      std::size_t bytes;
    };
    constexpr std::size_t sizes[] = {0, 1, 15, 16, 17, 1000, 65'519, 65'520, 65'536, 65'537, 300'000, 2'000'000};
    std::mt19937 same(7); // on all ranks
    std::mt19937 own(static_cast<unsigned>(world_rank()));
    for (std::size_t const links : {1U, 3U}) {
      auto comm = connected({std::chrono::minutes(1), std::vector<std::string>(links, "127.0.0.1")});
      for (int round = 0; round < 10; ++round) {
        std::map<std::tuple<int, int, phase>, std::vector<message>> queues; // whose order is kept
        for (int i = 0; i < 60; ++i) {
          int const from = static_cast<int>(same() % static_cast<unsigned>(world_size()));
          int const by = 1 + static_cast<int>(same() % static_cast<unsigned>(world_size() - 1));
          auto const use = static_cast<phase>(same() % 3);
          std::size_t const bytes = sizes[same() % std::size(sizes)];
          int const to = (from + by) % world_size();
          queues[{from, to, use}].push_back({from, to, use, bytes});
        }
        auto const byte_of = [&](message const& each, std::size_t number) {
          return std::byte((static_cast<std::size_t>(each.from * 31 + each.to * 7 + static_cast<int>(each.use)) +
                            number * 3 + static_cast<std::size_t>(round)) %
                           251);
        };
        std::vector<std::vector<message>*> open;
        std::map<std::vector<message> const*, std::size_t> started;
        for (auto& [key, queue] : queues) {
          if (std::get<0>(key) == world_rank() || std::get<1>(key) == world_rank()) {
            open.push_back(&queue);
          }
        }
        std::deque<std::vector<std::byte>> memory;
        std::vector<request> requests;
        std::vector<std::tuple<std::size_t, std::size_t, std::size_t, std::byte>>
            received; // request, memory, bytes, value
        while (!open.empty()) {
          std::size_t const which = own() % open.size();
          auto const& queue = *open[which];
          std::size_t& number = started[&queue];
          message const& each = queue[number];
          std::byte const value = byte_of(each, number);
          if (each.from == world_rank()) {
            memory.emplace_back(each.bytes, value);
            requests.push_back(comm.isend(memory.back(), each.to, each.use));
          } else {
            memory.emplace_back(each.bytes + own() % 2, std::byte(255)); // the room may be larger
            received.emplace_back(requests.size(), memory.size() - 1, each.bytes, value);
            requests.push_back(comm.irecv(memory.back(), each.from, each.use));
          }
          if (++number == queue.size()) {
            open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
          }
        }
        comm.wait_all(requests);
        for (auto const& [at, of, bytes, value] : received) {
          auto const& room = memory[of];
          CHECK(requests[at].bytes() == bytes);
          CHECK(std::all_of(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(bytes),
                            [value = value](std::byte each) { return each == value; }));
          CHECK((room.size() == bytes || room.back() == std::byte(255)));
        }
      }
    }
  });
}

TEST_CASE("a write over TCP to a rank that has left is an error, and not a signal that ends the program") {
  on_several_ranks([] {
    std::optional<tcp_communicator> comm = connected();
    if (world_rank() == 0) {
      comm.reset();
    }
    CHECK(same_everywhere("left"));
    if (world_rank() != 0) {
      auto* const before = std::signal(SIGPIPE, SIG_DFL);
      std::vector<std::byte> const much(std::size_t(1) << 24);
      auto const heard = outcome_of([&] {
        for (int i = 0; i < 3; ++i) {
          request send = comm->isend(much, 0, phase::reduce);
          comm->wait_all(std::span(&send, 1));
        }
      });
      CHECK(unlike(heard, heard.code, " (reduce), and its connection to rank 0 has ended: ") == "");
      std::signal(SIGPIPE, before);
    }
    CHECK(same_everywhere("over"));
  });
}
