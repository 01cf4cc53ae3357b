// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifdef OKTOPK_TESTS_WITH_ZFP

#include "dense/coded_suite.hpp"

#include <oktopk/codec/zfp.hpp>
#include <oktopk/dense/coded_wire.hpp>
#include <oktopk/dense/recursive_doubling.hpp>
#include <oktopk/dense/ring.hpp>

using namespace oktopk_tests;
using namespace oktopk_tests::dense;

namespace {

template <template <class, class, class, class> class Coded>
struct by_message {
  template <class Comm, class Value>
  struct algorithm : Coded<execution, Comm, Value, oktopk::coded_wire<oktopk::zfp>> {
    algorithm()
        : Coded<execution, Comm, Value, oktopk::coded_wire<oktopk::zfp>>({.codec = {.rate = 12},
                                                                          .level = oktopk::detail::codec_level::message,
                                                                          .cutoff_bytes = 0,
                                                                          .ranks_may_differ = true}) {}
  };
};

/// The largest distance of a value on any rank from the sum, as a share of the largest sum.
template <class Subject>
double distance_from_sum(int ranks, std::int64_t count) {
  auto const inputs = rough_inputs<float>(ranks, count);
  auto const got = run<Subject>(inputs, reduction::sum);
  auto const expected = reduced(inputs, reduction::sum);
  double largest = 0;
  double distance = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(expected[i])));
    for (auto const& result : got.results) {
      distance = std::max(distance, std::fabs(static_cast<double>(result[i]) - static_cast<double>(expected[i])));
    }
  }
  return distance / largest;
}

} // namespace

TEST_CASE("zfp, which loses again whenever it is applied, cannot code each message by itself") {
  using coded = oktopk::ring_chunked<execution, counting_any, float, oktopk::coded_wire<oktopk::zfp>>;
  CHECK(coded().problem() == "");
  CHECK(coded({.level = oktopk::detail::codec_level::message}).problem().find("zfp 8 cannot code each message") == 0);
  CHECK(coded({.level = oktopk::detail::codec_level::message, .ranks_may_differ = true}).problem() == "");
}

TEST_CASE("zfp codes each message by itself where ranks may differ, which do not differ by much") {
  for (int const ranks : {2, 3, 5, 8}) {
    CHECK(distance_from_sum<by_message<oktopk::ring_chunked>>(ranks, 997) < 0.02);
    CHECK(distance_from_sum<by_message<oktopk::recursive_doubling>>(ranks, 997) < 0.02);
  }
}

#endif
