// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The promises of algorithms that follow from their policies.

#include <oktopk_bench/promises.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/format/packed.hpp>
#include <oktopk/format/values/fixed.hpp>
#include <oktopk/select/reused_threshold.hpp>

using namespace oktopk_tests;
using oktopk_bench::promises_of;

namespace {

using C = oktopk::in_process_communicator;
using everything = oktopk::dense<execution, C>;
using rounded = oktopk::dense_bfloat16<execution, C>;
using local_only = oktopk::topk_a<execution, C>;
using exact = oktopk::ok_topk<execution, C>;
using reusing = oktopk::ok_topk<execution, C, reused_policies>;
using lossy =
    oktopk::ok_topk<execution, C, oktopk::with_format<oktopk::packed<float, std::int32_t, oktopk::fixed_values<4>>>>;

static_assert(oktopk_bench::sums_everything<everything> && !oktopk_bench::sums_everything<rounded>);
static_assert(!oktopk_bench::sums_everything<exact>);

} // namespace

TEST_CASE("a dense algorithm sums everything where it loses nothing, and selects nothing") {
  CHECK(promises_of<everything>({}).everything);
  CHECK(!promises_of<everything>({}).selects);
  CHECK(!promises_of<rounded>({}).everything);
}

TEST_CASE("what selects locally alone contributes all of it, and what selects among the sums does not") {
  auto const local = promises_of<local_only>({});
  CHECK((local.selects && local.all_contribute && !local.global));
  auto const global = promises_of<exact>({});
  CHECK((global.selects && !global.all_contribute && global.local.exact));
  REQUIRE(global.global);
  CHECK(global.global->exact);
}

TEST_CASE("reused thresholds promise a band, and a lossy format an exact selection of rounded sums") {
  auto const band = promises_of<reusing>({});
  CHECK(!band.local.exact);
  CHECK((band.local.low > 0 && band.local.low < 1 && band.local.high > 1 && band.local.high < 2));
  auto const rough = promises_of<lossy>({});
  REQUIRE(rough.global);
  CHECK((rough.local.exact && rough.global->exact));
  CHECK(!rough.rounding.empty());
  CHECK(promises_of<exact>({}).rounding.empty());
}

TEST_CASE("promises of a text follow from its policies") {
  auto const of = [](std::string const& text) { return promises_of(text); };
  auto const own = of("ok_topk");
  CHECK((own.local.exact && own.global && own.global->exact && !own.all_contribute && !own.everything));
  auto const reused = of("ok_topk(local_select=reused, low=0.25, global_select=gathered)");
  CHECK((!reused.local.exact && reused.local.low == 0.25 && reused.local.high == 1.5 && reused.global->low == 0));
  auto const chunked = of("ok_topk(local_select=chunked)").local;
  CHECK((!chunked.exact && chunked.low == 1 && chunked.high == 1 && !chunked.one_threshold));
  auto const fixed = of("ok_topk(local_select=chunked, chunk=64, per_chunk=2)").local;
  CHECK((fixed.low == 0 && !fixed.one_threshold && own.local.one_threshold));
  CHECK((of("topk_a").local.exact && of("topk_a").all_contribute && !of("topk_a").global));
  auto const rounded = of("ok_topk(format=packed, values=sign)");
  CHECK((rounded.rounding == "sign" && rounded.global->exact && rounded.exact_sums));
  CHECK((own.rounding.empty() && of("ok_topk(format=packed)").rounding.empty() && of("ring").rounding.empty()));
  CHECK((own.coded == oktopk_bench::coded_messages::regions &&
         of("topk_dsa").coded == oktopk_bench::coded_messages::regions));
  CHECK((of("topk_a").coded == oktopk_bench::coded_messages::selections &&
         of("gtopk").coded == oktopk_bench::coded_messages::tree));
  CHECK((of("gtopk").exact_sums && !of("gtopk(return_dropped=false)").exact_sums));
  CHECK((of("ring").everything && !of("dense_bfloat16").everything));
  CHECK((of("ring_chunked(codec=identity)").everything && !of("ring_chunked(codec=bfloat16)").everything));
}
