// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// NCCL's bulk messages beside MPI's control: the contract of a communicator, the bits and the bytes of ranks in one
// process, and errors. Ranks are those of mpirun; NCCL is the stand-in of this folder, or the real one where each rank
// has a device.

#include "comm/suite.hpp"
#include "nccl/numbers.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/kept_update.hpp"
#include "support/mpi_ranks.hpp"
#include "support/policies.hpp"
#include "support/seeded.hpp"

#include <oktopk/allreduce.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/format/packed.hpp>
#include <oktopk/mpi.hpp>
#include <oktopk/nccl.hpp>
#include <oktopk/select/reused_threshold.hpp>

#ifdef OKTOPK_NCCL_STAND_IN
#include "nccl/stand_in/communicator.hpp"
#endif

#include <array>

using namespace oktopk_tests;

namespace {

/// Control messages that wait for the device first. A GPU works while its host waits for a message; an emulator that
/// holds kernels back until somebody waits for them does not, and then ranks would wait for each other for ever.
template <oktopk::control_communicator Control>
class draining_control {
public:
  using request = typename Control::request;

  explicit draining_control(Control inner) : inner_(std::move(inner)) {}

  int rank() const { return inner_.rank(); }
  int size() const { return inner_.size(); }

  request isend(std::span<std::byte const> out, int peer, oktopk::phase use) { return inner_.isend(out, peer, use); }
  request irecv(std::span<std::byte> in, int peer, oktopk::phase use) { return inner_.irecv(in, peer, use); }

  void wait_all(std::span<request> requests) {
    Kokkos::fence();
    inner_.wait_all(requests);
  }

  void cancel(std::span<request> requests) noexcept { inner_.cancel(requests); }

private:
  Control inner_;
};

using control = draining_control<oktopk::mpi_communicator>;
using nccl = oktopk::paired<control, oktopk::detail::nccl_bulk<device>>;

static_assert(oktopk::communicator<nccl> && oktopk::communicator<oktopk::counted<nccl>>);
static_assert(oktopk::bulk_communicator<oktopk::detail::nccl_bulk<device>> &&
              !oktopk::control_communicator<oktopk::detail::nccl_bulk<device>>);

nccl connected() {
  return oktopk::nccl_communicator(device(), control(oktopk::mpi_communicator::duplicate(MPI_COMM_WORLD)));
}

constexpr std::int64_t length = 3000;

/// What one rank saw, whatever its ranks are.
struct seen {
  std::vector<kept_update> updates;
  std::vector<std::int64_t> bulk_traffic;
};

template <template <class> class Algorithm, class Comm>
seen calls_over(Comm inner) {
  oktopk::counted<Comm> comm(inner);
  typename Algorithm<oktopk::counted<Comm>>::options how;
  how.length = length;
  SET_IF_THERE(how.k, 90);
  SET_IF_THERE(how.deliver.gather.ratio, 1);
  Algorithm<oktopk::counted<Comm>> allreduce(device(), comm, how);
  seen all;
  for (int iteration = 0; iteration < 4; ++iteration) {
    auto const accumulator =
        Kokkos::create_mirror_view_and_copy(device_memory(), seeded_accumulator<float>(length, comm.rank(), iteration));
    auto const& update = allreduce(accumulator);
    auto const indices = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), update.indices());
    auto const values = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), update.values());
    kept_update kept;
    for (std::size_t i = 0; i < indices.extent(0); ++i) {
      kept.indices.push_back(indices(i));
      kept.value_bits.push_back(__builtin_bit_cast(std::uint32_t, values(i)));
    }
    all.updates.push_back(kept);
  }
  for (oktopk::phase const use : {oktopk::phase::reduce, oktopk::phase::balance, oktopk::phase::gather}) {
    oktopk::traffic const& t = comm.of_phase(use);
    all.bulk_traffic.insert(all.bulk_traffic.end(),
                            {t.messages_sent, t.messages_received, t.bytes_sent, t.bytes_received});
  }
  return all;
}

template <template <class> class Algorithm>
void check_same_as_in_process() {
  on_all_ranks([] {
    seen const got = calls_over<Algorithm>(connected());
    seen const expected =
        of_twin_in_process([](oktopk::in_process_communicator comm) { return calls_over<Algorithm>(comm); });
    CHECK(expected.updates[0].indices.size() > 0);
    CHECK(difference(expected.updates, got.updates) == "");
    CHECK(expected.bulk_traffic == got.bulk_traffic);
  });
}

template <class Comm>
using ok_topk = oktopk::ok_topk<device, Comm>;
template <class Comm>
using packed_ok_topk =
    oktopk::ok_topk<device, Comm, policies_of<oktopk::packed<float, std::int32_t>, oktopk::reused_threshold>>;
template <class Comm>
using gtopk = oktopk::gtopk<device, Comm>;
template <class Comm>
using topk_a = oktopk::topk_a<device, Comm>;
template <class Comm>
using topk_dsa = oktopk::topk_dsa<device, Comm>;

numbers filled(device const& exec, int value) {
  numbers const made("numbers", 1000);
  Kokkos::deep_copy(exec, made, value);
  return made;
}

} // namespace

TEST_CASE("nccl beside mpi keeps the contract of a communicator, counted or not") {
  check_communicator<device>([](auto const& body) {
    on_all_ranks([&] { body(connected()); });
    on_all_ranks([&] { body(oktopk::counted(connected())); });
  });
}

TEST_CASE("sparse algorithms over nccl give the bits and send the bytes of ranks in one process") {
  check_same_as_in_process<ok_topk>();
  check_same_as_in_process<packed_ok_topk>();
  check_same_as_in_process<gtopk>();
  check_same_as_in_process<topk_a>();
  check_same_as_in_process<topk_dsa>();
}

TEST_CASE_ON_ALL_RANKS("messages of nccl take their place among the kernels of their instance") {
  if (world_size() == 1) {
    return;
  }
  nccl comm = connected();
  device const exec;
  numbers const out = filled(exec, -1);
  numbers const in = filled(exec, -2);
  for (int round = 0; round < 5; ++round) { // nothing waits but the last line
    Kokkos::deep_copy(exec, out, 100 * round + world_rank());
    pass_on(comm, exec, out, next_rank(), in, previous_rank());
  }
  Kokkos::deep_copy(exec, out, -3);
  CHECK(first_of(exec, in) == 400 + previous_rank());
}

TEST_CASE_ON_ALL_RANKS("a duplicate of a communicator of nccl has its ranks and its own messages") {
  nccl comm = connected();
  auto const other = oktopk::detail::nccl_bulk<device>::duplicate(device(), comm.bulk().get());
  CHECK(other.rank() == world_rank());
  CHECK(other.size() == world_size());
  CHECK(other.get() != comm.bulk().get());
}

TEST_CASE_ON_ALL_RANKS("a call that nccl refuses is an error that says why, and the communicator is of no more use") {
  nccl comm = connected();
  device const exec;
  numbers const incoming = filled(exec, 0);
  auto const refused = outcome_of([&] {
    oktopk::detail::message_group<nccl> messages;
    messages.reset(1);
    oktopk::detail::cancel_on_unwind const guard(comm, messages.requests());
    messages.receive(bytes_of(incoming), world_size() + 5, oktopk::phase::reduce, oktopk::detail::message_size::known);
    messages.start(exec, comm);
  });
  CHECK(unlike(refused, oktopk::fault::communication, "ncclRecv: ") == "");
  CHECK(outcome_of([&] {
          comm.bulk().allreduce(std::span<float>(), oktopk::reduction::sum, oktopk::phase::reduce);
        }).says("cannot be used any more"));
}

#ifdef OKTOPK_NCCL_STAND_IN
TEST_CASE_ON_ALL_RANKS("host memory is refused, with the name of the call") {
  nccl comm = connected();
  std::array<std::byte, 8> bytes{};
  oktopk::bulk_message const message{bytes, next_rank(), oktopk::phase::reduce, false};
  nccl::bulk_request request;
  auto const refused = outcome_of([&] { comm.start(device(), std::span(&message, 1), std::span(&request, 1)); });
  CHECK(refused.says("ncclSend: invalid argument (ncclSend: the data is not in the memory of the device)"));
}

TEST_CASE_ON_ALL_RANKS("the end of a communicator waits no longer than its limit for a rank that has aborted") {
  auto const seconds_of_end = [](std::chrono::milliseconds limit, bool broken) {
    std::optional<nccl> comm(connected());
    comm->bulk().set_time_limit(limit);
    if (broken) {
      comm->cancel(std::span<nccl::bulk_request>());
    }
    auto const begun = std::chrono::steady_clock::now();
    comm.reset();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  };
  nccl_stand_in::a_rank_has_aborted = true;
  double const waited = seconds_of_end(std::chrono::milliseconds(200), false);
  CHECK(waited >= 0.2);
  CHECK(waited < 20);
  CHECK(seconds_of_end(std::chrono::minutes(10), true) < 20); // broken: nobody is waited for
  nccl_stand_in::a_rank_has_aborted = false;
}

TEST_CASE_ON_ALL_RANKS("a message whose size its receive does not have is an error") {
  if (world_size() == 1) {
    return;
  }
  nccl comm = connected();
  comm.bulk().set_time_limit(std::chrono::seconds(30));
  device const exec;
  numbers const incoming = filled(exec, 0);
  std::array<oktopk::bulk_message, 2> const messages = {
      oktopk::bulk_message{bytes_of(incoming).first(16), previous_rank(), oktopk::phase::reduce, true},
      oktopk::bulk_message{bytes_of(incoming).subspan(16, 24), next_rank(), oktopk::phase::reduce, false}};
  std::array<nccl::bulk_request, 2> requests;
  auto const heard = outcome_of([&] {
    comm.start(exec, messages, requests);
    exec.fence();
    comm.wait_all(std::span(requests));
  });
  CHECK(heard.code == oktopk::fault::communication);
  comm.cancel(std::span(requests));
}
#endif
