// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// How ranks over TCP find each other, and what they hear where they do not.

#include "tcp/ranks.hpp"

#include "support/caught.hpp"
#include "support/messages.hpp"

#include <map>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::rendezvous_store;
using oktopk::tcp_communicator;

namespace {

auto const limit = std::chrono::seconds(30);

tcp_communicator meet(std::string const& key, std::vector<std::string> links) {
  return tcp_communicator::rendezvous(folder(), key, world_rank(), world_size(), {limit, std::move(links)});
}

std::size_t files_of(std::string const& key) {
  auto const all = std::filesystem::directory_iterator(folder());
  return static_cast<std::size_t>(std::count_if(
      begin(all), end(all), [&](auto const& each) { return each.path().filename().string().starts_with(key); }));
}

class variable {
public:
  explicit variable(char const* value) { value == nullptr ? unsetenv(name) : setenv(name, value, 1); }
  ~variable() { unsetenv(name); }
  variable(variable const&) = delete;
  variable& operator=(variable const&) = delete;

private:
  static constexpr char const* name = "GLOO_SOCKET_IFNAME";
};

} // namespace

TEST_CASE("ranks meet by two callbacks, by the interfaces of the environment and without any, and leave no file") {
  on_several_ranks([] {
    auto const files = rendezvous_store::in_folder(folder(), limit);
    std::map<std::string, int> asked;
    rendezvous_store const store{files.set, [&](std::string const& key) {
                                   ++asked[key];
                                   return files.get(key);
                                 }};
    int which = 0;
    for (char const* const names : {static_cast<char const*>(nullptr), "lo", "lo,lo"}) {
      variable const environment(names);
      auto comm =
          tcp_communicator::rendezvous(store, "callbacks" + std::to_string(which++), world_rank(), world_size());
      CHECK(pass_around(comm, world_rank()) == previous_rank());
      CHECK(pass_around(comm, 10 + world_rank()) == 10 + previous_rank());
    }
    CHECK(asked.size() == 3 * static_cast<std::size_t>(world_size() - 1));
    variable const environment("no such interface"); // an option comes before it
    auto comm = meet("files", {"127.0.0.1"});
    CHECK(pass_around(comm, world_rank()) == previous_rank());
    CHECK(same_everywhere("connected"));
    CHECK(files_of("files") == 0);
    CHECK(same_everywhere("seen"));
    auto again = meet("files", {"127.0.0.1"}); // so the key can be used again
    CHECK(pass_around(again, world_rank()) == previous_rank());
  });
}

TEST_CASE("several communicators over one folder have messages of their own") {
  on_several_ranks([] {
    auto one = meet("one", {"127.0.0.1"});
    auto two = meet("two", {"127.0.0.1"});
    std::array<int, 2> heard{};
    std::array<int, 2> const said{world_rank(), 10 + world_rank()};
    std::array<tcp_communicator::request, 2> first{
        two.irecv(space_in(heard[1]), previous_rank(), oktopk::phase::reduce),
        two.isend(bytes_of(said[1]), next_rank(), oktopk::phase::reduce)};
    std::array<tcp_communicator::request, 2> second{
        one.irecv(space_in(heard[0]), previous_rank(), oktopk::phase::reduce),
        one.isend(bytes_of(said[0]), next_rank(), oktopk::phase::reduce)};
    one.wait_all(second);
    two.wait_all(first);
    CHECK(heard == std::array<int, 2>{previous_rank(), 10 + previous_rank()});
  });
}

TEST_CASE("an interface or a host that there is not is an error on all ranks, which names it and the rank") {
  on_several_ranks([] {
    int which = 0;
    for (std::string const link : {"eth987", "no-such-host.invalid", "192.0.2.1"}) { // the last is of another machine
      std::string const key = "bad" + std::to_string(which++);
      auto const heard = outcome_of([&] { meet(key, {world_rank() == 1 ? link : "127.0.0.1"}); });
      CHECK(unlike(heard, fault::communication, "rank 1: ") == "");
      CHECK(heard.says("'" + link + "'"));
    }
    variable const environment("lo,eth987");
    auto const heard = outcome_of([&] { meet("environment", {}); });
    CHECK(unlike(heard, fault::communication, "rank 0: 'eth987' is neither") == "");
  });
}

TEST_CASE("ranks that disagree on their number or on their links hear of it") {
  on_several_ranks([] {
    auto const links = outcome_of([] {
      meet("links", world_rank() == 0 ? std::vector<std::string>{"lo", "lo"} : std::vector<std::string>{"127.0.0.1"});
    });
    CHECK(unlike(links, fault::ranks_disagree, "2 links") == "");
    CHECK(links.says("1 links"));
    auto const ranks = outcome_of([] {
      tcp_communicator::rendezvous(folder(), "number", world_rank(), world_size() + (world_rank() == 0 ? 0 : 1),
                                   {std::chrono::milliseconds(300), {"127.0.0.1"}});
    });
    // One that waits for a rank that never comes hears that.
    CHECK((ranks.code == fault::ranks_disagree || ranks.code == fault::timed_out));
  });
}

TEST_CASE("a rank that does not come is named by those that wait for it, within the limit") {
  on_several_ranks([] {
    if (world_rank() > 0) {
      auto const heard = outcome_of([] {
        tcp_communicator::rendezvous(folder(), "late", world_rank(), world_size(),
                                     {std::chrono::milliseconds(200), {"127.0.0.1"}});
      });
      CHECK(unlike(heard, fault::timed_out,
                   "rank " + std::to_string(world_rank()) + ", at the rendezvous with rank 0: ") == "");
      CHECK(heard.says("has not come within 0.2"));
    }
    CHECK(same_everywhere("over"));
  });
}

TEST_CASE("files of ranks that came before, a store that fails and a rank that there is not are errors") {
  on_several_ranks([] {
    rendezvous_store::in_folder(folder()).set("before." + std::to_string(world_rank()), "old");
    CHECK(unlike(outcome_of([] { meet("before", {"lo"}); }), fault::bad_file, "is there already, of ranks that came") ==
          "");
  });
  rendezvous_store const fails{
      [](std::string const&, std::string const&) { throw std::runtime_error("the store is down"); }, {}};
  CHECK(unlike(outcome_of([&] {
                 tcp_communicator::rendezvous(fails, "key", 0, 2, {limit, {"lo"}});
               }),
               fault::communication, "rank 0, at the rendezvous with rank 0: the store is down") == "");
  rendezvous_store const nobody_listens{[](std::string const&, std::string const&) {},
                                        [](std::string const&) { return "2 ranks and 1 links\ntoken\n127.0.0.1 1\n"; }};
  CHECK(unlike(outcome_of([&] {
                 tcp_communicator::rendezvous(nobody_listens, "key", 0, 2, {limit, {"lo"}});
               }),
               fault::communication,
               "rank 0 cannot connect to rank 1: 127.0.0.1 1: Connection refused; links, or GLOO_") == "");
  CHECK(outcome_of([] {
          rendezvous_store::in_folder("no/such/folder").set("a", "b");
        }).says("cannot write no/such/folder/a.part"));
  for (auto const& [rank, size] : {std::pair(2, 2), std::pair(-1, 2), std::pair(0, 0)}) {
    CHECK(outcome_of([rank = rank, size = size] { tcp_communicator::rendezvous(folder(), "x", rank, size); }).code ==
          fault::option_out_of_range);
  }
  CHECK(outcome_of([] { rendezvous_store::in_folder("x", std::chrono::seconds(-1)); }).code ==
        fault::option_out_of_range);
}

TEST_CASE("a process that is no rank connects, and is not taken for one, nor waited for") {
  on_several_ranks([] {
    std::vector<oktopk::detail::owned_file> strangers;
    auto const files = rendezvous_store::in_folder(folder(), limit);
    auto const get = [&](std::string const& key) {
      auto const record = files.get(key);
      std::size_t const line = record.rfind('\n', record.size() - 2) + 1; // the last one
      std::size_t const between = record.find(' ', line);
      auto const there = oktopk::detail::addresses_of_host(record.substr(line, between - line),
                                                           record.substr(between + 1, record.size() - between - 2));
      std::string const as_rank_0(40, '\0'); // a greeting with another token
      for (std::string const& said : {std::string(), std::string(3, 'x'), std::string(200, 'x'), as_rank_0}) {
        auto made = oktopk::detail::connect_to(there.front(), there.front(), oktopk::detail::deadline(limit));
        CHECK(::send(made.get(), said.data(), said.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(said.size()));
        strangers.push_back(std::move(made));
      }
      return record;
    };
    auto comm =
        tcp_communicator::rendezvous({files.set, get}, "strangers", world_rank(), world_size(), {limit, {"127.0.0.1"}});
    CHECK(pass_around(comm, world_rank()) == previous_rank());
  });
}
