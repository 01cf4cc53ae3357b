// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/codec/block_float.hpp>

using namespace oktopk_tests;

TEST_CASE("ranks that code at different rates or levels are told so") {
  using algorithm = oktopk::dense_ring_chunked<execution, oktopk::in_process_communicator, float, std::int32_t,
                                               oktopk::coded_wire<oktopk::block_float>>;
  auto const check = [](auto const& reduce_on, oktopk::fault code, std::string const& words) {
    auto const said = failures_of(3, [&](oktopk::in_process_communicator comm) {
      algorithm(execution(), comm, {.length = 10, .reduce = reduce_on(comm.rank())});
    });
    CHECK(unlike(said, code, words) == "");
  };
  using how = decltype(algorithm::options::reduce);
  check([](int rank) { return how{.codec = {.rate = rank == 1 ? 9 : 8}}; }, oktopk::fault::ranks_disagree,
        "ring_chunked of block_float 9");
  check(
      [](int rank) {
        return how{.codec = {}, .level = rank == 2 ? oktopk::codec_level::message : oktopk::codec_level::collective};
      },
      oktopk::fault::ranks_disagree, "level message");
  check([](int) { return how{.codec = {.rate = 99}}; }, oktopk::fault::option_out_of_range,
        "rate = 99 of block_float is not between 4 and 16");
}
