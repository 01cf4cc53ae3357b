// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What the kinds of schemes in the lists say of an algorithm: its promises, and the policies that its state depends on.

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/catalogue/schemes.hpp>
#include <oktopk/format/packed.hpp>
#include <oktopk/format/values/fixed.hpp>
#include <oktopk/select/reused_threshold.hpp>

using namespace oktopk_tests;
namespace catalogue = oktopk::catalogue;

namespace {

using C = oktopk::in_process_communicator;
using everything = oktopk::dense<execution, C>;
using rounded = oktopk::dense_bfloat16<execution, C>;
using local_only = oktopk::topk_a<execution, C>;
using exact = oktopk::ok_topk<execution, C>;
using reusing = oktopk::ok_topk<execution, C, oktopk::coo<>, oktopk::reused_threshold, oktopk::reused_threshold>;
using lossy = oktopk::ok_topk<execution, C, oktopk::packed<float, std::int32_t, oktopk::fixed_values<4>>>;

static_assert(catalogue::sums_everything<everything> && !catalogue::sums_everything<rounded>);
static_assert(!catalogue::sums_everything<exact>);
static_assert(catalogue::runs_over<C, everything> && catalogue::runs_over<C, exact>);

} // namespace

TEST_CASE("a dense algorithm sums everything where it loses nothing, and selects nothing") {
  CHECK(catalogue::promises_of<everything>({}).everything);
  CHECK(!catalogue::promises_of<everything>({}).selects);
  CHECK(!catalogue::promises_of<rounded>({}).everything);
}

TEST_CASE("what selects locally alone contributes all of it, and what selects among the sums does not") {
  auto const local = catalogue::promises_of<local_only>({});
  CHECK((local.selects && local.all_contribute && !local.global));
  auto const global = catalogue::promises_of<exact>({});
  CHECK((global.selects && !global.all_contribute && global.local.exact));
  REQUIRE(global.global);
  CHECK(global.global->exact);
}

TEST_CASE("reused thresholds promise a band, and a lossy format an exact selection of rounded sums") {
  auto const band = catalogue::promises_of<reusing>({});
  CHECK(!band.local.exact);
  CHECK((band.local.low > 0 && band.local.low < 1 && band.local.high > 1 && band.local.high < 2));
  auto const rough = catalogue::promises_of<lossy>({});
  REQUIRE(rough.global);
  CHECK((rough.local.exact && rough.global->exact));
  CHECK(!rough.rounding.empty());
  CHECK(catalogue::promises_of<exact>({}).rounding.empty());
}

TEST_CASE("a state depends on no policies that its type tells") {
  CHECK(catalogue::policies_of(exact::options{}).empty());
  CHECK(catalogue::policies_of(everything::options{}).empty());
}
