// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What the communicator over a process group makes of torch's errors and time limits, and which messages are its own.

#include "torch/ranks.hpp"

#include "support/caught.hpp"
#include "support/messages.hpp"

#include <signal.h> // POSIX: sigaction

#include <array>
#include <thread>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::phase;
using oktopk::process_group_communicator;

namespace {

using request = process_group_communicator::request;

void check_refuses(process_group_communicator& comm) {
  int number = 0;
  CHECK(outcome_of([&] { comm.isend(bytes_of(number), next_rank(), phase::control); }).says("cannot be used any more"));
}

} // namespace

TEST_CASE("a write to a rank that has left is no signal that ends the program, unless the program wants it so") {
  on_all_ranks([group = new_group()] {
    struct restored {
      struct sigaction before = {};
      restored() { sigaction(SIGPIPE, nullptr, &before); }
      ~restored() { sigaction(SIGPIPE, &before, nullptr); }
    } const handler;
    static int heard = 0;
    heard = 0;
    signal(SIGPIPE, SIG_DFL);
    process_group_communicator const first(group);
    raise(SIGPIPE);
    signal(SIGPIPE, [](int) { heard += 1; });
    process_group_communicator const second(group);
    raise(SIGPIPE);
    CHECK(heard == 1);
  });
}

TEST_CASE("a wait over Gloo that exceeds the time limit names the peer and the phase, and can be cancelled") {
  on_several_ranks([] {
    auto comm = connected();
    comm.set_time_limit(std::chrono::milliseconds(50));
    int number = 0;
    request never = comm.irecv(space_in(number), previous_rank(), phase::balance);
    CHECK(same_everywhere("posted")); // the first whose time is over closes connections
    auto const begun = std::chrono::steady_clock::now();
    auto const heard = outcome_of([&] { comm.wait_all(std::span(&never, 1)); });
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(30));
    // Another rank's time may have been over before, which closes its connections.
    CHECK((heard.code == fault::timed_out || heard.code == fault::communication));
    CHECK(heard.says("rank " + std::to_string(world_rank()) + " has waited to receive from rank " +
                     std::to_string(previous_rank()) + " (balance)"));
    comm.cancel(std::span(&never, 1));
    CHECK_FALSE(never.active());
    check_refuses(comm);
  });
}

TEST_CASE("the first rank whose time is over says so, with the limit, and the request stays active") {
  on_several_ranks([] {
    auto comm = connected();
    int number = 0;
    if (world_rank() == 0) {
      comm.set_time_limit(std::chrono::milliseconds(50));
      request never = comm.irecv(space_in(number), 1, phase::gather);
      CHECK(same_everywhere("posted"));
      auto const heard = outcome_of([&] { comm.wait_all(std::span(&never, 1)); });
      CHECK(heard.code == fault::timed_out);
      CHECK(heard.says("rank 0 has waited to receive from rank 1 (gather) for more than 0.05"));
      CHECK(never.active());
      comm.cancel(std::span(&never, 1));
    } else { // hears of it long before the time limit of the group
      request never = comm.irecv(space_in(number), 0, phase::gather);
      CHECK(same_everywhere("posted"));
      auto const heard = outcome_of([&] { comm.wait_all(std::span(&never, 1)); });
      CHECK(heard.code == fault::communication);
      CHECK(heard.says("rank " + std::to_string(world_rank()) + " has waited to receive from rank 0 (gather): "));
      CHECK_FALSE(never.active());
      comm.cancel({});
    }
  });
}

TEST_CASE("an allreduce over Gloo that not everybody joins in time ends on every rank, and leaves the numbers alone") {
  on_several_ranks([] {
    auto comm = connected();
    comm.set_time_limit(std::chrono::milliseconds(100));
    if (world_rank() == 0) { // joins when all others have left
      CHECK(same_everywhere("left"));
    }
    auto numbers = std::make_unique<std::array<float, 10>>();
    numbers->fill(1);
    auto const heard =
        outcome_of([&] { comm.allreduce(std::span<float>(*numbers), oktopk::reduction::sum, phase::reduce); });
    CHECK(*numbers == std::array<float, 10>{1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
    numbers.reset(); // before the late rank joins
    if (world_rank() != 0) {
      CHECK(same_everywhere("left"));
    }
    CHECK((heard.code == fault::timed_out || heard.code == fault::communication));
    CHECK(heard.says("rank " + std::to_string(world_rank()) + " has waited for everybody in an allreduce"));
    check_refuses(comm);
  });
}

TEST_CASE("messages and reductions over Gloo work with a time limit as without") {
  on_all_ranks([] {
    auto comm = connected();
    comm.set_time_limit(std::chrono::minutes(1));
    if (world_size() > 1) {
      CHECK(pass_around(comm, world_rank()) == previous_rank());
    }
    double sum = 1;
    comm.allreduce(std::span<double>(&sum, 1), oktopk::reduction::sum, phase::reduce);
    CHECK(sum == world_size());
  });
}

TEST_CASE("receives that are cancelled take no message that comes later") {
  on_several_ranks([] {
    auto const group = new_group();
    process_group_communicator comm(group);
    std::vector<std::byte> spaces(std::size_t(1) << 20, std::byte(7));
    request never = comm.irecv(spaces, previous_rank(), phase::reduce);
    comm.cancel(std::span(&never, 1));
    CHECK(same_everywhere("cancelled"));
    // The peer knows nothing of it, and sends.
    process_group_communicator other(group);
    std::vector<std::byte> const sent(spaces.size(), std::byte(1));
    request late = other.isend(sent, next_rank(), phase::reduce);
    CHECK(same_everywhere("sent"));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK(std::count(spaces.begin(), spaces.end(), std::byte(7)) == static_cast<std::ptrdiff_t>(spaces.size()));
    other.cancel(std::span(&late, 1));
    CHECK(same_everywhere("over"));
  });
}

TEST_CASE("communicators with other tags share a group, and one that torch uses too") {
  on_several_ranks([] {
    auto const group = new_group();
    process_group_communicator one(group);
    process_group_communicator two(group, process_group_communicator::usual_first_tag + oktopk::phase_count);
    std::array<int, 3> heard{};
    std::array<int, 3> const said = {world_rank(), 10 + world_rank(), 20 + world_rank()};
    std::vector<at::Tensor> in{at::from_blob(&heard[2], {1}, at::kInt)};
    auto const torchs = group->recv(in, previous_rank(), 0);
    std::vector<request> all;
    all.push_back(two.irecv(space_in(heard[1]), previous_rank(), phase::control));
    all.push_back(one.irecv(space_in(heard[0]), previous_rank(), phase::control));
    all.push_back(one.isend(bytes_of(said[0]), next_rank(), phase::control));
    all.push_back(two.isend(bytes_of(said[1]), next_rank(), phase::control));
    std::vector<at::Tensor> out{at::full({1}, said[2], at::kInt)};
    group->send(out, next_rank(), 0)->wait();
    torchs->wait();
    one.wait_all(std::span(all).subspan(1, 2));
    two.wait_all(std::span(all));
    CHECK(heard == std::array<int, 3>{previous_rank(), 10 + previous_rank(), 20 + previous_rank()});
  });
}

TEST_CASE("an allreduce in a group of its own meets no call of the program in the other group") {
  on_several_ranks([] {
    auto const group = new_group();
    process_group_communicator comm(group, process_group_communicator::usual_first_tag, new_group());
    float ours = 1;
    std::vector<at::Tensor> theirs{at::full({1000}, 100.0)};
    auto const reduce = [&] { comm.allreduce(std::span<float>(&ours, 1), oktopk::reduction::sum, phase::reduce); };
    if (world_rank() == 0) { // in another order than on the other ranks
      auto const work = group->allreduce(theirs);
      reduce();
      work->wait();
    } else {
      reduce();
      group->allreduce(theirs)->wait();
    }
    CHECK(ours == static_cast<float>(world_size()));
    CHECK(theirs[0].eq(100.0 * world_size()).all().item<bool>());
  });
}

TEST_CASE("what torch refuses is an error with the name of the call") {
  CHECK(outcome_of([] {
          process_group_communicator(c10::intrusive_ptr<c10d::ProcessGroup>());
        }).says("needs a process group"));
  outcome const refused =
      outcome_of([] { oktopk::detail::torch_call("send", [] { TORCH_CHECK(false, "one line\nand another"); }); });
  CHECK(refused.code == fault::communication);
  CHECK(refused.says("send: one line"));
  CHECK_FALSE(refused.says("\n"));
  on_all_ranks([] {
    auto comm = connected();
    int number = 0;
    for (int const peer : {-1, world_size(), world_size() + 5}) {
      outcome const heard = outcome_of([&] { comm.isend(bytes_of(number), peer, phase::control); });
      CHECK(heard.code == fault::communication);
      CHECK(heard.says("send: there is no rank " + std::to_string(peer)));
    }
  });
}
