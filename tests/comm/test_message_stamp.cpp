// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"

#include <oktopk/comm/call_context.hpp>
#include <oktopk/core/error.hpp>

#include <cstdint>

using oktopk::phase;
using oktopk::detail::message_stamp;

TEST_CASE("a stamp says what differs: version, algorithm, call or phase") {
  message_stamp const expected("ok_topk", 1000, 10, 12, phase::reduce);
  CHECK(message_stamp("ok_topk", 1000, 10, 12, phase::reduce) == expected);
  CHECK(message_stamp("ok_topk", 1000, 10, 12 + 64, phase::reduce) == expected); // as far as it goes
  message_stamp const newer(expected.bits() ^ (3U << 16U));
  CHECK(newer.difference(expected) == "version 2 where 1 is expected");
  CHECK(message_stamp("topk_a", 1000, 10, 12, phase::reduce).difference(expected) ==
        "another algorithm, or one of another length or k");
  CHECK(message_stamp("ok_topk", 1001, 10, 12, phase::reduce).difference(expected) ==
        "another algorithm, or one of another length or k");
  CHECK(message_stamp("ok_topk", 1000, 10, 13, phase::reduce).difference(expected) ==
        "call (modulo 64) 13 where 12 is expected");
  CHECK(message_stamp("ok_topk", 1000, 10, 12, phase::gather).difference(expected) ==
        "phase gather where reduce is expected");
}

TEST_CASE("a stamp fits beside the count and the fault of a message") {
  message_stamp const stamp("gtopk", 7, 7, 63, phase::gather);
  for (std::int64_t const count : {std::int64_t(0), std::int64_t(1), oktopk::detail::fault_report::most_detail}) {
    std::uint64_t const number = oktopk::detail::fault_report{oktopk::fault::none, count}.packed(stamp.bits());
    CHECK(message_stamp(oktopk::detail::fault_report::stamp_of(number)) == stamp);
    CHECK(oktopk::detail::fault_report::unpacked(number).detail == count);
    CHECK(oktopk::detail::fault_report::unpacked(number).code == oktopk::fault::none);
  }
}
