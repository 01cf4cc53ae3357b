// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Buckets in the background over MPI: the same bits as on the caller's thread, errors on every rank, turns to launch.

#include "support/caught.hpp"
#include "support/collect.hpp"
#include "support/mpi_ranks.hpp"
#include "support/seeded.hpp"

#include <oktopk/bucketed.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/mpi.hpp>

#include <atomic>
#include <thread>

using namespace oktopk_tests;
using oktopk::bucket;
using oktopk::fault;

namespace {

using allreduce_type = oktopk::any_allreduce<host_execution>;
using buckets_type = oktopk::bucketed<allreduce_type>;

constexpr std::size_t tensors = 12;
std::vector<std::int64_t> const lengths(tensors, 1500);

oktopk::any_communicator world() {
  return oktopk::counted(oktopk::mpi_communicator::duplicate(MPI_COMM_WORLD));
}

buckets_type buckets_over(oktopk::any_communicator const& comm, bool overlap, std::string const& text = "ok_topk") {
  auto const make = [&](bucket const& of) {
    return oktopk::make_allreduce(host_execution(), comm, text, {.length = of.length, .k = 40});
  };
  return {host_execution(), comm, lengths, make, {.plan = {.bucket_bytes = 4 * 4000}, .overlap = overlap}};
}

std::vector<vector_of<float>> gradients_of(int rank, int iteration) {
  std::vector<vector_of<float>> all;
  seeded numbers(static_cast<std::uint64_t>(1000 * iteration + rank));
  for (std::int64_t const each : lengths) {
    all.emplace_back("gradient", static_cast<std::size_t>(each));
    for (std::int64_t i = 0; i < each; ++i) {
      all.back()(i) = static_cast<float>(numbers.uniform() - 0.5);
    }
  }
  return all;
}

void hand_over(buckets_type& buckets, std::vector<vector_of<float>> const& gradients) {
  for (std::size_t i = tensors; i-- > 0;) {
    buckets.ready(static_cast<int>(i), gradients[i]);
  }
}

std::vector<float> step(buckets_type& buckets, int rank, int iteration) {
  auto const gradients = gradients_of(rank, iteration);
  hand_over(buckets, gradients);
  buckets.wait();
  std::vector<float> all;
  for (std::size_t i = 0; i < tensors; ++i) {
    auto const average = to_vector(buckets.gradient(static_cast<int>(i)));
    all.insert(all.end(), average.begin(), average.end());
  }
  return all;
}

std::atomic<int> kernels = 0;
std::atomic<int> kernels_out_of_turn = 0;

void begin_kernel(char const*, std::uint32_t, std::uint64_t*) {
  kernels += 1;
  kernels_out_of_turn += oktopk::detail::has_launch_lock ? 0 : 1;
}

} // namespace

TEST_CASE("in the background buckets give the bits that they give on the caller's thread") {
  for (std::string const text : {"ok_topk", "topk_a", "dense"}) {
    CAPTURE(text);
    auto comm = world();
    auto background = buckets_over(comm, true, text);
    auto own_thread = buckets_over(comm, false, text);
    REQUIRE(background.overlaps());
    REQUIRE(!own_thread.overlaps());
    for (int iteration = 0; iteration < 10; ++iteration) {
      CHECK(bits(step(background, comm.rank(), iteration)) == bits(step(own_thread, comm.rank(), iteration)));
      auto const& times = background.last_step();
      CHECK(times.buckets.size() == background.plan().buckets.size());
      CHECK(times.communication() > 0);
    }
    CHECK(bits(background.state().residual) == bits(own_thread.state().residual));
  }
}

TEST_CASE("communication goes on while the caller computes") {
  auto comm = world();
  auto buckets = buckets_over(comm, true);
  REQUIRE(buckets.overlaps());
  std::size_t const count = buckets.plan().buckets.size();
  std::atomic<std::size_t> begun = 0;
  for (std::size_t i = 0; i < count; ++i) {
    buckets.feedback(static_cast<int>(i)).before_allreduce([&begun](auto const&) { begun += 1; });
  }
  for (int iteration = 0; iteration < 5; ++iteration) {
    begun = 0;
    auto const gradients = gradients_of(comm.rank(), iteration);
    hand_over(buckets, gradients);
    while (begun < count) { // a backward pass that lasts until all calls but the last are over
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    buckets.wait();
    auto const& times = buckets.last_step();
    double all_but_the_last = 0;
    for (std::size_t i = 0; i + 1 < count; ++i) {
      CHECK(times.buckets[i].ended <= times.wait_began);
      all_but_the_last += times.buckets[i].ended - times.buckets[i].began;
    }
    CHECK(times.buckets[count - 1].began < times.wait_began);
    CHECK(times.hidden() > all_but_the_last);
  }
}

TEST_CASE("all kernels of a step stand in a turn, and a turn is one thread's") {
  auto comm = world();
  auto buckets = buckets_over(comm, true);
  auto const others = Kokkos::Tools::Experimental::get_callbacks();
  Kokkos::Tools::Experimental::set_begin_parallel_for_callback(begin_kernel);
  Kokkos::Tools::Experimental::set_begin_parallel_reduce_callback(begin_kernel);
  Kokkos::Tools::Experimental::set_begin_parallel_scan_callback(begin_kernel);
  auto const gradients = gradients_of(comm.rank(), 0);
  kernels = 0;
  kernels_out_of_turn = 0;
  hand_over(buckets, gradients);
  buckets.wait();
  Kokkos::Tools::Experimental::set_callbacks(others);
  CHECK(kernels > static_cast<int>(tensors));
  CHECK((kernels_out_of_turn == 0 || !oktopk::detail::launches_need_lock));

  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  auto const take_turns = [&] {
    for (int i = 0; i < 20; ++i) {
      oktopk::launch_lock const launching;
      oktopk::launch_lock const the_same_lock;
      most = std::max(most.load(), ++inside);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      --inside;
      oktopk::detail::launch_unlock const lent;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  };
  std::thread other(take_turns);
  take_turns();
  other.join();
  CHECK(most == 1);
}

TEST_CASE("an error in the background reaches every rank in wait, and the next step goes on") {
  auto comm = world();
  auto buckets = buckets_over(comm, true);
  step(buckets, comm.rank(), 0);
  auto const before = buckets.state();
  int const culprit = comm.size() - 1;
  auto const heard = outcome_of([&] {
    auto const gradients = gradients_of(comm.rank(), 1);
    if (comm.rank() == culprit) {
      gradients[5](3) = std::numeric_limits<float>::infinity();
    }
    hand_over(buckets, gradients);
    buckets.wait();
  });
  CHECK(heard.code == fault::non_finite);
  CHECK(bits(buckets.state().residual) == bits(before.residual));
  CHECK(step(buckets, comm.rank(), 2).size() == tensors * 1500);
}
