// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The same algorithm over MPI and between ranks of one process: the same bits, the same traffic, the same errors.

#include "support/caught.hpp"
#include "support/kept_update.hpp"
#include "support/mpi_ranks.hpp"
#include "support/seeded.hpp"

#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/mpi.hpp>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::mpi_communicator;

namespace {

constexpr std::int64_t length = 4000;
std::string const reusing = "ok_topk(local=reused(tau_prime=3), global=reused(tau_prime=2), partition=sampled(tau=3))";

template <class Comm>
auto made(Comm const& comm, std::string const& text, oktopk::gradient_size const& size = {.length = length, .k = 120}) {
  return oktopk::make_allreduce(host_execution(), comm, text, size);
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

// Calls of the algorithm of a text. Some sums are MPI's own, and the same where they are exact.
seen same_calls(std::string const& text, std::int64_t n, std::int64_t k, int calls) {
  return same_over_mpi_and_in_process([&](auto inner) {
    seen all;
    oktopk::counted comm(inner);
    auto allreduce = made(comm, text, {.length = n, .k = k});
    for (int call = 0; call < calls; ++call) {
      bool const sums_by_mpi = text == "dense";
      auto const accumulator = sums_by_mpi ? seeded_whole_numbers<float>(n, comm.rank() + 100 * call)
                                           : seeded_accumulator<float>(n, comm.rank(), call);
      all.updates.push_back(keep_update(allreduce(accumulator)));
    }
    note_traffic(all, comm);
    return all;
  });
}

// A bad accumulator on one rank: what every rank says about it.
template <class Algorithm>
std::string text_of(Algorithm& allreduce, vector_of<float> const& accumulator, fault code) {
  outcome const heard = outcome_of([&] { allreduce(accumulator); });
  return heard.code == code ? heard.text : "instead: " + std::string(oktopk::name(heard.code)) + heard.text;
}

} // namespace

TEST_CASE_ON_ALL_RANKS("every algorithm gives the same bits and sends the same bytes over MPI as in one process") {
  std::vector<std::string> texts{reusing, "ok_topk(ratio=1)", "ring_chunked(codec=block_float)",
                                 "recursive_doubling(codec=block_float)"};
  for (auto const& algorithm : oktopk::list_allreduces()) {
    if (algorithm.name != "automatic") { // which goes by the clock
      texts.push_back(algorithm.name);
    }
  }
  for (std::string const& text : texts) {
    INFO(text);
    bool const is_dense = text.find("topk") == text.npos && text != "gaussian_k";
    // Dense vectors so long that MPI does not buffer what is sent.
    seen const got = is_dense ? same_calls(text, 300'001, 0, 2) : same_calls(text, length, 120, 4);
    CHECK((got.updates.back().indices.size() > 50 || text == "gaussian_k")); // these values have no tails
  }
}

TEST_CASE_ON_ALL_RANKS("a bad accumulator on one rank is the same error on every rank, and the next call works") {
  seen const got = same_over_mpi_and_in_process([](auto inner) {
    seen all;
    oktopk::counted comm(inner);
    auto sparse = made(comm, reusing);
    auto full = made(comm, "dense");
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
  bool const odd_one = world_rank() == world_size() - 1;
  auto const making = [&](std::int64_t n, std::int64_t k) {
    return outcome_of([&] { made(comm, "ok_topk", {.length = n, .k = k}); });
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
