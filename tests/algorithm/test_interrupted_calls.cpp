// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Calls that an exception ends in the middle of their messages: nothing arrives in memory that is gone, nobody hangs,
// and nobody goes on with messages that are out of order.

#include "algorithm/suite.hpp"
#include "support/catch.hpp"
#include "support/failing.hpp"
#include "support/policies.hpp"
#include "support/seeded.hpp"

#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/algorithm/topk_dsa.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/partition/uniform.hpp>
#include <oktopk/select/reused_threshold.hpp>

using namespace oktopk_tests;

namespace {

using E = host_execution;
using C = failing_communicator;

// Calls an algorithm twice: the second call finds the workspace of the first.
template <class Allreduce>
std::vector<double> two_calls_of(Allreduce& allreduce, int rank) {
  std::vector<double> numbers;
  for (int call = 0; call < 2; ++call) {
    auto const accumulator = seeded_accumulator<float>(allreduce.length(), rank, call);
    auto const& update = allreduce(accumulator);
    for (std::size_t i = 0; i < update.indices().extent(0); ++i) {
      numbers.push_back(update.indices()(i));
      numbers.push_back(update.values()(i));
    }
  }
  return numbers;
}

std::string fault_of_operations(std::string const& text, int ranks) {
  return fault_of_failing_operations(ranks, [&](C& comm) {
    auto allreduce = oktopk::make_allreduce(E(), comm, text, {.length = 300, .k = 24});
    return two_calls_of(allreduce, comm.rank());
  });
}

template <class Algorithm>
std::vector<double> two_calls(C& comm) {
  typename Algorithm::options how{.length = 300};
  SET_IF_THERE(how.k, 24);
  if constexpr (requires { how.deliver.gather.ratio; }) {
    how.deliver.gather.ratio = 1; // balances
  }
  SET_IF_THERE(how.local_select.tau_prime, 2);
  Algorithm allreduce(E(), comm, how);
  return two_calls_of(allreduce, comm.rank());
}

template <class Algorithm>
std::string fault_of_encodings(int ranks) {
  return fault_of_failing_encodings(ranks, [](C& comm) { return two_calls<Algorithm>(comm); });
}

/// Runs out of memory between two steps of a call, where no message is under way, or finds damage there, in one of the
/// calls of all ranks.
struct failing_between_steps : oktopk::sampled {
  using sampled::sampled;
  static inline int calls = 0;
  static inline int damage_in = 0;

  bool due(std::int64_t iteration) const {
    exhausted_coo::take_memory();
    if (++calls == damage_in) {
      throw oktopk::error(oktopk::fault::damaged_message, "the counts are none");
    }
    return sampled::due(iteration);
  }
};

using between_steps =
    oktopk::ok_topk<E, C, policies_of<oktopk::coo<>, oktopk::exact, oktopk::exact, failing_between_steps>>;
using reusing = oktopk::ok_topk<E, C, policies_of<exhausted_coo, oktopk::reused_threshold, oktopk::reused_threshold>>;

} // namespace

TEST_CASE("ok_topk: whichever message fails, the call ends everywhere and leaves no message behind") {
  CHECK(fault_of_operations("ok_topk(ratio=1)", 4) == "");
  CHECK(fault_of_operations("ok_topk(local=reused(tau_prime=2), global=reused, ratio=1)", 4) == "");
  CHECK(fault_of_operations("paper_ok_topk(ratio=1)", 4) == "");
}

TEST_CASE("whichever message of an algorithm fails, the call ends everywhere and leaves no message behind") {
  // Pieces so short that several of a step are under way, and coded ones.
  std::vector<std::string> texts{"halving_doubling(chunk_bytes=120, ahead=2)"};
  for (std::string const level : {"collective", "message"}) {
    std::string const coded = "(codec=block_float, cutoff_bytes=0, segment=16, codec_level=" + level + ")";
    texts.insert(texts.end(), {"ring_chunked" + coded, "recursive_doubling" + coded, "dense_rabenseifner" + coded});
  }
  for (auto const& algorithm : oktopk::list_allreduces()) {
    // How often automatic sends goes by the clock. ok_topk stands above.
    if (algorithm.name != "automatic" && !algorithm.name.ends_with("ok_topk")) {
      texts.push_back(algorithm.name);
    }
  }
  for (std::string const& text : texts) {
    bool const is_dense = subject_of(text).about.is_dense();
    for (int const ranks : {4, 3, 7}) { // a power of two; a pair that folds; blocks of four, two and one
      if (is_dense || ranks < 7) {
        INFO(text << " on " << ranks << " ranks");
        CHECK(fault_of_operations(text, ranks) == "");
      }
    }
  }
}

TEMPLATE_TEST_CASE("whichever encoding fails, the call ends everywhere and leaves no message behind", "",
                   (oktopk::ok_topk<E, C, oktopk::with_format<exhausted_coo>>), reusing,
                   (oktopk::topk_a<E, C, oktopk::with_format<exhausted_coo>>),
                   (oktopk::topk_dsa<E, C, oktopk::with_format<exhausted_coo>>),
                   (oktopk::gtopk<E, C, oktopk::with_format<exhausted_coo>>),
                   (oktopk::gaussian_k<E, C, exhausted_coo>)) {
  CHECK(fault_of_encodings<TestType>(4) == "");
}

TEST_CASE("a rank that runs out of memory between two steps leaves the call, and the others hear of it at once") {
  failing_between_steps::damage_in = 0;
  CHECK(fault_of_encodings<between_steps>(4) == "");
  CHECK(fault_of_encodings<between_steps>(2) == "");
}

TEST_CASE("a rank that alone finds damage between two steps gives up, and the others hear why") {
  using failing = failing_between_steps;
  for (failing::damage_in = 1; failing::damage_in <= 4; ++failing::damage_in) {
    failing::calls = 0;
    failing_plan plan;
    auto const all = run_interrupted(4, plan, [](C& comm) { return two_calls<between_steps>(comm); });
    int found = 0;
    for (interrupted_rank const& each : all) {
      bool const alone = each.thrown == "oktopk: the counts are none";
      found += alone ? 1 : 0;
      CHECK((alone || each.thrown.find("has given up") != std::string::npos));
      CHECK(each.thrown.find("the counts are none") != std::string::npos);
      CHECK(each.afterwards.says("cannot be used any more"));
    }
    CHECK(found == 1);
  }
}

namespace {

/// Messages of more than 4 KiB, which rank 0 has, end the call.
template <class Algorithm, class Input>
void check_long_messages(int ranks, std::int64_t k, Input const& input_of) {
  failing_plan plan;
  plan.longest = 4096;
  auto const all = run_interrupted(ranks, plan, [&](C& comm) {
    Algorithm allreduce(E(), comm, {.length = 4000, .k = k});
    return std::vector<double>(allreduce(input_of(comm.rank())).indices().extent(0));
  });
  CHECK(all[0].thrown == "oktopk: a message is too long");
  for (interrupted_rank const& each : all) {
    CHECK((&each == &all[0] ||
           each.thrown.find("rank 0 has given up (this rank was in ok_topk, call 0)") != std::string::npos));
    CHECK(each.afterwards.says("cannot be used any more"));
  }
}

} // namespace

TEST_CASE("messages that the communicator refuses, on all ranks or on one, end the call, and nobody goes on") {
  check_long_messages<oktopk::ok_topk<E, C>>(2, 2000,
                                             [](int rank) { return seeded_accumulator<float>(4000, rank, 0); });
  using uniform = oktopk::ok_topk<E, C, policies_of<oktopk::coo<>, oktopk::exact, oktopk::exact, oktopk::uniform>>;
  check_long_messages<uniform>(4, 600, [](int rank) {
    vector_of<float> const accumulator("accumulator", 4000);
    for (std::size_t i = 0; i < accumulator.extent(0); ++i) {
      bool const third = i >= 2000 && i < 3000; // all of rank 0 goes to rank 2
      accumulator(i) = rank == 0 ? (third ? 2.0F : 0.1F) : 1.0F + static_cast<float>(i * 7919 % 1000);
    }
    return accumulator;
  });
}
