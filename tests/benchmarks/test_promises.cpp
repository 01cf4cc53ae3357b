// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The promises of algorithms that follow from their policies.

#include <oktopk_bench/promises.hpp>

#include "support/catch.hpp"

TEST_CASE("promises of a text follow from its policies") {
  auto const of = [](std::string const& text) { return oktopk_bench::promises_of(text); };
  auto const own = of("ok_topk");
  CHECK((own.selects && own.local.exact && own.global && own.global->exact && !own.all_contribute && !own.everything));
  auto const reused = of("ok_topk(local_select=reused, low=0.25, global_select=gathered)");
  CHECK((!reused.local.exact && reused.local.low == 0.25 && reused.local.high == 1.5 && reused.global->low == 0));
  auto const chunked = of("ok_topk(local_select=chunked)").local;
  CHECK((!chunked.exact && chunked.low == 1 && chunked.high == 1 && !chunked.one_threshold));
  auto const fixed = of("ok_topk(local_select=chunked, chunk=64, per_chunk=2)").local;
  CHECK((fixed.low == 0 && !fixed.one_threshold && own.local.one_threshold));
  CHECK((of("topk_a").selects && of("topk_a").local.exact && of("topk_a").all_contribute && !of("topk_a").global));
  auto const rounded = of("ok_topk(format=packed, values=sign)");
  CHECK((rounded.rounding == "sign" && rounded.global->exact && rounded.exact_sums));
  auto const foreseen = of("ok_topk(global=foreseen, format=packed)").global;
  CHECK((foreseen->exact && foreseen->one_threshold));
  auto const cut = of("ok_topk(global=foreseen, format=packed, values=sign)").global;
  CHECK((cut->exact && !cut->one_threshold));
  using oktopk_bench::coded_sums;
  CHECK(own.sums == coded_sums::parts);
  CHECK(of("ok_topk(gather=ring)").sums == coded_sums::pieces);
  CHECK(of("ok_topk(gather=ring, global=foreseen, format=packed, values=sign)").sums == coded_sums::with_others);
  CHECK((own.rounding.empty() && of("ok_topk(format=packed)").rounding.empty() && of("ring").rounding.empty()));
  CHECK((own.coded == oktopk_bench::coded_messages::regions &&
         of("topk_dsa").coded == oktopk_bench::coded_messages::regions));
  CHECK((of("topk_a").coded == oktopk_bench::coded_messages::selections &&
         of("gtopk").coded == oktopk_bench::coded_messages::tree));
  CHECK((of("gtopk").exact_sums && !of("gtopk(return_dropped=false)").exact_sums));
  CHECK((of("ring").everything && !of("ring").selects && !of("dense_bfloat16").everything));
  CHECK((of("ring_chunked(codec=identity)").everything && !of("ring_chunked(codec=bfloat16)").everything));
}
