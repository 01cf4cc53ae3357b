// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The dense family over MPI and between ranks of one process: the same bits, the same traffic. Long enough that MPI
// does not buffer what is sent.

#include "support/catch.hpp"
#include "support/kept_update.hpp"
#include "support/mpi_ranks.hpp"
#include "support/seeded.hpp"

#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/mpi.hpp>

using namespace oktopk_tests;

namespace {

constexpr std::int64_t length = 300'001;

struct seen {
  kept_update update;
  std::vector<std::int64_t> traffic;
};

template <template <class> class Algorithm, class Comm>
seen call_twice(Comm inner) {
  oktopk::counted comm(inner);
  Algorithm<oktopk::counted<Comm>> allreduce(host_execution(), comm, {.length = length});
  seen all;
  for (int iteration = 0; iteration < 2; ++iteration) {
    all.update = keep_update(allreduce(seeded_accumulator<float>(length, comm.rank(), iteration)));
  }
  auto const sum = comm.total();
  all.traffic = {sum.messages_sent, sum.messages_received, sum.bytes_sent, sum.bytes_received};
  return all;
}

template <template <class> class Algorithm>
void same_over_mpi() {
  on_all_ranks([] {
    seen const over_mpi = call_twice<Algorithm>(oktopk::mpi_communicator::duplicate(MPI_COMM_WORLD));
    seen const here =
        of_twin_in_process([](oktopk::in_process_communicator comm) { return call_twice<Algorithm>(comm); });
    CHECK(difference(over_mpi.update, here.update) == "");
    CHECK(over_mpi.traffic == here.traffic);
    CHECK(over_mpi.update.indices.size() == static_cast<std::size_t>(length));
  });
}

template <class C>
using ring = oktopk::dense_ring<host_execution, C>;
template <class C>
using ring_chunked = oktopk::dense_ring_chunked<host_execution, C>;
template <class C>
using ring_pipelined = oktopk::dense_ring_pipelined<host_execution, C>;
template <class C>
using halving_doubling = oktopk::dense_halving_doubling<host_execution, C>;
template <class C>
using recursive_doubling = oktopk::dense_recursive_doubling<host_execution, C>;
template <class C>
using coded_ring_chunked =
    oktopk::dense_ring_chunked<host_execution, C, float, std::int32_t, oktopk::coded_wire<oktopk::block_float>>;
template <class C>
using coded_recursive_doubling =
    oktopk::dense_recursive_doubling<host_execution, C, float, std::int32_t, oktopk::coded_wire<oktopk::block_float>>;

} // namespace

TEST_CASE("the dense family gives the same bits and sends the same bytes over MPI as in one process") {
  same_over_mpi<ring>();
  same_over_mpi<ring_chunked>();
  same_over_mpi<ring_pipelined>();
  same_over_mpi<halving_doubling>();
  same_over_mpi<recursive_doubling>();
  same_over_mpi<coded_ring_chunked>();
  same_over_mpi<coded_recursive_doubling>();
}
