// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Ranks share one thread, and the runtime keeps exceptions per thread: each rank must see its own and no others.

#include "support/catch.hpp"
#include "support/messages.hpp"

#include <oktopk/comm/in_process.hpp>

#include <exception>
#include <stdexcept>

using namespace oktopk_tests;
using oktopk::in_process_communicator;

namespace {

constexpr int ranks = 5;

std::string label(std::string const& what, int rank, int round) {
  return what + " of rank " + std::to_string(rank) + " in round " + std::to_string(round);
}

std::string current_text() {
  try {
    throw;
  } catch (std::exception const& current) {
    return current.what();
  }
}

// Communicates while the stack unwinds, so that other ranks run in the middle of a throw.
class talks_when_destroyed {
public:
  talks_when_destroyed(in_process_communicator comm, std::vector<int>& seen) : comm_(comm), seen_(seen) {}
  ~talks_when_destroyed() {
    pass_around(comm_, 0);
    seen_.push_back(std::uncaught_exceptions());
    pass_around(comm_, 0);
  }
  talks_when_destroyed(talks_when_destroyed const&) = delete;
  talks_when_destroyed& operator=(talks_when_destroyed const&) = delete;

private:
  in_process_communicator comm_;
  std::vector<int>& seen_;
};

} // namespace

TEST_CASE("ranks throw, handle and rethrow while others are in handlers of their own") {
  std::vector<int> finished;
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    CHECK(std::current_exception() == nullptr);
    for (int round = 0; round < 4; ++round) {
      std::string const outer = label("outer", comm.rank(), round);
      std::string const inner = label("inner", comm.rank(), round);
      try {
        throw std::runtime_error(outer);
      } catch (std::runtime_error const& caught) {
        pass_around(comm, round);
        CHECK(caught.what() == outer);
        CHECK(current_text() == outer);
        try {
          pass_around(comm, round);
          throw std::logic_error(inner);
        } catch (std::logic_error const& nested) {
          pass_around(comm, round); // communicates inside a handler inside a handler
          CHECK(nested.what() == inner);
          CHECK(current_text() == inner);
        }
        pass_around(comm, round);
        CHECK(current_text() == outer);
      }
      CHECK(std::current_exception() == nullptr);
      pass_around(comm, round);
    }
    finished.push_back(comm.rank());
  });
  CHECK(finished.size() == static_cast<std::size_t>(ranks));
}

TEST_CASE("ranks leave their handlers in another order than they entered them") {
  std::vector<std::string> texts(3);
  oktopk::in_process::run(3, [&](in_process_communicator comm) {
    auto const me = static_cast<std::size_t>(comm.rank());
    try {
      throw std::runtime_error(label("error", comm.rank(), 0));
    } catch (std::runtime_error const&) {
      if (comm.rank() > 0) { // rank 0 goes first, and the others wait for it inside their handlers
        receive_number<int>(comm, comm.rank() - 1, oktopk::phase::control);
      }
      texts[me] = current_text();
    }
    if (comm.rank() < 2) {
      send_number(comm, 1, comm.rank() + 1, oktopk::phase::control);
    }
  });
  CHECK(texts == std::vector<std::string>{label("error", 0, 0), label("error", 1, 0), label("error", 2, 0)});
}

TEST_CASE("an exception in flight on one rank is in flight on no other") {
  std::vector<int> in_flight;
  std::vector<int> elsewhere;
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    for (int round = 0; round < ranks; ++round) {
      if (comm.rank() == round) {
        try {
          talks_when_destroyed const talker(comm, in_flight);
          throw std::runtime_error("unwinding");
        } catch (std::runtime_error const& caught) {
          CHECK(std::string(caught.what()) == "unwinding");
        }
      } else {
        pass_around(comm, 0);
        elsewhere.push_back(std::uncaught_exceptions());
        pass_around(comm, 0);
      }
      CHECK(std::uncaught_exceptions() == 0);
    }
  });
  CHECK(in_flight == std::vector<int>(ranks, 1));
  CHECK(elsewhere == std::vector<int>(ranks * (ranks - 1), 0));
}

TEST_CASE("a world may run inside a handler, and ends where it began") {
  std::vector<bool> clean;
  try {
    throw std::runtime_error("outside");
  } catch (std::runtime_error const&) {
    oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
      clean.push_back(std::current_exception() == nullptr);
      try {
        throw std::logic_error(label("inside", comm.rank(), 0));
      } catch (std::logic_error const&) {
        pass_around(comm, 0);
        CHECK(current_text() == label("inside", comm.rank(), 0));
      }
    });
    CHECK(current_text() == "outside");
  }
  CHECK(std::current_exception() == nullptr);
  CHECK(clean == std::vector<bool>(ranks, true));
}

TEST_CASE("every rank's own exception comes out, also of ranks that failed while others handled theirs") {
  auto const thrown = oktopk::in_process::run_and_collect(ranks, [](in_process_communicator comm) {
    try {
      throw std::runtime_error("first");
    } catch (std::runtime_error const&) {
      pass_around(comm, 0);
      throw std::logic_error(label("second", comm.rank(), 0));
    }
  });
  for (int rank = 0; rank < ranks; ++rank) {
    CHECK_THROWS_WITH(std::rethrow_exception(thrown[static_cast<std::size_t>(rank)]), label("second", rank, 0));
  }
}
