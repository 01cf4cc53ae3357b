// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <oktopk_bench/options.hpp>

#include "support/catch.hpp"

#include <string>
#include <vector>

namespace {

oktopk_bench::command_line read(std::vector<std::string> const& arguments) {
  return oktopk_bench::read_command_line(arguments, "the list");
}

std::vector<std::string> plain(std::vector<std::string> const& more = {}) {
  std::vector<std::string> arguments{"--algorithm", "ok_topk", "--length", "100", "--density", "0.01"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

} // namespace

TEST_CASE("the command line of oktopk_bench") {
  auto const given =
      read({"--algorithm", "dense, ok_topk(tau=5, partition=balanced)", "--input", "a.{rank},b.{rank}", "--k=3",
            "--warmup", "4", "--csv", "x.csv", "--dump", "d", "--in-process", "7", "--no-verify", "--seed", "9"});
  REQUIRE(given.fault.empty());
  CHECK(given.text.empty());
  auto const& asked = given.asked;
  CHECK(asked.algorithms == std::vector<std::string>{"dense", "ok_topk(tau=5, partition=balanced)"});
  CHECK(asked.inputs == std::vector<std::string>{"a.{rank}", "b.{rank}"});
  CHECK(asked.measured_steps() == 2);
  CHECK((asked.k == 3 && !asked.density && !asked.length));
  CHECK((asked.warmup == 4 && asked.in_process == 7 && asked.seed == 9));
  CHECK((asked.csv == "x.csv" && asked.dump == "d" && !asked.verify));
}

TEST_CASE("the defaults of oktopk_bench") {
  auto const given = read(plain());
  REQUIRE(given.fault.empty());
  CHECK((given.asked.measured_steps() == 10 && given.asked.warmup == 0 && given.asked.verify));
  CHECK((!given.asked.in_process && !given.asked.quality));
}

TEST_CASE("a density selects as many entries as in the library") {
  auto const asked = read(plain()).asked;
  CHECK((asked.entries_of(149) == 1 && asked.entries_of(151) == 2 && asked.entries_of(3) == 1));
  CHECK(asked.entries_of(0) == 0);
  CHECK(read({"--algorithm", "ok_topk", "--length", "100", "--k", "7"}).asked.entries_of(100) == 7);
}

TEST_CASE("lines that differ in one option are different lines") {
  CHECK(read(plain({"--steps", "3"})).line != read(plain({"--steps", "4"})).line);
  CHECK(read(plain({"--no-verify"})).line != read(plain()).line);
  CHECK(read(plain()).line == read(plain()).line);
}

TEST_CASE("--help and --list are texts and no faults") {
  CHECK(read({"--help"}).fault.empty());
  CHECK(read({"--help"}).text.find("--density") != std::string::npos);
  CHECK(read({"--list"}).fault.empty());
  CHECK(read({"--list"}).text == "the list");
}
