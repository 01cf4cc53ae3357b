// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "select/suite.hpp"

#include <oktopk/algorithm/paper_ok_topk.hpp>
#include <oktopk/exchange/foreseen.hpp>
#include <oktopk/select/chunked.hpp>
#include <oktopk/select/exact.hpp>
#include <oktopk/select/gaussian.hpp>
#include <oktopk/select/reused_threshold.hpp>

using namespace oktopk_tests;

TEST_CASE("exact is a selector") {
  check_selector(oktopk::exact());
}

TEST_CASE("reused_threshold is a selector") {
  check_selector(oktopk::reused_threshold({.tau_prime = 3}));
  check_selector(oktopk::reused_threshold({.tau_prime = 1}));
}

TEST_CASE("unguarded_threshold is a selector") {
  check_selector(oktopk::unguarded_threshold({.tau_prime = 3}));
}

TEST_CASE("gaussian is a selector of one rank") {
  check_selector(oktopk::gaussian(), {.several_ranks = false});
}

TEST_CASE("chunked is a selector of one rank") {
  check_selector(oktopk::chunked(), {.several_ranks = false, .chunk = 4096});
  check_selector(oktopk::chunked({.chunk = 64}), {.several_ranks = false, .chunk = 64});
  check_selector(oktopk::chunked({.chunk = 100, .per_chunk = 3}), {.several_ranks = false, .chunk = 100});
}

TEST_CASE("gathered_threshold is a selector of several ranks") {
  check_selector(oktopk::gathered_threshold({.tau_prime = 3}));
}

TEST_CASE("foreseen is a selector, also where nothing is gathered before") {
  check_selector(oktopk::detail::foreseen_search());
}
