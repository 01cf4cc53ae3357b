// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// One rank alone gives what one rank of a world of one gives.

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/kept_update.hpp"
#include "support/messages.hpp"
#include "support/seeded.hpp"

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/comm/self.hpp>

using namespace oktopk_tests;
using oktopk::in_process_communicator;
using oktopk::self_communicator;

namespace {

constexpr std::int64_t length = 2000;

template <class Algorithm, class Comm>
std::vector<kept_update> updates(Comm comm, typename Algorithm::options const& how) {
  std::vector<kept_update> all;
  Algorithm allreduce(host_execution(), comm, how);
  for (int iteration = 0; iteration < 6; ++iteration) {
    all.push_back(keep_update(allreduce(seeded_accumulator<float>(length, 0, iteration))));
  }
  return all;
}

template <template <class> class Algorithm, class Options>
std::vector<kept_update> same_alone(Options const& set) {
  using alone_type = Algorithm<self_communicator>;
  using world_type = Algorithm<in_process_communicator>;
  typename alone_type::options alone_options{.length = length};
  typename world_type::options world_options{.length = length};
  set(alone_options);
  set(world_options);
  auto const alone = updates<alone_type>(self_communicator(), alone_options);
  oktopk::in_process::run(1, [&](in_process_communicator comm) {
    CHECK(difference(updates<world_type>(comm, world_options), alone) == "");
  });
  return alone;
}

template <class Comm>
using ok_topk = oktopk::ok_topk<host_execution, Comm>;

template <class Comm>
using dense = oktopk::dense<host_execution, Comm>;

} // namespace

TEST_CASE("a lone rank has nobody to talk to and nothing to wait for") {
  self_communicator comm;
  CHECK(comm.rank() == 0);
  CHECK(comm.size() == 1);
  CHECK(comm.can_access<Kokkos::HostSpace>());
  int number = 3;
  CHECK(outcome_of([&] { comm.isend(bytes_of(number), 0, oktopk::phase::control); }).code ==
        oktopk::fault::communication);
  CHECK(outcome_of([&] { comm.irecv(space_in(number), 0, oktopk::phase::control); }).code ==
        oktopk::fault::communication);
  std::vector<self_communicator::request> none(4);
  CHECK_NOTHROW(comm.wait_all(none));
  double x = 2.5;
  comm.allreduce(std::span<double>(&x, 1), oktopk::reduction::sum, oktopk::phase::reduce);
  CHECK(x == 2.5);
}

TEST_CASE("ok_topk over a lone rank gives what a world of one gives") {
  auto const updates = same_alone<ok_topk>([](auto& how) { how.k = 50; });
  CHECK(updates[0].indices.size() == 50);
  CHECK(updates[0].contributed == updates[0].indices);
}

TEST_CASE("dense over a lone rank gives what a world of one gives: the accumulator") {
  auto const updates = same_alone<dense>([](auto&) {});
  auto const accumulator = seeded_accumulator<float>(length, 0, 5);
  REQUIRE(updates[5].value_bits.size() == static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < updates[5].value_bits.size(); ++i) {
    REQUIRE(updates[5].value_bits[i] == __builtin_bit_cast(std::uint32_t, accumulator(i)));
  }
}
