// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <oktopk_bench/options.hpp>

#include "support/catch.hpp"

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
  CHECK((given.line != read(plain()).line && read(plain()).line == read(plain()).line));
  CHECK((asked.k == 3 && !asked.density && !asked.length));
  CHECK((asked.warmup == 4 && asked.in_process == 7 && asked.seed == 9));
  CHECK((asked.csv == "x.csv" && asked.dump == "d" && !asked.verify));
}

TEST_CASE("the defaults of oktopk_bench, and a density selects as many entries as in the library") {
  auto const asked = read(plain()).asked;
  CHECK((asked.measured_steps() == 10 && asked.warmup == 0 && asked.verify && !asked.in_process && !asked.quality));
  CHECK((asked.entries_of(149) == 1 && asked.entries_of(151) == 2 && asked.entries_of(3) == 1));
  CHECK(asked.entries_of(0) == 0);
  CHECK(read({"--algorithm", "ok_topk", "--length", "100", "--k", "7"}).asked.entries_of(100) == 7);
}

TEST_CASE("whole numbers may have an exponent") {
  auto const given = read({"--algorithm", "ok_topk", "--length", "1e6", "--k", "1.5E4"});
  REQUIRE(given.fault.empty());
  CHECK((given.asked.length == 1'000'000 && given.asked.k == 15'000));
  for (std::string const wrong : {"1e-1", "1.55e1", "1e", "e6", "1e6x", "1e400", "1e30", "2.5", "1e6 1", "inf", "0x1e6",
                                  "0b1", "+5", "-1e6", "1'000", "1_000", "1,000", " 5", ""}) {
    CAPTURE(wrong);
    CHECK(read({"--algorithm", "ok_topk", "--length", wrong, "--k", "1"}).fault ==
          "--length: " + wrong + " is no integer of at least 1");
  }
}

TEST_CASE("zeros in front of a number change nothing") {
  auto const asked = read({"--algorithm", "ok_topk", "--length", "01000", "--k", "010", "--in-process", "016", "--seed",
                           "0777", "--steps", "08", "--warmup", "00", "--deadline", "010.5"})
                         .asked;
  CHECK((asked.length == 1000 && asked.k == 10 && asked.in_process == 16 && asked.seed == 777));
  CHECK((asked.steps == 8 && asked.warmup == 0 && asked.deadline == 10.5));
  CHECK(read({"--algorithm", "ok_topk", "--length", "9", "--density", "00.5"}).asked.density == 0.5);
}

TEST_CASE("a seed is a number of 64 bits") {
  CHECK(read(plain({"--seed", "18446744073709551615"})).asked.seed == 18446744073709551615U);
  CHECK(read(plain({"--seed=0"})).asked.seed == 0);
  for (std::string const wrong : {"-1", "18446744073709551616", "1.5", "one"}) {
    CHECK(read(plain({"--seed", wrong})).fault == "--seed: " + wrong + " is no integer of at least 0");
  }
}

TEST_CASE("what is unknown is told before what is missing or wrong, as it was given") {
  CHECK(read({"--algorithm", "ok_topk", "--densty", "0.01"}).fault == "not expected: --densty 0.01");
  CHECK(read({"--densty", "0.01"}).fault == "not expected: --densty 0.01");
  CHECK(read(plain({"--densty", "0.01", "--fast"})).fault == "not expected: --densty 0.01 --fast");
  CHECK(read({"--algorithm", "ok_topk", "--length", "0", "--densty=2"}).fault == "not expected: --densty=2");
  CHECK(read(plain({"stray"})).fault == "not expected: stray");
  CHECK(
      read({"--algorithm", "ok_topk", "--length", "9", "--k", "--csv", "rows"}).fault.starts_with("--k: --csv is no"));
  CHECK(read({"--algorithm", "ok_topk"}).fault.find("[--length,--input]") != std::string::npos);
}
