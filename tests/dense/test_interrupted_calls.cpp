// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Dense collectives that an exception ends in the middle of their messages.

#include "support/catch.hpp"
#include "support/failing.hpp"
#include "support/seeded.hpp"

#include <oktopk/codec/block_float.hpp>
#include <oktopk/comm/collectives.hpp>
#include <oktopk/dense/broadcast.hpp>
#include <oktopk/dense/coded_wire.hpp>
#include <oktopk/dense/halving_doubling.hpp>
#include <oktopk/dense/local_buffers.hpp>
#include <oktopk/dense/rabenseifner.hpp>
#include <oktopk/dense/recursive_doubling.hpp>
#include <oktopk/dense/ring.hpp>
#include <oktopk/dense/swing.hpp>

using namespace oktopk_tests;

namespace {

using E = host_execution;
using C = failing_communicator;

constexpr std::int64_t count = 200;

std::vector<double> numbers_of(vector_of<float> const& values) {
  return {values.data(), values.data() + values.extent(0)};
}

/// Twice the same vector, for the second call finds the workspace of the first.
template <class Collective>
std::vector<double> two_calls(C& comm, Collective collective, float* lost) {
  E const exec;
  auto const values = seeded_whole_numbers<float>(count, comm.rank());
  for (int call = 0; call < 2; ++call) {
    collective.run(exec, comm, values.data(), lost, count);
  }
  exec.fence();
  return numbers_of(values);
}

template <class Collective>
std::string fault_of(int ranks, Collective const& collective, bool with_lost = false) {
  return fault_of_failing_operations(ranks, [&](C& comm) {
    vector_of<float> const lost("lost", static_cast<std::size_t>(count));
    return two_calls(comm, collective, with_lost ? lost.data() : nullptr);
  });
}

template <class Collective>
Collective coded(oktopk::codec_level level) {
  typename Collective::options how;
  how.level = level;
  how.cutoff_bytes = 0;
  how.ranks_may_differ = true;
  SET_IF_THERE(how.segment, 16);
  return Collective(how);
}

/// Cut into pieces, so that several messages of a step are under way.
struct cut_halving_doubling : oktopk::halving_doubling<E, C, float> {
  cut_halving_doubling() : oktopk::halving_doubling<E, C, float>({.chunk_bytes = 120, .ahead = 2}) {}
};

} // namespace

// A power of two; a pair that folds; blocks of four, two and one.
TEMPLATE_TEST_CASE("whichever message fails, the collective ends everywhere and leaves no message behind", "",
                   (oktopk::ring<E, C, float>), (oktopk::ring_chunked<E, C, float>),
                   (oktopk::ring_pipelined<E, C, float>), (oktopk::halving_doubling<E, C, float>), cut_halving_doubling,
                   (oktopk::recursive_doubling<E, C, float>), (oktopk::rabenseifner<E, C, float>),
                   (oktopk::swing<E, C, float>)) {
  for (int const ranks : {4, 3, 7}) {
    CHECK(fault_of(ranks, TestType()) == "");
  }
}

TEMPLATE_TEST_CASE("whichever coded message fails, the collective ends everywhere and leaves no message behind", "",
                   (oktopk::ring_chunked<E, C, float, oktopk::coded_wire<oktopk::block_float>>),
                   (oktopk::recursive_doubling<E, C, float, oktopk::coded_wire<oktopk::block_float>>),
                   (oktopk::rabenseifner<E, C, float, oktopk::coded_wire<oktopk::block_float>>)) {
  for (auto const level : {oktopk::codec_level::collective, oktopk::codec_level::message}) {
    for (int const ranks : {4, 3}) {
      CHECK(fault_of(ranks, coded<TestType>(level), true) == "");
    }
  }
}

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
