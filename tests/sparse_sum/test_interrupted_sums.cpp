// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Sums that an exception or a dead rank ends in the middle of their messages, and messages that come in any order.

#include "sparse_sum/given.hpp"
#include "support/failing.hpp"
#include "support/simulation.hpp"

using namespace oktopk_tests;

namespace {

using C = failing_communicator;

struct with_memory_missing : oktopk::sum_policies<> {
  using format = exhausted_coo;
};

struct in_stages : oktopk::sum_policies<> {
  using schedule = oktopk::radix;
};

// Two calls, so that the second one finds the workspace of the first.
template <class Policies, class Comm>
std::vector<double> two_sums(Comm& comm,
                             typename oktopk::sparse_sum<host_execution, Comm, Policies>::options how = {}) {
  how.length = 300;
  oktopk::sparse_sum<host_execution, Comm, Policies> sum(host_execution(), comm, how);
  std::vector<double> numbers;
  for (std::uint64_t call = 0; call < 2; ++call) {
    auto const mine = entries_of_rank<std::int32_t, float>(entries_lie::anywhere, 300, 1, comm.rank(), call);
    Kokkos::View<std::int32_t const*, host_memory> const indices(mine.indices.data(), mine.indices.size());
    Kokkos::View<float const*, host_memory> const values(mine.values.data(), mine.values.size());
    auto const& all = sum(indices, values);
    for (std::size_t i = 0; i < all.indices().extent(0); ++i) {
      numbers.push_back(all.indices()(i));
      numbers.push_back(all.values()(i));
    }
  }
  return numbers;
}

} // namespace

TEST_CASE("sparse_sum: whichever message fails, the call ends everywhere and leaves no message behind") {
  CHECK(fault_of_failing_operations(4, [](C& comm) { return two_sums<oktopk::sum_policies<>>(comm); }) == "");
  CHECK(fault_of_failing_operations(3, [](C& comm) { return two_sums<oktopk::sum_policies<>>(comm); }) == "");
  CHECK(fault_of_failing_operations(4, [](C& comm) { return two_sums<in_stages>(comm, {.schedule = {.radix = 2}}); }) ==
        "");
}

TEST_CASE("sparse_sum: whichever encoding fails, the call ends everywhere and leaves no message behind") {
  CHECK(fault_of_failing_encodings(4, [](C& comm) { return two_sums<with_memory_missing>(comm); }) == "");
}

TEST_CASE("sparse_sum: no order of messages changes a bit, and a rank that dies leaves nobody waiting") {
  using comm_type = oktopk::in_process_communicator;
  constexpr int ranks = 5;
  std::vector<double> expected;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    oktopk::in_process::simulated_run run;
    oktopk::in_process::simulation world{.seed = seed, .result = &run};
    int const dead = seed % 2 == 1 ? static_cast<int>(seed / 2 % ranks) : -1;
    if (dead >= 0) {
      world.faults.faults.push_back({.rank = dead, .message = 1 + static_cast<std::int64_t>(seed * 5 % 61)});
    }
    std::vector<std::vector<double>> found(ranks);
    oktopk::in_process::options how;
    how.simulated = world;
    auto const thrown = oktopk::in_process::run_and_collect(
        ranks,
        [&](comm_type comm) {
          comm.set_time_limit(std::chrono::seconds(5)); // of virtual time
          found[static_cast<std::size_t>(comm.rank())] = two_sums<oktopk::sum_policies<>>(comm);
        },
        how);
    INFO("seed " << seed);
    expected = seed == 0 ? found[0] : expected;
    for (int rank = 0; rank < ranks; ++rank) {
      auto const at = static_cast<std::size_t>(rank);
      bool const died = oktopk::in_process::has_died(thrown[at]);
      CHECK((!died || rank == dead));
      if (!died) {
        auto const heard = outcome_of(thrown[at]);
        CHECK((heard.code == oktopk::fault::none
                   ? found[at] == expected
                   : dead >= 0 && !run.injections.empty() && oktopk::detail::breaks_communicator(heard.code)));
      }
    }
  }
}
