// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The real NCCL on one GPU, which is one rank: what can be shown without a second one.

#include "nccl/numbers.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/seeded.hpp"

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/allreduce.hpp>
#include <oktopk/comm/self.hpp>
#include <oktopk/nccl.hpp>

using namespace oktopk_tests;

namespace {

using nccl = oktopk::paired<oktopk::self_communicator, oktopk::detail::nccl_bulk<device>>;

nccl connected() {
  return oktopk::nccl_communicator(device(), oktopk::self_communicator());
}

/// What nccl's allreduce makes of some floats.
std::vector<float> reduced(nccl& comm, std::vector<float> const& values, oktopk::reduction op) {
  Kokkos::View<float*, device_memory> const there("values", values.size());
  auto const here = Kokkos::create_mirror_view(there);
  std::copy(values.begin(), values.end(), here.data());
  Kokkos::deep_copy(there, here);
  comm.bulk().allreduce(std::span<float>(there.data(), there.extent(0)), op, oktopk::phase::reduce);
  Kokkos::deep_copy(here, there);
  return {here.data(), here.data() + here.extent(0)};
}

template <class Algorithm>
std::vector<float> entries_of(Algorithm& allreduce) {
  constexpr std::int64_t length = 3000;
  std::vector<float> all;
  for (int iteration = 0; iteration < 4; ++iteration) {
    auto const accumulator =
        Kokkos::create_mirror_view_and_copy(device_memory(), seeded_accumulator<float>(length, 0, iteration));
    auto const& update = allreduce(accumulator);
    auto const indices = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), update.indices());
    auto const values = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), update.values());
    for (std::size_t i = 0; i < indices.extent(0); ++i) {
      all.push_back(static_cast<float>(indices(i)));
      all.push_back(values(i));
    }
  }
  return all;
}

} // namespace

TEST_CASE("messages of the real nccl take their place among the kernels of their instance") {
  nccl comm = connected();
  device const exec;
  numbers const out("out", 1000);
  numbers const in("in", 1000);
  for (int round = 0; round < 5; ++round) { // nothing waits but the last line
    Kokkos::deep_copy(exec, out, 100 * round);
    pass_on(comm, exec, out, 0, in, 0);
  }
  Kokkos::deep_copy(exec, out, -3);
  CHECK(first_of(exec, in) == 400);
}

TEST_CASE("a wait with a time limit ends when the message of the real nccl has come") {
  nccl comm = connected();
  comm.bulk().set_time_limit(std::chrono::seconds(30));
  device const exec;
  numbers const out("out", 1000);
  numbers const in("in", 1000);
  Kokkos::deep_copy(exec, out, 7);
  pass_on(comm, exec, out, 0, in, 0);
  CHECK(first_of(exec, in) == 7);
}

TEST_CASE("sums, maxima and minima of the real nccl keep NaN and the order of zeros") {
  nccl comm = connected();
  std::vector<float> const values = {1.5F, -2.5F, 0.0F, -0.0F, std::numeric_limits<float>::quiet_NaN()};
  for (auto const op : {oktopk::reduction::sum, oktopk::reduction::max, oktopk::reduction::min}) {
    auto const got = reduced(comm, values, op);
    CHECK(got[0] == 1.5F);
    CHECK(got[1] == -2.5F);
    CHECK(!std::signbit(got[2]));
    CHECK(std::signbit(got[3]));
    CHECK(std::isnan(got[4]));
  }
}

TEST_CASE("algorithms over the real nccl give what they give without it") {
  nccl comm = connected();
  oktopk::self_communicator self;
  {
    oktopk::ok_topk<device, nccl> over(device(), comm, {.length = 3000, .k = 90});
    oktopk::ok_topk<device, oktopk::self_communicator> alone(device(), self, {.length = 3000, .k = 90});
    auto const got = entries_of(over);
    CHECK(got.size() == 4 * 2 * 90);
    CHECK(got == entries_of(alone));
  }
  {
    oktopk::dense<device, nccl> over(device(), comm, {.length = 3000});
    oktopk::dense<device, oktopk::self_communicator> alone(device(), self, {.length = 3000});
    CHECK(entries_of(over) == entries_of(alone));
  }
}

TEST_CASE("a duplicate of the real nccl has messages of its own") {
  nccl comm = connected();
  auto const other = oktopk::detail::nccl_bulk<device>::duplicate(device(), comm.bulk().get());
  CHECK(other.rank() == 0);
  CHECK(other.size() == 1);
  CHECK(other.get() != comm.bulk().get());
}

TEST_CASE("a call that the real nccl refuses is an error that says why, and ends the communicator") {
  nccl comm = connected();
  device const exec;
  numbers const incoming("incoming", 10);
  auto const refused = outcome_of([&] {
    oktopk::detail::message_group<nccl> messages;
    messages.reset(1);
    oktopk::detail::cancel_on_unwind const guard(comm, messages.requests());
    messages.receive(bytes_of(incoming), 5, oktopk::phase::reduce, oktopk::detail::message_size::known);
    messages.start(exec, comm);
  });
  CHECK(unlike(refused, oktopk::fault::communication, "ncclRecv: ") == "");
  CHECK(outcome_of([&] {
          comm.bulk().allreduce(std::span<float>(), oktopk::reduction::sum, oktopk::phase::reduce);
        }).says("cannot be used any more"));
}

TEST_CASE("a communicator of the real nccl that is cancelled with a message under way can be destroyed") {
  nccl comm = connected();
  device const exec;
  numbers const in("in", 1000);
  oktopk::detail::message_group<nccl> messages;
  messages.reset(1);
  messages.receive(bytes_of(in), 0, oktopk::phase::reduce, oktopk::detail::message_size::known);
  auto const started = outcome_of([&] { messages.start(exec, comm); }); // nobody sends
  comm.cancel(messages.requests());
  exec.fence();
  CHECK(outcome_of([&] {
          comm.bulk().allreduce(std::span<float>(), oktopk::reduction::sum, oktopk::phase::reduce);
        }).says("cannot be used any more"));
}
