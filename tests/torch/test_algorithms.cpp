// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The same algorithm over a process group of Gloo and between ranks of one process: the same bits, the same bulk
// traffic, the same errors.

#include "support/policies.hpp"
#include "torch/ranks.hpp"

#include "support/caught.hpp"
#include "support/kept_update.hpp"
#include "support/seeded.hpp"

#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>

#include <array>
#include <new>

using namespace oktopk_tests;
using oktopk::fault;

namespace {

constexpr std::int64_t length = 3000;
constexpr oktopk::gradient_size size{.length = length, .k = 90, .density = {}};

/// What one rank saw, whatever its ranks are.
struct seen {
  std::vector<kept_update> updates;
  std::vector<std::int64_t> bulk_traffic;
  std::vector<std::string> errors;
};

/// Runs `program(comm)`, which gives what it saw, over Gloo and as this rank of an in-process world.
template <class Program>
std::array<seen, 2> over_gloo_and_in_process(Program const& program) {
  std::array<seen, 2> both;
  both[0] = program(connected());
  oktopk::in_process::run(world_size(), [&](oktopk::in_process_communicator comm) {
    seen const here = program(comm);
    if (comm.rank() == world_rank()) {
      both[1] = here;
    }
  });
  return both;
}

/// Four calls; those of the sums that are not exact are compared where `exact` says that they are.
template <class Comm>
seen calls_over(Comm inner, std::string const& text, bool whole) {
  oktopk::counted<Comm> comm(inner);
  auto allreduce = oktopk::make_allreduce(host_execution(), comm, text, size);
  seen all;
  for (int iteration = 0; iteration < 4; ++iteration) {
    auto const accumulator = whole ? seeded_whole_numbers<float>(length, comm.rank() + 100 * iteration)
                                   : seeded_accumulator<float>(length, comm.rank(), iteration);
    all.updates.push_back(keep_update(allreduce(accumulator)));
  }
  for (oktopk::phase const use : {oktopk::phase::reduce, oktopk::phase::balance, oktopk::phase::gather}) {
    oktopk::traffic const& t = comm.of_phase(use);
    all.bulk_traffic.insert(all.bulk_traffic.end(),
                            {t.messages_sent, t.messages_received, t.bytes_sent, t.bytes_received});
  }
  return all;
}

void check_same(std::string const& text, bool whole = false) {
  INFO(text);
  on_all_ranks([&] {
    auto const [over_gloo, in_process] =
        over_gloo_and_in_process([&](auto comm) { return calls_over(comm, text, whole); });
    CHECK(over_gloo.updates[3].indices.size() > 50);
    CHECK(difference(over_gloo.updates, in_process.updates) == "");
    CHECK(over_gloo.bulk_traffic == in_process.bulk_traffic);
  });
}

/// Runs out of memory between two steps of a call, on rank 1 alone.
struct exhausted_between_steps : oktopk::sampled {
  using sampled::sampled;

  bool due(std::int64_t iteration) const {
    if (world_rank() == 1) {
      throw std::bad_alloc();
    }
    return sampled::due(iteration);
  }
};

/// Runs out of memory while it encodes, on rank 1 alone.
struct exhausted_coo : oktopk::coo<> {
  template <oktopk::execution_space E>
  static std::int64_t encode(E const& exec, oktopk::sparse_ref<std::int32_t, float, typename E::memory_space> entries,
                             oktopk::region where, std::byte* out) {
    if (world_rank() == 1) {
      throw std::bad_alloc();
    }
    return oktopk::coo<>::encode(exec, entries, where, out);
  }
};

} // namespace

TEMPLATE_TEST_CASE(
    "a rank that runs out of memory leaves a call over Gloo, and the others need not wait for the limit", "",
    (oktopk::ok_topk<host_execution, oktopk::process_group_communicator,
                     oktopk_tests::policies_of<oktopk::coo<>, oktopk::exact, oktopk::exact, exhausted_between_steps>>),
    (oktopk::ok_topk<host_execution, oktopk::process_group_communicator, oktopk::with_format<exhausted_coo>>)) {
  on_several_ranks([] {
    TestType allreduce(host_execution(), connected(), {.length = length, .k = 90});
    auto const begun = std::chrono::steady_clock::now();
    try {
      allreduce(seeded_accumulator<float>(length, world_rank(), 0));
      FAIL_CHECK("no error");
    } catch (std::bad_alloc const&) {
      CHECK(world_rank() == 1);
    } catch (oktopk::error const& heard) {
      CHECK(world_rank() != 1);
      CHECK(oktopk::detail::breaks_communicator(heard.code()));
    }
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(20)); // the group's limit is 60
  });
}

TEST_CASE("sparse algorithms over Gloo give the bits and send the bytes of ranks in one process") {
  for (std::string const text :
       {"ok_topk", "ok_topk(local_select=reused, global_select=reused, tau=3, tau_prime=2)", "ok_topk(format=packed)",
        "ok_topk(ratio=1)", "topk_a", "topk_dsa", "gtopk", "gaussian_k", "paper_ok_topk"}) {
    check_same(text);
  }
}

TEST_CASE("dense algorithms over Gloo give the bits and send the bytes of ranks in one process") {
  check_same("dense", true); // in what order Gloo adds is its own affair
  for (std::string const text : {"ring_chunked(codec=block_float, rate=8)", "recursive_doubling"}) {
    check_same(text);
  }
}

TEST_CASE("a bad accumulator on one rank is the same error on every rank, and the next call works") {
  on_all_ranks([] {
    auto const [over_gloo, in_process] = over_gloo_and_in_process([](auto comm) {
      seen all;
      bool const faulty = comm.rank() == comm.size() - 1;
      for (std::string const text : {"ok_topk", "dense"}) {
        auto allreduce = oktopk::make_allreduce(host_execution(), comm, text, size);
        auto const infinite = seeded_whole_numbers<float>(length, comm.rank());
        infinite(1234) = faulty ? std::numeric_limits<float>::infinity() : 0.0F;
        outcome const heard = outcome_of([&] { allreduce(infinite); });
        all.errors.push_back(std::string(oktopk::name(heard.code)) + heard.text);
        all.updates.push_back(keep_update(allreduce(seeded_whole_numbers<float>(length, comm.rank()))));
      }
      return all;
    });
    std::string const who = "rank " + std::to_string(world_size() - 1);
    CHECK(over_gloo.errors[0] == "non_finiteoktopk: ok_topk: " + who + ": the value at index 1234 is not finite");
    CHECK(over_gloo.errors == in_process.errors);
    CHECK(difference(over_gloo.updates, in_process.updates) == "");
    for (std::string const& text : over_gloo.errors) {
      CHECK(same_everywhere(text));
    }
  });
}
