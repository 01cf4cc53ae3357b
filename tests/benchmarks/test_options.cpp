// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <oktopk_bench/options.hpp>

#include "support/catch.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace {

oktopk_bench::command_line read(std::vector<std::string> const& arguments) {
  static constexpr std::string_view known[] = {"ok_topk", "dense", "ring_chunked"};
  return oktopk_bench::read_command_line(arguments, known);
}

} // namespace

TEST_CASE("the command line of oktopk_bench") {
  auto const given = read({"--algorithm", "dense,ok_topk", "--input", "a.{rank},b.{rank}",
                           "--k=3",       "--warmup",      "4",       "--local-select",
                           "exact",       "--partition",   "uniform", "--tau",
                           "5",           "--tau-prime",   "6",       "--csv",
                           "x.csv",       "--dump",        "d",       "--in-process",
                           "7",           "--no-verify",   "--seed",  "9"});
  REQUIRE(given.fault.empty());
  CHECK(given.help.empty());
  auto const& asked = given.asked;
  CHECK(asked.algorithms == std::vector<std::string>{"dense", "ok_topk"});
  CHECK(asked.inputs == std::vector<std::string>{"a.{rank}", "b.{rank}"});
  CHECK(asked.measured_steps() == 2);
  CHECK((asked.k == 3 && !asked.density && !asked.length));
  CHECK((asked.warmup == 4 && asked.tau == 5 && asked.tau_prime == 6 && asked.in_process == 7 && asked.seed == 9));
  CHECK((asked.local_select == "exact" && asked.global_select == "exact" && asked.partition == "uniform"));
  CHECK((asked.csv == "x.csv" && asked.dump == "d" && !asked.verify));
}

TEST_CASE("a codec, and what the scheme is called with it") {
  std::vector<std::string> const ring{"--algorithm", "dense,ring_chunked", "--length", "9", "--k", "1"};
  auto const with = [&](std::vector<std::string> const& more) {
    auto arguments = ring;
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto const given = read(arguments);
    CHECK(given.fault == "");
    CHECK(oktopk_bench::label("dense", given.asked) == "dense");
    return oktopk_bench::label("ring_chunked", given.asked);
  };
  CHECK(with({}) == "ring_chunked");
  CHECK(with({"--codec", "bfloat16"}) == "ring_chunked_bfloat16");
  CHECK(with({"--codec", "block_float"}) == "ring_chunked_block_float8");
  CHECK(with({"--codec", "block_float", "--rate", "5", "--codec-level", "collective"}) == "ring_chunked_block_float5");
  CHECK(with({"--codec", "identity", "--codec-level", "message"}) == "ring_chunked_identity_message");
}

TEST_CASE("the defaults of oktopk_bench") {
  auto const given = read({"--algorithm", "ok_topk", "--length", "100", "--density", "0.01"});
  REQUIRE(given.fault.empty());
  CHECK((given.asked.measured_steps() == 10 && given.asked.warmup == 0 && given.asked.verify));
  CHECK((!given.asked.tau && !given.asked.tau_prime && !given.asked.in_process));
  CHECK((given.asked.local_select == "exact" && given.asked.partition == "evened"));
}

TEST_CASE("a density selects as many entries as in the library") {
  auto const asked = read({"--algorithm", "ok_topk", "--length", "100", "--density", "0.01"}).asked;
  CHECK((asked.entries_of(149) == 1 && asked.entries_of(151) == 2 && asked.entries_of(3) == 1));
  CHECK(asked.entries_of(0) == 0);
  CHECK(read({"--algorithm", "ok_topk", "--length", "100", "--k", "7"}).asked.entries_of(100) == 7);
}

TEST_CASE("lines that differ in one option are described differently") {
  std::vector<std::string> const plain{"--algorithm", "ok_topk", "--length", "100", "--k", "1"};
  auto const described = [&](std::vector<std::string> const& more) {
    auto arguments = plain;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return oktopk_bench::describe(read(arguments).asked);
  };
  for (char const* const option : {"--steps", "--warmup", "--tau", "--tau-prime", "--seed"}) {
    CHECK(described({option, "3"}) != described({option, "4"}));
  }
  std::vector<std::string> const coded{"--algorithm", "ring_chunked", "--length",   "9", "--k",
                                       "1",           "--codec",      "block_float"};
  auto const described_codec = [&](std::vector<std::string> const& more) {
    auto arguments = coded;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return oktopk_bench::describe(read(arguments).asked);
  };
  CHECK(described_codec({"--rate", "5"}) != described_codec({}));
  CHECK(described_codec({"--codec-level", "message"}) != described_codec({}));
  CHECK(described({"--no-verify"}) != described({}));
  CHECK(described({"--quality"}) != described({}));
  CHECK(described({"--csv", "a"}) != described({"--dump", "a"}));
  CHECK(described({}) == described({}));
}

TEST_CASE("--help is no fault") {
  auto const given = read({"--help"});
  CHECK(given.fault.empty());
  CHECK(given.help.find("--density") != std::string::npos);
}
