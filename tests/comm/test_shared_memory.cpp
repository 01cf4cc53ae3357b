// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "comm/suite.hpp"
#include "comm/testing.hpp"

#include <oktopk/comm/shared_memory.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <numeric>
#include <thread>
#include <type_traits>

using namespace oktopk_tests;
using communicator = oktopk::shared_memory_communicator;

static_assert(oktopk::communicator<communicator>);

namespace {

constexpr auto enough = std::chrono::seconds(300);

std::string new_name() {
  static int number = 0;
  return "/oktopk-test-" + std::to_string(getpid()) + "-" + std::to_string(number++);
}

/// Runs `body(rank, name)` in as many processes; gives what each of them printed.
template <class Body>
std::vector<std::string> in_processes(int ranks, Body const& body) {
  std::string const name = new_name();
  std::vector<pid_t> children;
  std::vector<int> ends;
  for (int rank = 0; rank < ranks; ++rank) {
    int ways[2] = {};
    REQUIRE(pipe(ways) == 0);
    std::cout.flush();
    pid_t const child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      dup2(ways[1], STDOUT_FILENO); // where Catch reports what fails
      try {
        body(rank, name);
      } catch (std::exception const& thrown) {
        std::cout << "FAILED: " << thrown.what() << "\n";
      }
      std::cout.flush();
      _exit(0);
    }
    close(ways[1]);
    children.push_back(child);
    ends.push_back(ways[0]);
  }
  std::vector<std::string> printed;
  for (int const end : ends) {
    std::string& text = printed.emplace_back();
    std::array<char, 4096> part{};
    for (ssize_t got = 0; (got = read(end, part.data(), part.size())) > 0;) {
      text.append(part.data(), static_cast<std::size_t>(got));
    }
    close(end);
  }
  for (pid_t const child : children) {
    int status = 0;
    CHECK((waitpid(child, &status, 0) == child && status == 0));
  }
  return printed;
}

/// The same with communicators; nothing may fail.
template <class Body>
void run(int ranks, Body const& body) {
  for (std::string const &printed :
       in_processes(ranks, [&](int rank, std::string const& name) { body(communicator(name, rank, ranks, enough)); })) {
    CHECK((printed.find("FAILED") == std::string::npos ? std::string() : printed) == "");
  }
}

/// What each rank hears, as "CODE: SENTENCE".
template <class Body>
std::vector<outcome> heard(int ranks, Body const& body) {
  std::vector<outcome> all;
  for (std::string const &printed : in_processes(ranks, [&](int rank, std::string const& name) {
         communicator comm(name, rank, ranks, enough);
         outcome const mine = outcome_of([&] { body(comm); });
         std::cout << static_cast<int>(mine.code) << " " << mine.text << std::flush;
       })) {
    std::size_t const gap = printed.find(' ');
    all.push_back({static_cast<oktopk::fault>(std::stoi("0" + printed.substr(0, gap))), printed.substr(gap + 1)});
  }
  return all;
}

// Threads of a parent that has used OpenMP are not there in its children.
constexpr bool can_fork = std::is_same_v<Kokkos::DefaultHostExecutionSpace, Kokkos::Serial>;

} // namespace

TEST_CASE("shared_memory keeps the contract of a communicator") {
  if (can_fork) {
    check_communicator([](auto const& body) {
      for (int const ranks : {1, 2, 3, 5, 8}) {
        run(ranks, body);
      }
    });
  }
}

TEST_CASE("shared_memory moves messages that are far longer than a ring, with more ranks than cores") {
  run(24, [](communicator comm) {
    constexpr std::size_t count = 200000;
    std::vector<int> out(count);
    std::vector<int> in(count);
    std::iota(out.begin(), out.end(), 1000000 * comm.rank());
    int const before = communicating::before(comm);
    for (int round = 0; round < 3; ++round) {
      oktopk::detail::exchange(comm, std::as_bytes(std::span(out)), communicating::next(comm),
                               std::as_writable_bytes(std::span(in)), before, phase::gather);
      CHECK(in[0] == 1000000 * before);
      CHECK(in[count - 1] == 1000000 * before + static_cast<int>(count) - 1);
    }
    std::vector<double> sums(5000, comm.rank());
    comm.allreduce(std::span(sums), reduction::sum, phase::reduce);
    CHECK(std::all_of(sums.begin(), sums.end(), [](double each) { return each == 24 * 23 / 2; }));
  });
}

TEST_CASE("a rank that has ended is an error on those that wait for it, and the others hear why") {
  auto const all = heard(3, [](communicator& comm) {
    oktopk::detail::begin_operation(comm, "test", 7);
    if (comm.rank() == 1) {
      std::cout << "0 " << std::flush;
      _exit(0); // with nothing said and nothing cleaned up
    }
    receive_number<int>(comm, comm.rank() == 0 ? 1 : 0, phase::balance); // rank 2 waits for rank 0
  });
  CHECK(unlike(all[0], fault::communication,
               "rank 0 waits to receive from rank 1 (balance) in test, call 7, but rank 1 has ended") == "");
  CHECK(unlike(all[2], fault::abandoned, "rank 0 has given up (this rank was in test, call 7): rank 0 waits") == "");
}

TEST_CASE("what a rank has sent before it ended still arrives") {
  auto const all = heard(2, [](communicator& comm) {
    if (comm.rank() == 1) {
      send_number(comm, 6, 0, phase::reduce);
      std::cout << "0 " << std::flush;
      _exit(0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CHECK(receive_number<int>(comm, 1, phase::reduce) == 6);
  });
  CHECK(all[0].code == fault::none);
}

TEST_CASE("a rank that does not answer in time is an error that names it") {
  auto const all = heard(2, [](communicator& comm) {
    if (comm.rank() == 0) {
      comm.set_time_limit(std::chrono::milliseconds(50));
    }
    receive_number<int>(comm, 1 - comm.rank(), comm.rank() == 0 ? phase::gather : phase::control);
  });
  CHECK(unlike(all[0], fault::timed_out,
               "rank 0 has waited to receive from rank 1 (gather) for more than 0.050000 s") == "");
  CHECK(unlike(all[1], fault::abandoned, "rank 0 has given up") == "");
}

TEST_CASE("a message that exceeds its room is an error on all ranks") {
  auto const all = heard(2, [](communicator& comm) {
    if (comm.rank() == 0) {
      send_number(comm, std::array<int, 3>{1, 2, 3}, 1, phase::reduce);
    }
    receive_number<int>(comm, 1 - comm.rank(), phase::reduce);
  });
  CHECK(all[0].code == fault::abandoned);
  CHECK(unlike(all[1], fault::communication, "12 bytes from rank 0 exceed the 4 bytes of room for them") == "");
}

TEST_CASE("a start that cannot be is an error") {
  auto const refused = [](std::string const& name, int rank, int ranks,
                          std::chrono::nanoseconds limit = std::chrono::milliseconds(50)) {
    return outcome_of([&] { communicator(name, rank, ranks, limit); });
  };
  CHECK(refused(new_name(), 2, 2).says("there is no rank 2 of 2"));
  CHECK(refused(new_name(), 0, 0).says("there is no rank 0 of 0"));
  std::string const name = new_name();
  outcome const alone = refused(name, 0, 2);
  CHECK(alone.code == fault::timed_out);
  CHECK(alone.says("rank 0 has waited for everybody to come in the start of " + name));
  CHECK(refused(name, 0, 2).code == fault::timed_out); // the name can be used again
  in_processes(1, [&](int, std::string const&) {       // one that ends while it waits for the others
    std::thread([&] { refused(name, 0, 2, std::chrono::seconds(100)); }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    _exit(0);
  });
  CHECK(refused(name, 0, 2).code == fault::timed_out);
}

TEST_CASE("a job starts where another one was ended during its start, also one of other ranks") {
  for (int round = 0; round < 6; ++round) {
    std::string const name = new_name();
    int const ranks_before = round % 2 == 0 ? 3 : 5;
    in_processes(2, [&](int rank, std::string const&) { // its last ranks; the others never come
      std::thread([&] { communicator(name, ranks_before - 1 - rank, ranks_before, enough); }).detach();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      _exit(0);
    });
    CHECK(std::filesystem::exists("/dev/shm" + name));
    for (std::string const &printed : in_processes(3, [&](int rank, std::string const&) {
           communicator comm(name, rank, 3, std::chrono::seconds(20));
           std::vector<double> sums(5000, rank + 1.0);
           comm.allreduce(std::span(sums), reduction::sum, phase::reduce);
           std::cout << sums[4999];
         })) {
      CHECK(printed == "6");
    }
    CHECK_FALSE(std::filesystem::exists("/dev/shm" + name));
  }
}

TEST_CASE("memory that others may read, or that is another user's, is refused") {
  auto const refused_with = [](auto const& change) {
    std::string const name = new_name();
    int const file = shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
    REQUIRE(file >= 0);
    REQUIRE(change(file) == 0);
    outcome const heard = outcome_of([&] { communicator(name, 0, 1, std::chrono::milliseconds(50)); });
    CHECK(std::filesystem::exists("/dev/shm" + name) == (heard.code != fault::none)); // it is not this job's to remove
    close(file);
    shm_unlink(name.c_str());
    return heard;
  };
  CHECK(refused_with([](int file) { return fchmod(file, 0600); }) == outcome());
  for (mode_t const mode : {0604U, 0640U, 0666U}) {
    CHECK(
        refused_with([=](int file) { return fchmod(file, mode); }).says("it is another user's, or others have rights"));
  }
  if (geteuid() == 0) {
    CHECK(refused_with([](int file) { return fchown(file, 65534, 65534); }).says("it is another user's"));
  }
}

TEST_CASE("a process that stops while it enters keeps the others waiting for the limit, and no longer") {
  std::string const name = new_name();
  int const file = shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(file >= 0);
  struct flock door = {};
  door.l_type = F_WRLCK;
  door.l_start = 1 << 24;
  door.l_len = 1;
  REQUIRE(fcntl(file, F_OFD_SETLK, &door) == 0);
  CHECK(outcome_of([&] {
          communicator(name, 0, 1, std::chrono::milliseconds(50));
        }).says("another process that enters it does not go on"));
  close(file);
  shm_unlink(name.c_str());
}

TEST_CASE("ranks that start with other numbers of ranks hear so") {
  std::vector<std::string> const printed = in_processes(2, [](int rank, std::string const& name) {
    std::cout << outcome_of([&] { communicator(name, rank, 2 + rank, enough); });
  });
  CHECK(printed[0].find("rank 1 has come to ") != std::string::npos);
  CHECK(printed[1].find("rank 0 has come to ") != std::string::npos);
  CHECK(printed[0].find(" with another number of ranks than rank 0") != std::string::npos);
}
