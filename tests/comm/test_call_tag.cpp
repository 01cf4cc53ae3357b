// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"

#include <oktopk/comm/call_context.hpp>
#include <oktopk/core/error.hpp>

using oktopk::phase;
using oktopk::detail::call_tag;

TEST_CASE("a stamp says what differs: version, algorithm, call or phase") {
  call_tag const expected("ok_topk", 1000, 10, 12, phase::reduce);
  CHECK(call_tag("ok_topk", 1000, 10, 12, phase::reduce) == expected);
  CHECK(call_tag("ok_topk", 1000, 10, 12 + 64, phase::reduce) == expected); // as far as it goes
  call_tag const newer(expected.bits() ^ (3U << 16U));
  CHECK(newer.difference(expected) == "version 2 where 1 is expected");
  CHECK(call_tag("topk_a", 1000, 10, 12, phase::reduce).difference(expected) ==
        "another object, algorithm, length or k");
  CHECK(call_tag("ok_topk", 1001, 10, 12, phase::reduce).difference(expected) ==
        "another object, algorithm, length or k");
  for (int other = 1; other < 128; ++other) {
    CHECK(call_tag("ok_topk", 1000, 10, 12, phase::reduce, other).difference(expected) ==
          "another object, algorithm, length or k");
  }
  CHECK(call_tag("ok_topk", 1000, 10, 12, phase::reduce, 128) == expected);
  CHECK(call_tag("ok_topk", 1000, 10, 13, phase::reduce).difference(expected) ==
        "call (modulo 64) 13 where 12 is expected");
  CHECK(call_tag("ok_topk", 1000, 10, 12, phase::gather).difference(expected) ==
        "phase gather where reduce is expected");
}

TEST_CASE("a stamp fits beside the count and the fault of a message") {
  call_tag const tag("gtopk", 7, 7, 63, phase::gather);
  for (std::int64_t const count : {std::int64_t(0), std::int64_t(1), oktopk::detail::fault_report::most_detail}) {
    std::uint64_t const number = oktopk::detail::fault_report{oktopk::fault::none, count}.packed(tag.bits());
    CHECK(call_tag(oktopk::detail::fault_report::tag_of(number)) == tag);
    CHECK(oktopk::detail::fault_report::unpacked(number).detail == count);
    CHECK(oktopk::detail::fault_report::unpacked(number).code == oktopk::fault::none);
  }
}
