// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/subject_of.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/allreduce.hpp>
#include <oktopk/codec/block_float.hpp>
#include <oktopk/format/coo_or_dense.hpp>
#include <oktopk/format/packed.hpp>
#ifdef OKTOPK_TESTS_WITH_ZFP
#include <oktopk/codec/zfp.hpp>
#endif

namespace oktopk_fuzz {

namespace {

using C = oktopk::any_communicator;
using i32 = std::int32_t;
using i64 = std::int64_t;

template <class... Policies>
using ok_topk = oktopk::ok_topk<execution, C, oktopk_tests::policies_of<Policies...>>;

template <template <class, class, class> class Algorithm, class... Policies>
using with = Algorithm<execution, C, oktopk_tests::policies_of<Policies...>>;

template <class Value, class Codec>
using coded_ring = oktopk::dense_ring_chunked<execution, C, Value, i32, oktopk::coded_wire<Codec, 0>>;

} // namespace

std::vector<subject> typed_subjects() {
  using namespace oktopk;
  using wide = coo<double, i64>;
  using narrow = coo<double, i32>; // entries of 12 bytes
  using reused = reused_threshold;
  return {
      typed_subject<ok_topk<coo<>, reused, reused>>("typed ok_topk",
                                                    {.local_select = {.tau_prime = 3}, .partition = {.tau = 4}}),
      typed_subject<dense_ring<execution, C>>("typed dense"),
      typed_subject<with<topk_a, coo<>, reused>>("topk_a of reused", {.local_select = {.tau_prime = 3}}),
      typed_subject<with<topk_dsa, coo_or_dense<>, reused>>("topk_dsa of reused", {.schedule = {.bucket = 2}}),
      typed_subject<with<gtopk, coo<>, reused>>("gtopk of reused", {.local_select = {.tau_prime = 2}}),
      typed_subject<ok_topk<wide, reused, reused>>("ok_topk double int64", {.local_select = {.tau_prime = 3},
                                                                            .global_select = {.tau_prime = 3},
                                                                            .partition = {.tau = 4},
                                                                            .schedule = {.bucket = 100}}),
      typed_subject<ok_topk<narrow, unguarded_threshold, exact, oktopk::balanced>>(
          "ok_topk double int32", {.local_select = {.tau_prime = 3}, .partition = {.tau = 2}}),
      typed_subject<ok_topk<packed<double, i64>, gaussian, exact, uniform>>("ok_topk double packed"),
      typed_subject<with<topk_dsa, coo_or_dense<double, i32>>>("topk_dsa double int32"),
      typed_subject<with<gtopk, narrow>>("gtopk double int32"),
      typed_subject<with<topk_a, narrow>>("topk_a double int32"),
      typed_subject<gaussian_k<execution, C, wide>>("gaussian_k double int64"),
      typed_subject<dense_bfloat16<execution, C, double, i32>>("dense_bfloat16 double"),
      typed_subject<coded_ring<double, block_float>>("ring_chunked double block_float"),
#ifdef OKTOPK_TESTS_WITH_ZFP
      typed_subject<coded_ring<float, zfp>>("ring_chunked zfp", {.reduce = {.codec = {.rate = 12}}}),
      typed_subject<dense_recursive_doubling<execution, C, float, i32, coded_wire<zfp, 0>>>("recursive_doubling zfp"),
#endif
  };
}

} // namespace oktopk_fuzz
