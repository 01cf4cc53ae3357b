// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifdef OKTOPK_TESTS_WITH_ZFP

#include "dense/coded_suite.hpp"

#include <oktopk/codec/zfp.hpp>
#include <oktopk/dense/coded_recursive_doubling.hpp>
#include <oktopk/dense/coded_ring_chunked.hpp>

using namespace oktopk_tests;
using namespace oktopk_tests::dense;

namespace {

template <template <class, class, class, class> class Coded>
struct subject {
  static constexpr bool lossless = false;
  static oktopk::zfp codec() { return oktopk::zfp({.rate = 12}); }

  template <class Comm, class Value>
  struct algorithm : Coded<execution, Comm, Value, oktopk::zfp> {
    algorithm() : Coded<execution, Comm, Value, oktopk::zfp>({.codec = {.rate = 12}, .cutoff_bytes = 0}) {}
  };
};

} // namespace

TEST_CASE("ring_chunked of zfp tells what it lost, and hides no bad value") {
  CHECK(unsound_somewhere<subject<oktopk::coded_ring_chunked>, float>() == "");
  CHECK(unsound_somewhere<subject<oktopk::coded_ring_chunked>, double>() == "");
  CHECK(hidden_fault<subject<oktopk::coded_ring_chunked>>() == "");
}

TEST_CASE("recursive_doubling of zfp tells what it lost, and hides no bad value") {
  CHECK(unsound_somewhere<subject<oktopk::coded_recursive_doubling>, float>() == "");
  CHECK(hidden_fault<subject<oktopk::coded_recursive_doubling>>() == "");
}

TEST_CASE("zfp, which loses again whenever it is applied, cannot code each message by itself") {
  using coded = oktopk::coded_ring_chunked<execution, counting, float, oktopk::zfp>;
  CHECK(coded().fault() == "");
  CHECK(coded({.level = oktopk::codec_level::message}).fault().find("zfp 8 cannot code each message") == 0);
}

#endif
