// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Another k from one call to the next: the calls are those of an object made with that k and the state so far.

#include "algorithm/record.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"

#include <oktopk/catalogue/catalogue.hpp>

namespace test_of_set_k {

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;

namespace {

constexpr std::int64_t length = 700;

} // namespace

TEST_CASE("after set_k an algorithm does what one made with that k does from the same state") {
  std::vector<std::string> texts{"ok_topk(local=reused, global=reused)"};
  for (auto const& algorithm : oktopk::list_allreduces()) {
    // What automatic calls goes by the clock.
    if (algorithm.name != "automatic" &&
        std::ranges::any_of(algorithm.options, [](auto const& option) { return option.key == "k"; })) {
      texts.push_back(algorithm.name);
    }
  }
  for (std::string const& text : texts) {
    for (int const ranks : {1, 4}) {
      CAPTURE(text, ranks);
      oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
        auto const with_k = [&](std::int64_t k) {
          return oktopk::make_allreduce(execution(), counting(comm), text, {.length = length, .k = k});
        };
        auto changing = with_k(200);
        std::vector<float> residual(static_cast<std::size_t>(length), 0);
        int iteration = 0;
        for (std::int64_t const k : {std::int64_t(200), std::int64_t(30), std::int64_t(0), length, std::int64_t(7)}) {
          changing.set_k(k);
          CHECK(changing.k() == k);
          auto made = with_k(k);
          made.restore(changing.state());
          CHECK((made.bound_words() == changing.bound_words() || iteration > 0)); // gaussian_k's is of its last call
          for (int call = 0; call < 3; ++call, ++iteration) {
            auto const input = accumulator_of({comm.rank(), ranks, iteration}, residual, correlated{7, 3});
            auto const one = observe(changing, input);
            CHECK(difference(one, observe(made, input)) == "");
            residual = one.residual;
          }
        }
      });
    }
  }
}

TEST_CASE("a k that is out of range or differs between ranks is an error on every rank, and k stays") {
  auto const refused = [](std::int64_t of_rank_1, std::int64_t of_others, std::string const& words, fault code) {
    oktopk::in_process::run(3, [&](in_process_communicator comm) {
      auto allreduce = oktopk::make_allreduce(execution(), comm, "ok_topk", {.length = length, .k = 20});
      auto const heard = outcome_of([&] { allreduce.set_k(comm.rank() == 1 ? of_rank_1 : of_others); });
      CHECK(unlike(heard, code, words) == "");
      CHECK(allreduce.k() == 20);
    });
  };
  refused(-1, 5, "rank 1: k = -1 is not in [0, length]", fault::k_out_of_range);
  refused(length + 1, length + 1, "k = 701 is not in [0, length], length = 700", fault::k_out_of_range);
  refused(6, 5, "rank 1 has k = 6", fault::ranks_disagree);
}

} // namespace test_of_set_k
