// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "oktopk_bench/report.hpp"
#include "support/catch.hpp"

// Times that differ widely between steps are marked in the table.
using oktopk_bench::measurement;

namespace {

std::vector<measurement> steps_of(std::string const& algorithm, std::vector<double> const& seconds) {
  std::vector<measurement> rows;
  for (double const each : seconds) {
    measurement row;
    row.algorithm = algorithm;
    row.ranks = 2;
    row.length = 100;
    row.k = 10;
    row.seconds = each;
    rows.push_back(row);
  }
  return rows;
}

bool has(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("the spread of times is their interquartile range over their median") {
  CHECK(oktopk_bench::spread_of(steps_of("a", {4, 1, 2, 3, 5})) == 2.0 / 3);
  CHECK(oktopk_bench::spread_of(steps_of("a", {1, 2})) == 0.5 / 1.5);
  CHECK(oktopk_bench::spread_of(steps_of("a", {3})) == 0);
  CHECK(oktopk_bench::spread_of(steps_of("a", {0, 0, 0})) == 0);
  // One that is late is none of the quartiles' business.
  CHECK(oktopk_bench::spread_of(steps_of("a", {1, 1, 1, 1, 1, 1, 50})) == 0);
}

TEST_CASE("the table marks and names the algorithms whose times differ by more than a fifth") {
  auto rows = steps_of("steady", {0.010, 0.0101, 0.0099, 0.0100});
  auto const unsteady = steps_of("unsteady", {0.010, 0.013, 0.010, 0.013});
  rows.insert(rows.end(), unsteady.begin(), unsteady.end());
  std::string const table = oktopk_bench::table_text(rows);
  CHECK(has(table, " 10.000 "));
  CHECK(has(table, " 11.500~ "));
  CHECK(has(table, "(interquartile range over median: unsteady 26 %)"));
  CHECK(!has(oktopk_bench::table_text(steps_of("steady", {0.010, 0.0101})), "differ widely"));
}
