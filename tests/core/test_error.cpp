// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"

#include <oktopk/core/error.hpp>

#include <stdexcept>

using oktopk::fault;

TEST_CASE("an error names the library, carries its sentence and its code, and is a runtime_error") {
  try {
    throw oktopk::error(fault::bad_file, "labels.gz is cut short");
  } catch (std::runtime_error const& caught) {
    CHECK(std::string(caught.what()) == "oktopk: labels.gz is cut short");
    auto const* as_ours = dynamic_cast<oktopk::error const*>(&caught);
    REQUIRE(as_ours != nullptr);
    CHECK(as_ours->code() == fault::bad_file);
  }
}

TEST_CASE("a fault is named as it is spelled, and a number beyond the last is unknown") {
  std::pair<fault, std::string_view> const spelled[] = {
      {fault::none, "none"},
      {fault::length_mismatch, "length_mismatch"},
      {fault::k_out_of_range, "k_out_of_range"},
      {fault::density_out_of_range, "density_out_of_range"},
      {fault::option_out_of_range, "option_out_of_range"},
      {fault::index_overflow, "index_overflow"},
      {fault::not_contiguous, "not_contiguous"},
      {fault::non_finite, "non_finite"},
      {fault::ranks_disagree, "ranks_disagree"},
      {fault::bad_state, "bad_state"},
      {fault::communication, "communication"},
      {fault::deadlock, "deadlock"},
      {fault::bad_file, "bad_file"},
      {fault::timed_out, "timed_out"},
      {fault::abandoned, "abandoned"},
      {fault::damaged_message, "damaged_message"},
      {fault::caller_failed, "caller_failed"},
      {fault::not_ascending, "not_ascending"},
      {fault::index_out_of_range, "index_out_of_range"},
      {fault::repeated_index, "repeated_index"},
      {fault::size_mismatch, "size_mismatch"},
  };
  int number = 0;
  for (auto const& [code, text] : spelled) {
    CHECK(static_cast<int>(code) == number++); // none is left out
    CHECK(oktopk::name(code) == text);
  }
  CHECK(oktopk::name(static_cast<fault>(number)) == "unknown");
}

TEST_CASE("a list of indices that is wrong is named by rank and position, also after a journey") {
  using oktopk::detail::fault_report;
  auto const said = [](fault code) {
    fault_report const sent{code, std::int64_t(1) << 37};
    return std::string(fault_report::unpacked(sent.packed(0x3ffff)).as_error("scheme", 3, 100).what());
  };
  CHECK(said(fault::not_ascending) ==
        "oktopk: scheme: rank 3: the index at position 137438953472 is not above the one before");
  CHECK(said(fault::index_out_of_range) ==
        "oktopk: scheme: rank 3: the index at position 137438953472 is not in [0, 100)");
  CHECK(said(fault::repeated_index) == "oktopk: scheme: rank 3: index 137438953472 is there more than once");
  CHECK(said(fault::size_mismatch) ==
        "oktopk: scheme: rank 3: there are 137438953472 values, which is not the width times the number of indices");
}

TEST_CASE("of faults heard in any order the lowest rank's counts, and what a rank put in before an overflow of sums") {
  using oktopk::detail::fault_report;
  using oktopk::detail::fault_subject;
  std::vector<std::pair<int, fault_report>> heard{
      {0, {fault::non_finite, 7, fault_subject::sum}},
      {1, {fault::non_finite, 8, fault_subject::returned}},
      {2, {fault::bad_file, 0, fault_subject::rank}},
      {3, {fault::non_finite, 9, fault_subject::value}},
  };
  auto const by_rank = [](auto const& a, auto const& b) { return a.first < b.first; };
  do {
    oktopk::detail::first_fault first;
    for (auto const& [rank, report] : heard) {
      first.hear(report, rank);
    }
    CHECK(first.rank() == 2);
    CHECK(first.report().code == fault::bad_file);
  } while (std::ranges::next_permutation(heard, by_rank).found);
  oktopk::detail::first_fault overflows;
  overflows.hear(heard[1].second, 1);
  overflows.hear(heard[0].second, 0);
  CHECK(overflows.report().detail == 7);
}
