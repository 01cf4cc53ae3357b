// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The verification itself: what is right passes, and each kind of wrong result is told on every rank.
#include <oktopk_bench/verify.hpp>

#include <oktopk/comm/in_process.hpp>

#include "support/catch.hpp"
#include "support/caught.hpp"

#include <functional>

namespace {

using oktopk_bench::host_result;

constexpr int ranks = 3;
constexpr std::int64_t k = 2;

// Rank 0 selects 1 and 4, rank 1 selects 1 and 5, rank 2 selects 0 and 5; the sums at 0, 1, 4, 5 are 7, -9, 6, 3, of
// which the two largest belong to 1 and 0.
std::vector<float> const accumulators[ranks] = {{1, -5, 0, 1, 6, 0}, {0, -4, 1, 0, 0, -4}, {7, 1, 0, 0, 0, 7}};
std::vector<std::int64_t> const contributed[ranks] = {{1}, {1}, {0}};

struct call {
  host_result result;
  oktopk::call_statistics figures{k, k};
  oktopk::allreduce_promises promised{.repeats = false}; // then nobody knows what is returned
};

call right_call(int rank) {
  call made;
  made.result.indices = {0, 1};
  made.result.values = {7, -9};
  made.result.contributed = contributed[rank];
  made.promised.local = oktopk::selection_promises{.low = 1, .high = 1, .largest = true};
  made.promised.global = made.promised.local;
  return made;
}

call threshold_call(int rank) {
  call made = right_call(rank);
  made.promised.local = oktopk::selection_promises{.low = 0.5, .high = 1.5, .largest = true};
  made.promised.global = made.promised.local;
  return made;
}

call dense_call() {
  call made;
  made.result.indices = {0, 1, 2, 3, 4, 5};
  made.result.values = {8, -8, 1, 1, 6, 3};
  made.result.contributed = made.result.indices;
  made.figures = {6, 6};
  made.promised.local = {};
  return made;
}

/// What all ranks said of the calls that `make(rank)` describes.
oktopk_tests::outcome verdict(std::function<call(int)> const& make) {
  auto const failures = oktopk::in_process::run_and_collect(ranks, [&](oktopk::in_process_communicator comm) {
    call const made = make(comm.rank());
    std::int64_t const wanted = made.promised.local ? k : 6;
    oktopk_bench::verify(comm, "test", accumulators[comm.rank()], made.result, made.figures, made.promised, wanted, {});
  });
  auto const first = oktopk_tests::outcome_of(failures[0]);
  for (auto const& each : failures) {
    CHECK(oktopk_tests::outcome_of(each) == first);
  }
  return first;
}

/// The same with one change on one rank.
oktopk_tests::outcome changed(std::function<call(int)> const& make, int on_rank,
                              std::function<void(call&)> const& change) {
  return verdict([&](int rank) {
    call made = make(rank);
    if (rank == on_rank || on_rank < 0) {
      change(made);
    }
    return made;
  });
}

} // namespace

TEST_CASE("verify passes what is right") {
  CHECK(verdict(right_call).text.empty());
  CHECK(verdict(threshold_call).text.empty());
  CHECK(verdict([](int) { return dense_call(); }).text.empty());
}

TEST_CASE("verify tells a result that differs between ranks") {
  CHECK(changed(right_call, 2, [](call& made) { made.result.values[0] = 8; }).says("digest"));
  CHECK(changed(right_call, 2, [](call& made) { made.result.indices[1] = 2; }).says("digest"));
}

TEST_CASE("verify tells a wrong value") {
  CHECK(changed(right_call, -1, [](call& made) { made.result.values[1] = -9.000001F; }).says("value at index 1"));
  CHECK(changed(threshold_call, -1, [](call& made) { made.result.values[0] = 7.5F; }).says("value at index 0"));
  auto const dense = [](int) { return dense_call(); };
  CHECK(changed(dense, -1, [](call& made) { made.result.values[2] = 0; }).says("value at index 2"));
}

TEST_CASE("verify tells a wrong choice") {
  auto const outcome = verdict([](int rank) {
    call made = right_call(rank);
    made.result.indices = {1, 4};
    made.result.values = {-9, 6};
    made.result.contributed = rank == 0   ? std::vector<std::int64_t>{1, 4}
                              : rank == 1 ? std::vector<std::int64_t>{1}
                                          : std::vector<std::int64_t>{};
    return made;
  });
  CHECK(outcome.says("index 0 (magnitude 7) is missing"));
}

TEST_CASE("verify tells too few entries") {
  auto const outcome = verdict([](int rank) {
    call made = right_call(rank);
    made.result.indices = {1};
    made.result.values = {-9};
    made.result.contributed = rank == 2 ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{1};
    made.figures.global_selected = 1;
    return made;
  });
  CHECK(outcome.says("1 entries instead of k = 2"));
}

TEST_CASE("verify tells wrong contributions") {
  CHECK(changed(right_call, 0, [](call& made) { made.result.contributed.clear(); }).says("exact top k"));
  CHECK(changed(right_call, 0, [](call& made) { made.result.contributed = {1, 4}; }).says("not in the result"));
  CHECK(
      changed(threshold_call, 1, [](call& made) { made.result.contributed = {0}; }).says("larger entry was left out"));
  // A selection by chunks has no one threshold: only the sum tells that rank 1's -4 is missing.
  CHECK(changed(threshold_call, 1, [](call& made) {
          made.result.contributed = {0};
          made.promised.local->largest = false;
        }).says("value at index 1"));
  // Rank 2's 1 at index 1 is no part of the sum there.
  CHECK(changed(threshold_call, 2, [](call& made) { made.result.contributed = {0, 1}; }).says("value at index 1"));
}

TEST_CASE("verify tells disorder") {
  CHECK(changed(right_call, -1, [](call& made) { made.result.indices = {1, 0}; }).says("do not ascend"));
  CHECK(changed(right_call, -1, [](call& made) { made.result.indices = {1, 6}; }).says("do not ascend"));
  CHECK(changed(right_call, -1, [](call& made) { made.result.values.pop_back(); }).says("2 indices, but 1 values"));
}

TEST_CASE("verify tells wrong figures") {
  CHECK(changed(right_call, 1, [](call& made) { made.figures.global_selected = 3; }).says("reports 3 entries"));
  CHECK(changed(right_call, 1, [](call& made) { made.figures.local_selected = 1; }).says("reports 1 selected"));
  CHECK(changed(threshold_call, 1, [](call& made) { made.figures.local_selected = 4; }).says("outside the band"));
}

TEST_CASE("verify subtracts what is returned") {
  auto const returned = [](int rank) {
    call made = threshold_call(rank);
    made.result.values[1] = -8;
    if (rank == 1) {
      made.result.returned_indices = {1};
      made.result.returned_values = {-1};
    }
    return made;
  };
  CHECK(verdict(returned).text.empty());
  CHECK(changed(returned, 1, [](call& made) { made.result.returned_values[0] = 1; }).says("value at index 1"));
  CHECK(changed(returned, 1, [](call& made) { made.result.returned_indices[0] = 3; }).says("value at index 1"));
  CHECK(changed(threshold_call, 0, [](call& made) {
          made.result.returned_indices = {3};
          made.result.returned_values = {1};
        }).says("at index 3, which the result has not"));
}

TEST_CASE("verify leaves values alone that are no sums of the contributions by the scheme's own word") {
  auto const partial = [](bool promised) {
    return [promised](int rank) {
      call made = right_call(rank);
      made.result.values[1] = -5;
      made.promised.conserves = promised;
      return made;
    };
  };
  CHECK(verdict(partial(false)).text.empty());
  CHECK(verdict(partial(true)).says("value at index 1"));
}
