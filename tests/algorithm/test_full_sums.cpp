// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A result with the sums of all that the ranks have at its indices, by policies and by text; and larger results.

#include "support/call.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/exchange/full_sums.hpp>

namespace test_of_full_sums {

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;

namespace {

struct filled : oktopk::default_policies {
  using sums = oktopk::full_sums;
};

auto by_text(in_process_communicator const& comm, char const* text, std::int64_t length) {
  return oktopk::make_allreduce(execution(), comm, text, {.length = length, .k = 1});
}

std::vector<std::int32_t> indices(auto const& of) {
  auto const found = to_vector(of);
  return {found.begin(), found.end()};
}

} // namespace

TEST_CASE_ON(comm, 2,
             "a filled result has what a rank has not selected, which contributes, and formats round none of it") {
  std::vector<float> const mine =
      comm.rank() == 0 ? std::vector<float>{0.5F, 9, 0, 1} : std::vector<float>{0.25F, 1, 8, 2};
  oktopk::ok_topk<execution, in_process_communicator, filled> typed(execution(), comm, {.length = 4, .k = 1});
  auto named = by_text(comm, "ok_topk(fill=true, format=packed, values=sign)", 4);
  auto plain = by_text(comm, "ok_topk", 4);
  auto const values = to_view(mine);
  auto const check = [](auto const& update) {
    CHECK(indices(update.indices()) == std::vector<std::int32_t>{1});
    CHECK(to_vector(update.values()) == std::vector<float>{10});
    CHECK(indices(update.contributed()) == std::vector<std::int32_t>{1});
    CHECK(update.returned().size() == 0);
  };
  check(typed(values));
  check(named(values));
  auto const& update = plain(values);
  CHECK(to_vector(update.values()) == std::vector<float>{9});
  CHECK(indices(update.contributed()).size() == (comm.rank() == 0 ? 1 : 0));
  CHECK(typed.promises({.length = 4, .k = 1}).full_sums);
  CHECK(typed.bound_words() > plain.bound_words());
}

TEST_CASE_ON(comm, 3, "a full sum that overflows is an error of all ranks, and the next call goes on") {
  oktopk::ok_topk<execution, in_process_communicator, filled> allreduce(execution(), comm, {.length = 4, .k = 1});
  auto const before = allreduce.state().iteration;
  // What rank 1 selects is elsewhere, so the sum of what was selected at index 1 is finite.
  std::vector<float> const too_large = comm.rank() == 0   ? std::vector<float>{0, 3e38F, 0, 0}
                                       : comm.rank() == 1 ? std::vector<float>{0, 2e38F, 2.5e38F, 0}
                                                          : std::vector<float>{0, 0, 0, 1};
  auto const heard = outcome_of([&] { allreduce(to_view(too_large)); });
  CHECK(unlike(heard, fault::non_finite, "a sum or partial sum at index 1 overflows") == "");
  CHECK(allreduce.state().iteration == before);
  CHECK(to_vector(allreduce(to_view(std::vector<float>{0, 1, 0, 2})).values()) == std::vector<float>{6});
}

TEST_CASE_ON(comm, 2, "a result of more than k has the largest of all sums, up to the length, and no factor below 1") {
  std::vector<float> const mine =
      comm.rank() == 0 ? std::vector<float>{0, 9, 0, 0, 1} : std::vector<float>{0, 0, 8, 0, 1};
  auto const sums_of = [&](char const* text) {
    auto allreduce = by_text(comm, text, 5);
    return to_vector(allreduce(to_view(mine)).values());
  };
  CHECK(sums_of("ok_topk") == std::vector<float>{9});
  CHECK(sums_of("ok_topk(result=2)") == std::vector<float>{9, 8});
  CHECK(sums_of("ok_topk(result=1e300)") == std::vector<float>{9, 8}); // no more were selected
  CHECK(sums_of("ok_topk(k=5, result=1.5)").size() == 5);
  CHECK(outcome_of([&] { sums_of("ok_topk(result=0.5)"); }).code == fault::option_out_of_range);
  CHECK(outcome_of([&] { sums_of("ok_topk(result=nan)"); }).code == fault::option_out_of_range);
  auto const differs = outcome_of([&] { sums_of(comm.rank() == 1 ? "ok_topk(fill=true)" : "ok_topk"); });
  CHECK(differs.code == fault::ranks_disagree);
}

} // namespace test_of_full_sums
