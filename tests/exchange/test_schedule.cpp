// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <oktopk/core/error.hpp>
#include <oktopk/exchange/concept.hpp>
#include <oktopk/exchange/split_and_reduce.hpp>

#include <set>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::detail::fault_report;

TEST_CASE("rotated: in each step everybody sends to somebody else, and over all steps to everybody") {
  for (int const ranks : rank_counts) {
    CAPTURE(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      std::set<int> met;
      for (int step = 1; step < ranks; ++step) {
        met.insert(oktopk::rotated::destination(rank, step, ranks));
      }
      CHECK(met.size() == static_cast<std::size_t>(ranks) - 1);
      CHECK(met.count(rank) == 0);
      CHECK((ranks == 1 || (*met.begin() >= 0 && *met.rbegin() < ranks)));
    }
    for (int step = 1; step < ranks; ++step) {
      std::set<int> receivers;
      for (int rank = 0; rank < ranks; ++rank) {
        int const to = oktopk::rotated::destination(rank, step, ranks);
        receivers.insert(to);
        CHECK(oktopk::rotated::source(to, step, ranks) == rank);
      }
      CHECK(receivers.size() == static_cast<std::size_t>(ranks)); // no hot spot
    }
  }
}

TEST_CASE("a fault report survives the wire") {
  for (fault const code : {fault::none, fault::length_mismatch, fault::not_contiguous, fault::non_finite,
                           fault::k_out_of_range, fault::bad_file}) {
    for (std::int64_t const detail :
         {std::int64_t(0), std::int64_t(1), std::int64_t(1) << 24, std::int64_t(1) << 37, fault_report::most_detail}) {
      std::uint64_t const number = fault_report{code, detail}.packed(0x2a5c3);
      CHECK(fault_report::tag_of(number) == 0x2a5c3);
      fault_report const back = fault_report::unpacked(number);
      CHECK(back.code == code);
      CHECK(back.detail == detail);
      CHECK(static_cast<bool>(back) == (code != fault::none));
    }
  }
  CHECK(fault_report{fault::none, 7}.packed() == 7); // a healthy rank's is its count
}

TEST_CASE("a fault report becomes an error that names rank and fault") {
  auto const said = [](fault code, std::int64_t detail) {
    oktopk::error const error = fault_report{code, detail}.as_error("scheme", 3, 100);
    CHECK(error.code() == code);
    return std::string(error.what());
  };
  CHECK(said(fault::length_mismatch, 99) == "oktopk: scheme: rank 3: the accumulator has 99 elements, expected 100");
  CHECK(said(fault::not_contiguous, 0) == "oktopk: scheme: rank 3: the accumulator is not contiguous");
  CHECK(said(fault::non_finite, 1 << 25).find("index 33554432 is not finite") != std::string::npos);
  CHECK(said(fault::communication, 0).find("communication") != std::string::npos);
}

TEST_CASE("a fault report tells a value from a sum and from a residual, also after a journey") {
  using oktopk::detail::fault_subject;
  auto const said = [](fault_subject subject) {
    fault_report const sent{fault::non_finite, 7, subject};
    return std::string(fault_report::unpacked(sent.packed()).as_error("scheme", 3, 100).what());
  };
  CHECK(said(fault_subject::value) == "oktopk: scheme: rank 3: the value at index 7 is not finite");
  CHECK(said(fault_subject::sum) == "oktopk: scheme: a sum or partial sum at index 7 overflows");
  CHECK(said(fault_subject::returned) ==
        "oktopk: scheme: rank 3: the residual at index 7 overflows with what is returned to it");
  CHECK(said(fault_subject::rank) == "oktopk: scheme: rank 3: it has no accumulator for this call, because of an error "
                                     "on that rank: non_finite");
}
