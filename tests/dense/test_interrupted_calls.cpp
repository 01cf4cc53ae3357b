// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Collectives beside the algorithms that an exception ends in the middle of their messages; algorithms are tried by
// text, in tests/algorithm.

#include "support/catch.hpp"
#include "support/failing.hpp"
#include "support/seeded.hpp"

#include <oktopk/comm/collectives.hpp>
#include <oktopk/dense/broadcast.hpp>
#include <oktopk/dense/local_buffers.hpp>
#include <oktopk/dense/ring.hpp>

using namespace oktopk_tests;

namespace {

using E = host_execution;
using C = failing_communicator;

constexpr std::int64_t count = 200;

std::vector<double> numbers_of(vector_of<float> const& values) {
  return {values.data(), values.data() + values.extent(0)};
}

} // namespace

TEST_CASE("a broadcast, barriers and a reduction of several vectors that fail leave no message behind") {
  for (int const ranks : {4, 3}) {
    CHECK(fault_of_failing_operations(ranks, [](C& comm) {
            auto const values = seeded_whole_numbers<float>(count, comm.rank());
            oktopk::detail::broadcast_one_to_all<E, C, float> broadcast;
            broadcast.run(E(), comm, values.data(), count, 1);
            broadcast.run(E(), comm, values.data(), count, 2);
            return numbers_of(values);
          }) == "");
    CHECK(fault_of_failing_operations(ranks, [](C& comm) {
            oktopk::detail::barrier_all_to_all(comm);
            oktopk::detail::barrier_all_to_one(comm, 1);
            return std::vector<double>();
          }) == "");
    CHECK(fault_of_failing_operations(ranks, [](C& comm) {
            auto const values = seeded_whole_numbers<float>(count, comm.rank());
            auto const more = seeded_whole_numbers<float>(count, comm.rank() + 10);
            float* const both[] = {values.data(), more.data()};
            oktopk::local_buffers<E, C, float, oktopk::ring<E, C, float>> reduce;
            reduce.run(E(), comm, both, nullptr, count);
            return numbers_of(more);
          }) == "");
  }
}
