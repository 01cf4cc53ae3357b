// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/subject_of.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/allreduce.hpp>
#include <oktopk/codec/block_float.hpp>
#include <oktopk/exchange/foreseen.hpp>
#include <oktopk/exchange/radix.hpp>
#include <oktopk/format/coo_or_dense.hpp>
#include <oktopk/format/packed.hpp>
#include <oktopk/partition/balanced.hpp>
#include <oktopk/partition/uniform.hpp>
#include <oktopk/select/gaussian.hpp>
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
  using wide = coo<double, i64>;   // entries of 16 bytes
  using narrow = coo<double, i32>; // of 12 bytes
  using reused = reused_threshold;
  // Values of 64 bits through each scheme, indices of 64 bits, policies that are no `one_of`; of the last a stage of each
  // kind, and selectors that the catalogue does not offer with these schemes.
  return {
      typed_subject<ok_topk<wide, reused, reused, sampled, radix>>(
          "ok_topk double int64",
          {.local_select = {.tau_prime = 3}, .partition = {.tau = 4}, .deliver = {.global_select = {.tau_prime = 3}}}),
      typed_subject<ok_topk<narrow, unguarded_threshold, foreseen<>, uniform>>(
          "ok_topk double int32", {.local_select = {.tau_prime = 3}, .partition = {.blocks = 3}}),
      typed_subject<ok_topk<packed<double, i64>, gaussian, exact, balanced>>(
          "ok_topk double packed", {.partition = {.tau = 2}, .schedule = {.bucket = 100}}),
      typed_subject<with<topk_a, narrow, reused>>("topk_a double int32", {.local_select = {.tau_prime = 3}}),
      typed_subject<with<topk_dsa, coo_or_dense<double, i32>, reused>>("topk_dsa double int32",
                                                                       {.schedule = {.bucket = 2}}),
      typed_subject<with<gtopk, wide, reused>>("gtopk double int64", {.local_select = {.tau_prime = 2}}),
      typed_subject<dense_bfloat16<execution, C, double, i32>>("dense_bfloat16 double"),
      typed_subject<coded_ring<double, block_float>>("ring_chunked double block_float"),
#ifdef OKTOPK_TESTS_WITH_ZFP
      typed_subject<coded_ring<float, zfp>>("ring_chunked zfp", {.reduce = {.codec = {.rate = 12}}}),
      typed_subject<dense_recursive_doubling<execution, C, float, i32, coded_wire<zfp, 0>>>("recursive_doubling zfp"),
#endif
  };
}

} // namespace oktopk_fuzz
