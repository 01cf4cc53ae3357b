// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Over a communicator that orders messages by the instance, such as NCCL's, the catalogue has what can run there.

#include <oktopk/catalogue/catalogue.hpp>

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/ordered_transport.hpp"
#include "support/seeded.hpp"

using namespace oktopk_tests;

namespace {

void call_by_name(std::string const& text) {
  oktopk::in_process::run(3, [&](oktopk::in_process_communicator inner) {
    auto allreduce = oktopk::make_allreduce(execution(), ordered_communicator(inner), text, {.length = 500, .k = 20});
    for (int iteration = 0; iteration < 3; ++iteration) {
      allreduce(seeded_accumulator<float>(500, inner.rank(), iteration));
    }
  });
}

} // namespace

TEST_CASE("sparse algorithms and the communicator's own allreduce run by name over an ordered communicator") {
  for (char const* const text :
       {"ok_topk(format=packed)", "paper_ok_topk", "topk_a", "topk_dsa", "gtopk", "gaussian_k", "dense"}) {
    CAPTURE(text);
    CHECK(outcome_of([&] { call_by_name(text); }) == outcome());
  }
}

TEST_CASE("an allreduce whose messages would wait for each other is refused on every rank, with the reason") {
  for (char const* const text : {"ring", "ring_chunked", "ring_pipelined", "halving_doubling", "recursive_doubling",
                                 "dense_rabenseifner", "dense_bfloat16"}) {
    CAPTURE(text);
    auto const refused = outcome_of([&] { call_by_name(text); });
    CHECK(unlike(refused, oktopk::fault::option_out_of_range,
                 std::string(text) + " does not run over this communicator") == "");
  }
}
