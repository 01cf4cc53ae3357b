// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Algorithms over TCP: the sums of MPI's and the in-process ranks, and calls that one rank leaves in the middle.

#include "tcp/ranks.hpp"

#include "support/caught.hpp"
#include "support/instances.hpp"
#include "support/kept_update.hpp"
#include "support/messages.hpp"
#include "support/seeded.hpp"

#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/decorator.hpp>
#include <oktopk/comm/in_process.hpp>

using namespace oktopk_tests;
using oktopk::fault;

namespace {

using E = host_execution;

/// A communicator whose n-th operation fails on one rank: a send, a receive or a wait.
class failing : public oktopk::communicator_decorator<oktopk::tcp_communicator> {
public:
  failing(oktopk::tcp_communicator inner, int operation)
      : communicator_decorator(std::move(inner)), left_(std::make_shared<int>(operation)) {}

  request isend(std::span<std::byte const> out, int peer, oktopk::phase use) {
    step();
    return inner().isend(out, peer, use);
  }
  request irecv(std::span<std::byte> in, int peer, oktopk::phase use) {
    step();
    return inner().irecv(in, peer, use);
  }
  template <oktopk::execution_space X>
  void start(X const&, std::span<oktopk::bulk_message const> messages, std::span<request> requests) {
    oktopk::start_one_by_one(*this, messages, requests);
  }
  void wait_all(std::span<request> requests) {
    step();
    inner().wait_all(requests);
  }

  bool has_failed() const { return *left_ <= 0; }

private:
  void step() {
    if (--*left_ == 0) {
      throw oktopk::error(fault::communication, "the network is down");
    }
  }

  std::shared_ptr<int> left_;
};

constexpr std::int64_t length = 3000;

template <class Comm>
std::vector<kept_update> calls(Comm comm, std::string const& text) {
  auto allreduce = oktopk::make_allreduce(E(), std::move(comm), text, {.length = length, .k = 100});
  std::vector<kept_update> updates;
  for (int call = 0; call < 2; ++call) {
    auto const accumulator = seeded_accumulator<float>(length, world_rank(), call);
    updates.push_back(keep_update(allreduce(accumulator)));
  }
  return updates;
}

} // namespace

TEST_CASE("algorithms over TCP give what they give over ranks of one process, also dense and automatic ones") {
  on_all_ranks([] {
    for (std::string const text : {"ok_topk", "topk_a", "gtopk", "topk_dsa", "dense", "automatic"}) {
      INFO(text);
      auto const over_tcp = calls(connected(), text);
      CHECK(over_tcp.size() == 2);
      if (text != "dense" && text != "automatic") { // of which the first adds in another order, and the second measures
        std::vector<kept_update> here;
        oktopk::in_process::run(world_size(), [&](oktopk::in_process_communicator comm) {
          auto allreduce = oktopk::make_allreduce(E(), comm, text, {.length = length, .k = 100});
          for (int call = 0; call < 2; ++call) {
            auto const accumulator = seeded_accumulator<float>(length, comm.rank(), call);
            auto const update = keep_update(allreduce(accumulator));
            if (comm.rank() == world_rank()) {
              here.push_back(update);
            }
          }
        });
        for (std::size_t call = 0; call < 2; ++call) {
          CHECK(difference(over_tcp[call], here[call]) == "");
        }
      }
    }
  });
}

TEST_CASE("whichever operation of a rank fails over TCP, all others hear of it, and new connections work") {
  on_several_ranks([] {
    auto const expected = calls(connected(), "ok_topk");
    int failures = 0;
    for (int const culprit : {0, world_size() - 1}) {
      for (int const operation : {1, 2, 3, 7, 12, 20, 40}) {
        failing comm(connected(), world_rank() == culprit ? operation : std::numeric_limits<int>::max());
        auto const begun = std::chrono::steady_clock::now();
        auto const heard = outcome_of([&] {
          auto const updates = calls(comm, "ok_topk");
          for (std::size_t call = 0; call < 2; ++call) {
            CHECK(difference(updates[call], expected[call]) == "");
          }
          oktopk::detail::barrier_all_to_all(comm); // who has all its messages hears here
        });
        bool const fails = same_everywhere(world_rank() == culprit && !comm.has_failed() ? "not so many" : "") == false;
        if (fails) {
          CHECK(heard.text == "");
          continue;
        }
        ++failures;
        CHECK(heard.code == (world_rank() == culprit ? fault::communication : fault::abandoned));
        std::string const of_culprit = "rank " + std::to_string(culprit);
        CHECK(unlike(heard, heard.code,
                     world_rank() == culprit ? "the network is down" : of_culprit + " has given up") == "");
        CHECK((world_rank() == culprit || heard.says(of_culprit + " left a collective by an exception")));
        CHECK(outcome_of([&] { pass_around(comm, 0); }).says("cannot be used any more"));
        CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(20));
      }
    }
    CHECK(failures >= 8);
    auto const again = calls(connected(), "ok_topk");
    for (std::size_t call = 0; call < 2; ++call) {
      CHECK(difference(again[call], expected[call]) == "");
    }
  });
}
