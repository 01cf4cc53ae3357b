// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The same algorithm over MPI and between ranks of one process: the same bits, the same traffic, the same errors.

#include "support/caught.hpp"
#include "support/kept_update.hpp"
#include "support/mpi_ranks.hpp"
#include "support/policies.hpp"
#include "support/seeded.hpp"

#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/mpi.hpp>
#include <oktopk/sgd.hpp>

#include <array>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::mpi_communicator;

namespace {

constexpr std::int64_t length = 4000;

template <class Comm>
using ok_topk = oktopk::ok_topk<host_execution, oktopk::counted<Comm>, reused_policies>;

template <class Comm>
typename ok_topk<Comm>::options for_ok_topk() {
  return {.length = length,
          .k = 120,
          .local_select = {.tau_prime = 3},
          .global_select = {.tau_prime = 2},
          .partition = {.tau = 3}};
}

// What one rank saw, whatever its ranks are.
struct seen {
  std::vector<kept_update> updates;
  std::vector<std::int64_t> traffic; // of every phase, both ways
  std::vector<std::string> errors;
};

void note_traffic(seen& all, auto const& comm) {
  for (int p = 0; p < oktopk::phase_count; ++p) {
    oktopk::traffic const& t = comm.of_phase(static_cast<oktopk::phase>(p));
    all.traffic.insert(all.traffic.end(), {t.messages_sent, t.messages_received, t.bytes_sent, t.bytes_received});
  }
}

// Runs `program(comm)`, which gives what it saw, over MPI and as this rank of an in-process world: the same. Gives it.
template <class Program>
seen same_over_mpi_and_in_process(Program const& program) {
  seen const over_mpi = program(mpi_communicator::duplicate(MPI_COMM_WORLD));
  seen const in_process = of_twin_in_process(program);
  CHECK(difference(over_mpi.updates, in_process.updates) == "");
  CHECK(over_mpi.traffic == in_process.traffic);
  CHECK(over_mpi.errors == in_process.errors);
  return over_mpi;
}

// Sums of vectors, long enough that MPI does not buffer what is sent.
template <template <class> class Algorithm>
void same_sums(bool exact) {
  constexpr std::int64_t many = 300'001;
  seen const all = same_over_mpi_and_in_process([&](auto inner) {
    seen mine;
    oktopk::counted comm(inner);
    Algorithm<decltype(comm)> allreduce(host_execution(), comm, {.length = many});
    for (int call = 0; call < 2; ++call) {
      auto const summand = exact ? seeded_whole_numbers<float>(many, comm.rank() + 100 * call)
                                 : seeded_accumulator<float>(many, comm.rank(), call);
      mine.updates.push_back(keep_update(allreduce(summand)));
    }
    note_traffic(mine, comm);
    return mine;
  });
  CHECK(all.updates[1].indices.size() == static_cast<std::size_t>(many));
}

template <class C>
using native = oktopk::dense<host_execution, C>;
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

// A bad accumulator on one rank: what every rank says about it.
template <class Algorithm>
std::string text_of(Algorithm& allreduce, vector_of<float> const& accumulator, fault code) {
  outcome const heard = outcome_of([&] { allreduce(accumulator); });
  return heard.code == code ? heard.text : "instead: " + std::string(oktopk::name(heard.code)) + heard.text;
}

} // namespace

TEST_CASE("ok_topk gives the same bits and sends the same bytes over MPI as in one process") {
  double const ratio = GENERATE(1.0, 4.0);
  on_all_ranks([&] {
    seen const got = same_over_mpi_and_in_process([&](auto inner) {
      seen all;
      oktopk::counted comm(inner);
      auto how = for_ok_topk<decltype(inner)>();
      how.gather.ratio = ratio;
      ok_topk<decltype(inner)> allreduce(host_execution(), comm, how);
      for (int iteration = 0; iteration < 4; ++iteration) {
        all.updates.push_back(keep_update(allreduce(seeded_accumulator<float>(length, comm.rank(), iteration))));
      }
      note_traffic(all, comm);
      return all;
    });
    CHECK(got.updates[3].indices.size() > 50);
  });
}

TEST_CASE_ON_ALL_RANKS("the dense family gives the same bits and sends the same bytes over MPI as in one process") {
  same_sums<native>(true); // where sums are exact
  same_sums<ring>(false);
  same_sums<ring_chunked>(false);
  same_sums<ring_pipelined>(false);
  same_sums<halving_doubling>(false);
  same_sums<recursive_doubling>(false);
  same_sums<coded_ring_chunked>(false);
  same_sums<coded_recursive_doubling>(false);
}

TEST_CASE_ON_ALL_RANKS("a bad accumulator on one rank is the same error on every rank, and the next call works") {
  seen const got = same_over_mpi_and_in_process([](auto inner) {
    seen all;
    oktopk::counted comm(inner);
    ok_topk<decltype(inner)> sparse(host_execution(), comm, for_ok_topk<decltype(inner)>());
    native<decltype(comm)> full(host_execution(), comm, {.length = length});
    bool const faulty = comm.rank() == comm.size() - 1;
    auto const good = seeded_whole_numbers<float>(length, comm.rank());
    auto const infinite = seeded_whole_numbers<float>(length, comm.rank());
    infinite(1234) = faulty ? std::numeric_limits<float>::infinity() : 0.0F;
    auto const wrong_length = seeded_whole_numbers<float>(faulty ? length - 1 : length, comm.rank());
    for (int round = 0; round < 2; ++round) {
      all.errors.push_back(text_of(sparse, infinite, fault::non_finite));
      all.updates.push_back(keep_update(sparse(good)));
      all.errors.push_back(text_of(sparse, wrong_length, fault::length_mismatch));
      all.updates.push_back(keep_update(sparse(good)));
      all.errors.push_back(text_of(full, infinite, fault::non_finite));
      all.errors.push_back(text_of(full, wrong_length, fault::length_mismatch));
      all.updates.push_back(keep_update(full(good)));
    }
    return all;
  });
  std::string const who = "rank " + std::to_string(world_size() - 1);
  CHECK(got.errors[0] == "oktopk: ok_topk: " + who + ": the value at index 1234 is not finite");
  CHECK(got.errors[1] == "oktopk: ok_topk: " + who + ": the accumulator has 3999 elements, expected 4000");
  for (std::string const& text : got.errors) {
    CHECK(same_everywhere(text));
  }
}

TEST_CASE_ON_ALL_RANKS("ranks that make different objects are told so, all of them, and can make the right one") {
  auto const comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
  using algorithm = ok_topk<mpi_communicator>;
  bool const odd_one = world_rank() == world_size() - 1;
  auto const making = [&](std::int64_t n, std::int64_t k) {
    return outcome_of([&] { algorithm(host_execution(), oktopk::counted(comm), {.length = n, .k = k}); });
  };
  std::string const last = std::to_string(world_size() - 1);
  outcome const length_differs = making(odd_one ? length + 1 : length, 10);
  outcome const k_differs = making(length, odd_one ? 11 : 10);
  if (world_size() > 1) {
    CHECK(length_differs ==
          outcome{fault::ranks_disagree,
                  "oktopk: the ranks disagree: rank 0 has length = 4000, rank " + last + " has length = 4001"});
    CHECK(k_differs.says("rank 0 has k = 10, rank " + last + " has k = 11"));
  }
  CHECK(same_everywhere(length_differs.text));
  CHECK(same_everywhere(k_differs.text));
  outcome const one_is_wrong = making(length, odd_one ? length + 1 : 10);
  CHECK(unlike(one_is_wrong, fault::k_out_of_range, "k = 4001 is not in [0, length]") == "");
  CHECK(same_everywhere(one_is_wrong.text));
  CHECK(making(length, 10) == outcome{});
}

TEST_CASE_ON_ALL_RANKS("sgd takes the same steps over MPI as in one process") {
  same_over_mpi_and_in_process([](auto inner) {
    seen all;
    using algorithm = ok_topk<decltype(inner)>;
    oktopk::counted comm(inner);
    algorithm allreduce(host_execution(), comm, for_ok_topk<decltype(inner)>());
    oktopk::sgd<algorithm> optimizer(host_execution(), allreduce, {.learning_rate = 0.3});
    vector_of<float> const weights("weights", length);
    for (int iteration = 0; iteration < 3; ++iteration) {
      all.updates.push_back(
          keep_update(optimizer.step(weights, seeded_accumulator<float>(length, comm.rank(), iteration))));
    }
    kept_update at_the_end;
    for (std::size_t i = 0; i < weights.extent(0); ++i) {
      at_the_end.value_bits.push_back(oktopk::detail::magnitude_bits(weights(i)));
      at_the_end.value_bits.push_back(oktopk::detail::magnitude_bits(optimizer.residual()(i)));
    }
    all.updates.push_back(at_the_end);
    return all;
  });
}
