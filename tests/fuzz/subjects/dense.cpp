// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/subject_of.hpp"

#include <oktopk/algorithm/dense_family.hpp>

#ifdef OKTOPK_TESTS_WITH_ZFP
#include <oktopk/codec/zfp.hpp>
#endif

namespace oktopk_fuzz {

namespace {

template <class Value, class Index, class Codec>
using coded_ring = oktopk::dense_ring_chunked<execution, communicator, Value, Index, oktopk::coded_wire<Codec>>;

template <class Value, class Index, class Codec>
using coded_doubling =
    oktopk::dense_recursive_doubling<execution, communicator, Value, Index, oktopk::coded_wire<Codec>>;

template <class Algorithm>
subject dense_subject(std::string name, rounding codec = rounding::none, bool sums_round_once = true) {
  subject made = subject_of<Algorithm>(std::move(name), family::dense);
  made.about.codec = codec;
  made.about.sums_round_once = sums_round_once;
  return made;
}

} // namespace

std::vector<subject> dense_allreduces() {
  using namespace oktopk;
  using i32 = std::int32_t;
  using i64 = std::int64_t;
  return {
      dense_subject<dense<execution, communicator, float, i32>>("dense.f32"),
      dense_subject<dense_rabenseifner<execution, communicator, float, i32>>("dense.rabenseifner.f32"),
      dense_subject<dense_bfloat16<execution, communicator, float, i64>>("dense.bfloat16.f32", rounding::bfloat16),
      dense_subject<dense_ring<execution, communicator, float, i32>>("dense.ring.f32"),
      dense_subject<dense_ring_pipelined<execution, communicator, float, i32>>("dense.ring_pipelined.f32"),
      dense_subject<dense_halving_doubling<execution, communicator, float, i32>>("dense.halving_doubling.f32"),
      dense_subject<coded_ring<float, i32, identity>>("dense.coded_ring.identity.f32"),
      dense_subject<coded_ring<float, i32, bfloat16>>("dense.coded_ring.bfloat16.f32", rounding::bfloat16),
      dense_subject<coded_ring<float, i32, block_float>>("dense.coded_ring.block_float.f32", rounding::block_float),
      dense_subject<coded_doubling<float, i32, block_float>>("dense.coded_doubling.block_float.f32",
                                                             rounding::block_float, false),
#ifdef OKTOPK_TESTS_WITH_ZFP
      dense_subject<coded_ring<float, i32, zfp>>("dense.coded_ring.zfp.f32", rounding::zfp),
#endif
      dense_subject<dense<execution, communicator, double, i64>>("dense.f64"),
      dense_subject<dense_bfloat16<execution, communicator, double, i32>>("dense.bfloat16.f64", rounding::bfloat16),
      dense_subject<dense_ring_chunked<execution, communicator, double, i32>>("dense.ring_chunked.f64"),
      dense_subject<dense_recursive_doubling<execution, communicator, double, i64>>("dense.recursive_doubling.f64"),
      dense_subject<coded_ring<double, i32, block_float>>("dense.coded_ring.block_float.f64", rounding::block_float),
#ifdef OKTOPK_TESTS_WITH_ZFP
      dense_subject<coded_doubling<double, i32, zfp>>("dense.coded_doubling.zfp.f64", rounding::zfp, false),
#endif
  };
}

} // namespace oktopk_fuzz
